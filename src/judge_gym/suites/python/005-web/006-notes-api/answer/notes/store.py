"""The notes, in memory."""

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Note:
    """A note, and how often it was written."""

    id: int
    text: str
    tags: list[str]
    created: float
    version: int = 1

    def to_json(self) -> dict[str, Any]:
        """Returns the note as plain data."""
        return asdict(self)


class Store:
    """Notes by their ids, which are never used again."""

    def __init__(self) -> None:
        self._notes: dict[int, Note] = {}
        self._last = 0

    def add(self, text: str, tags: list[str], created: float) -> Note:
        """Adds a note."""
        self._last += 1
        note = self._notes[self._last] = Note(self._last, text, tags, created)
        return note

    def find(self, key: int) -> Note | None:
        """Returns a note, if there is one."""
        return self._notes.get(key)

    def change(self, note: Note, text: str | None, tags: list[str] | None) -> Note:
        """Changes a note; None leaves a value as it is."""
        changed = replace(
            note,
            text=note.text if text is None else text,
            tags=note.tags if tags is None else tags,
            version=note.version + 1,
        )
        self._notes[note.id] = changed
        return changed

    def remove(self, note: Note) -> None:
        """Removes a note."""
        del self._notes[note.id]

    def page(self, before: int | None, tag: str | None, limit: int) -> tuple[list[Note], bool]:
        """Returns notes, the highest id first, and whether there are more."""
        notes = [
            note
            for key, note in sorted(self._notes.items(), reverse=True)
            if (before is None or key < before) and (tag is None or tag in note.tags)
        ]
        return notes[:limit], len(notes) > limit
