"""The statistics stage: columns to summaries that merge without loss."""
