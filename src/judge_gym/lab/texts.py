"""Reads texts as if they were files, so that what is sent and what is read from disk agree."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from judge_gym.errors import JudgeGymError


@contextmanager
def files_of(texts: Mapping[str, str]) -> Iterator[Path]:
    """Writes texts into a temporary folder; errors name its files without the folder."""
    with tempfile.TemporaryDirectory() as name, bare_messages(Path(name)):
        for file, text in texts.items():
            (Path(name) / file).write_bytes(text.encode("utf-8"))
        yield Path(name)


@contextmanager
def bare_messages(folder: Path) -> Iterator[None]:
    """Removes a folder from the messages of errors: its files are known without it."""
    try:
        yield
    except JudgeGymError as error:
        for place in {str(folder), str(folder.resolve())} - {".", "/"}:
            error.message = error.message.replace(f"{place}/", "").replace(place, "the folder")
        error.args = (error.message,)
        raise
