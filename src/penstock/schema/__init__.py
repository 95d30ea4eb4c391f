"""The schema stage: what the fields of a data set are, declared or inferred from the records.

In: counts over records, declarations. Out: a `Schema`. It lies below all other stages and imports none.
"""
