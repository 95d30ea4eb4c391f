"""Penstock: TFRecord shards that describe themselves, read faster than anything else does."""

from penstock import errors, fields
from penstock.dataset import Dataset, open
from penstock.read.options import ReadOptions
from penstock.schema.schema import Schema

__all__ = ["Dataset", "ReadOptions", "Schema", "errors", "fields", "open"]
