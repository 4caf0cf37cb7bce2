"""Judges measured against known answers and against people."""
