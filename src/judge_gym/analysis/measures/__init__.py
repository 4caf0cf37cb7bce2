"""Measures of agreement between judges and people, each computed from what its scale has."""
