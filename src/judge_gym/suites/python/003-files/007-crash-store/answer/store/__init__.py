"""A store of keys and values in one file."""
