"""A title as part of an address."""

import re


def slug(text: str) -> str:
    """Lower case, with one hyphen for each run of other characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
