"""Versions, and a search for those that fit together."""
