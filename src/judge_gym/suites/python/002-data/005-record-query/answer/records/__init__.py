"""A query language over records."""
