"""Archives with checksums."""
