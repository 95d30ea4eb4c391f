"""Cross-validation: records divided into folds, one run per fold, and predictions of every record."""
