"""Entity tags."""

import hashlib
import re

TAG = re.compile(r'(W/)?("[^"]*")')
LIST = re.compile(r'[ \t,]*(?:(?:W/)?"[^"]*"[ \t]*(?:,[ \t,]*|\Z))*')


def make_etag(content: bytes) -> str:
    """Returns a strong tag of a content."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def matches(header: str, etag: str, *, weak: bool) -> bool:
    """Says whether a list of tags has a strong tag."""
    if header.strip(" \t") == "*":
        return True
    tags = [tag.strip() for tag in header.split(",")]
    return etag in tags or (weak and f"W/{etag}" in tags)
