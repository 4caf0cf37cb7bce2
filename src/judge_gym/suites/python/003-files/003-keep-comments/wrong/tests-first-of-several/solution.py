"""Settings whose text stays as it is."""

import re
from dataclasses import dataclass

LINE = re.compile(r"([^\n]*?)(\r?\n|\Z)")
HEADER = re.compile(r"[ \t]*\[([^\]]*)\][ \t]*(?:[#;].*)?", re.S)
ENTRY = re.compile(r"([ \t]*)([^=]*)(=[ \t]*)(.*)", re.S)
QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"(?=[ \t]*(?:[#;]|\Z))', re.S)
COMMENT = re.compile(r"(?:(?<=[ \t])|\A)[#;]")
PLAIN = re.compile(r'[^ \t"#;](?:[^"#;]*[^ \t"#;])?', re.S)
BLANK = " \t"


class ParseError(ValueError):
    """A line that is none."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not understood")
        self.line = line


@dataclass
class _Line:
    """A line as text; an entry has a key, a header has none."""

    text: str
    end: str
    section: str = ""
    key: str | None = None
    is_header: bool = False
    value: str = ""
    span: tuple[int, int] = (0, 0)
    """Where the value stands in the text, with its quotes."""


class Settings:
    """Lines, each of which knows its section."""

    def __init__(self, text: str = "") -> None:
        self._lines: list[_Line] = []
        section, at = "", 0
        while at < len(text):
            match = LINE.match(text, at)
            assert match is not None
            line = _read(match[1], match[2], section, len(self._lines) + 1)
            section = line.section
            self._lines.append(line)
            at = match.end()

    def __str__(self) -> str:
        return "".join(line.text + line.end for line in self._lines)

    def sections(self) -> list[str]:
        """The names of sections."""
        named = (line.section for line in self._lines if line.is_header or line.key is not None)
        return list(dict.fromkeys(named))

    def keys(self, section: str) -> list[str]:
        """The keys of a section."""
        return list(dict.fromkeys(line.key for line in self._entries(section) if line.key))

    def get(self, section: str, key: str) -> str | None:
        """The last value of a key."""
        values = [line.value for line in self._entries(section) if line.key == key]
        return values[-1] if values else None

    def set(self, section: str, key: str, value: str) -> None:
        """Replace the last value of a key, or add a line."""
        if "\n" in value or "\r" in value:
            raise ValueError("a value is one line")
        bad = not key or "=" in key or key[0] in "#;[" or "]" in section
        if bad or any(set("\r\n") & set(name) or name != name.strip(BLANK) for name in (key, section)):
            raise ValueError(f"{key!r} in {section!r} cannot be written")
        written = value if PLAIN.fullmatch(value) else _quoted(value)
        for line in self._entries(section):
            if line.key == key:
                start, end = line.span
                gap = " " if line.text[end : end + 1] in ("#", ";") else ""
                line.text = line.text[:start] + written + gap + line.text[end:]
                line.value, line.span = value, (start, start + len(written))
                return
        self._add(section, key, written)

    def remove(self, section: str, key: str) -> bool:
        """Delete the lines of a key."""
        kept = [line for line in self._lines if line.section != section or line.key != key]
        removed = len(kept) < len(self._lines)
        self._lines = kept
        return removed

    def _entries(self, section: str) -> list[_Line]:
        return [line for line in self._lines if line.section == section and line.key is not None]

    def _add(self, section: str, key: str, written: str) -> None:
        end = (self._lines[0].end if self._lines else "") or "\n"
        of_section = [n for n, line in enumerate(self._lines) if line.section == section]
        entries = [n for n in of_section if self._lines[n].key is not None]
        headers = [n for n in of_section if self._lines[n].is_header]
        indent, new = "", []
        if entries:
            at = entries[-1] + 1
            indent = self._lines[at - 1].text
            indent = indent[: len(indent) - len(indent.lstrip(BLANK))]
        elif headers:
            at = headers[-1] + 1
        elif not section:
            at = 0
        else:
            at = len(self._lines)
            if self._lines and self._lines[-1].text.strip(BLANK):
                new.append("")
            new.append(f"[{section}]")
        new.append(f"{indent}{key} = {written}")
        if at and not self._lines[at - 1].end:
            self._lines[at - 1].end = end
        self._lines[at:at] = [
            _read(text, end, section if not text.startswith("[") else "", 0) for text in new
        ]


def _read(text: str, end: str, section: str, number: int) -> _Line:
    bare = text.strip(BLANK)
    if not bare or bare[0] in "#;":
        return _Line(text, end, section)
    if bare[0] == "[":
        header = HEADER.fullmatch(text)
        if not header or not header[1].strip(BLANK):
            raise ParseError(number)
        return _Line(text, end, header[1].strip(BLANK), is_header=True)
    entry = ENTRY.fullmatch(text)
    if not entry or not entry[2].strip(BLANK):
        raise ParseError(number)
    key, rest, start = entry[2].strip(BLANK), entry[4], entry.start(4)
    if rest.startswith('"'):
        quoted = QUOTED.match(rest)
        if not quoted:
            raise ParseError(number)
        value = re.sub(r"\\(.)", r"\1", quoted[1])
        return _Line(text, end, section, key, False, value, (start, start + quoted.end()))
    comment = COMMENT.search(rest)
    value = (rest[: comment.start()] if comment else rest).rstrip(BLANK)
    if not value:
        start = entry.start(3) + 1
    return _Line(text, end, section, key, False, value, (start, start + len(value)))


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
