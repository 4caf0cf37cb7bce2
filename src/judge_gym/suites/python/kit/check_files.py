"""Checks a candidate's Python files by ruff or mypy; nothing that a candidate sends configures it.

Every file is named, so that no ignore file hides one. Stub files and comments that turn mypy off
are left out of the copy that it checks, as `--ignore-noqa` leaves out those of ruff.
"""

import io
import re
import subprocess
import sys
import tempfile
import tokenize
from pathlib import Path

KIT = Path(__file__).parent
DIRECTIVE = re.compile(r"#\s*(type:\s*ignore|mypy:)|#.*coding[:=]")


def without_directives(source: bytes) -> bytes:
    """Returns the source in UTF-8, without comments that direct mypy or name an encoding.

    A source that cannot be decoded is returned as it is: mypy cannot decode it either.
    """
    try:
        encoding, _ = tokenize.detect_encoding(iter(source.splitlines(keepends=True)).__next__)
        text = source.decode(encoding)
    except (LookupError, SyntaxError, UnicodeError):
        return source
    lines = io.StringIO(text, newline="").readlines()
    try:
        for token in list(tokenize.generate_tokens(iter(lines).__next__)):
            if token.type == tokenize.COMMENT and DIRECTIVE.search(token.string):
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
    except (tokenize.TokenError, SyntaxError):
        lines = [DIRECTIVE.sub("#", line) for line in lines]
    return "".join(lines).encode()


def main(check: str) -> int:
    """Runs one check and returns its exit code."""
    files = sorted(str(path) for path in Path().rglob("*.py") if path.is_file())
    if check == "lint":
        options = ["check", "--no-cache", "--ignore-noqa", "--no-respect-gitignore"]
        command = ["ruff", *options, "--config", str(KIT / "ruff.toml")]
        return run(command, files, Path())
    with tempfile.TemporaryDirectory() as folder:
        for name in files:
            copy = Path(folder) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(without_directives(Path(name).read_bytes()))
        command = ["mypy", "--config-file", str(KIT / "mypy.ini"), "--cache-dir", "/dev/null"]
        return run(command, files, Path(folder))


def run(command: list[str], files: list[str], folder: Path) -> int:
    """Returns the exit code of a tool over files."""
    words = [sys.executable, "-I", "-m", *command, "--", *files]
    return subprocess.run(words, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
