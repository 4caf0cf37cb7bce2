"""Settings for a while."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def changed(settings: dict[str, int], **values: int) -> Iterator[dict[str, int]]:
    """Change some settings, and put them back."""
    before = {key: settings[key] for key in values if key in settings}
    settings.update(values)
    yield settings
    for key in values:
        settings.pop(key, None)
    settings.update(before)
