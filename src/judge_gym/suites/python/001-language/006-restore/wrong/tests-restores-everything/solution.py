"""Settings for a while."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def changed(settings: dict[str, int], **values: int) -> Iterator[dict[str, int]]:
    """Change some settings, and put them back."""
    before = dict(settings)
    settings.update(values)
    try:
        yield settings
    finally:
        settings.clear()
        settings.update(before)
