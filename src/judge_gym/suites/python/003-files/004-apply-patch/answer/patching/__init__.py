"""Unified diffs, applied strictly."""
