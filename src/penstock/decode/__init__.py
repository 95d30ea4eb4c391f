"""Record views to columns: the plan for the core, and what its statuses mean."""
