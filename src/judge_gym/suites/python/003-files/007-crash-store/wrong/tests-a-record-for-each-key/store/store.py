"""A dict whose changes are in a log."""

import fcntl
import os
from pathlib import Path
from typing import IO

from store.log import Changes, encoded, records


class Locked(RuntimeError):
    """The folder is in use."""


class Store:
    """Keys and values in memory, and the log that makes them last."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._values: dict[bytes, bytes] = {}
        self._lock = (self._folder / "lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise Locked(f"{folder} is in use") from None
        (self._folder / "log.new").unlink(missing_ok=True)
        self._log = self._recovered()

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        self._check()
        return self._values.get(key)

    def items(self) -> list[tuple[bytes, bytes]]:
        """All pairs, by key."""
        self._check()
        return sorted(self._values.items())

    def put(self, key: bytes, value: bytes) -> None:
        """Store a value."""
        self.apply({key: value})

    def delete(self, key: bytes) -> bool:
        """Remove a key; whether it was there."""
        self._check()
        if key not in self._values:
            return False
        self.apply({key: None})
        return True

    def apply(self, changes: dict[bytes, bytes | None]) -> None:
        """Store and remove several keys at once."""
        self._check()
        if changes:
            for key, value in changes.items():
                self._log.write(encoded({key: value}))
            _flush(self._log)
            self._change(changes)

    def compact(self) -> None:
        """Write the log anew, with a record for each key."""
        self._check()
        new = self._folder / "log.new"
        with new.open("wb") as file:
            for key, value in self._values.items():
                file.write(encoded({key: value}))
            _flush(file)
        os.replace(new, self._folder / "log")
        self._log.close()
        self._log = (self._folder / "log").open("ab")

    def close(self) -> None:
        """Let others open the folder."""
        self._log.close()
        self._lock.close()

    def _check(self) -> None:
        if self._lock.closed:
            raise ValueError("the store is closed")

    def _change(self, changes: Changes) -> None:
        for key, value in changes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value

    def _recovered(self) -> IO[bytes]:
        """Read the log, cut it after its last whole record, and open it for more."""
        path = self._folder / "log"
        end = 0
        if path.exists():
            for changes, after in records(path.read_bytes()):
                self._change(changes)
                end = after
        log = path.open("ab")
        log.truncate(end)
        _flush(log)
        return log


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
