"""Applies a patch to the files of a folder."""

import sys
from pathlib import Path

from patching.apply import Conflict, apply
from patching.parse import FilePatch, Malformed, parse


def main() -> int:
    """Check everything, then write."""
    folder = Path(sys.argv[1])
    try:
        patches = parse(sys.stdin.buffer.read().decode("utf-8"))
        for patch in patches:
            _write(folder / patch.path, apply(_read(folder / patch.path), patch))
    except Conflict as conflict:
        print(conflict, file=sys.stderr)
        return 1
    except (Malformed, UnicodeDecodeError) as fault:
        print(fault, file=sys.stderr)
        return 2
    for patch in patches:
        print(f"{_done(patch)} {patch.path}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_bytes().decode("utf-8") if path.is_file() else None


def _write(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))


def _done(patch: FilePatch) -> str:
    return "created" if patch.creates else "deleted" if patch.deletes else "patched"


if __name__ == "__main__":
    sys.exit(main())
