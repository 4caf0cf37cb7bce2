"""A title as part of an address."""

import re


def slug(text: str) -> str:
    """Lower case, with a hyphen for each other character."""
    return re.sub(r"[^a-z0-9]", "-", text.lower()).strip("-")
