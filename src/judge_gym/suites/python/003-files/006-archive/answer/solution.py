"""Packs, lists and unpacks archives."""

import sys
import zlib
from pathlib import Path

from box.layout import BoxError
from box.pack import pack
from box.unpack import entries, unpack


def main(words: list[str]) -> int:
    """Run a command."""
    try:
        match words:
            case ["pack", folder, file]:
                Path(file).write_bytes(pack(folder))
            case ["list", file]:
                for path, content in entries(Path(file).read_bytes()):
                    print(_line(path, content))
            case ["unpack", file, folder]:
                unpack(Path(file).read_bytes(), folder)
            case _:
                print("pack FOLDER FILE, list FILE or unpack FILE FOLDER", file=sys.stderr)
                return 2
    except (BoxError, OSError) as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


def _line(path: str, content: bytes | None) -> str:
    return f"- - {path}/" if content is None else f"{len(content)} {zlib.crc32(content):08x} {path}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
