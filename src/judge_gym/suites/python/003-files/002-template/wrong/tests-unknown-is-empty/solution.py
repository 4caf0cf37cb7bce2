"""A template language of four tags."""

import re
from collections.abc import Iterator

TAG = re.compile(r"({{.*?}}|{%.*?%})", re.S)
Node = tuple[str, str, str, list["Node"]]  # type: ignore[misc]
"""Kind, name, list of a loop, body."""


def render(template: str, values: dict[str, object]) -> str:
    """Fill a template in."""
    body = _parse(iter(TAG.split(template)), closed=False)
    return "".join(_write(body, values))


def _parse(parts: Iterator[str], closed: bool) -> list[Node]:
    nodes: list[Node] = []
    for part in parts:
        words = part[2:-2].split()
        if part.startswith("{{"):
            nodes.append(("value", part[2:-2].strip(), "", []))
        elif not part.startswith("{%"):
            nodes.append(("text", part, "", []))
        elif words == ["end"]:
            if not closed:
                raise SyntaxError("an end without its block")
            return nodes
        elif len(words) == 4 and words[0] == "for" and words[2] == "in":
            nodes.append(("for", words[1], words[3], _parse(parts, closed=True)))
        elif len(words) == 2 and words[0] == "if":
            nodes.append(("if", words[1], "", _parse(parts, closed=True)))
        else:
            raise SyntaxError(f"no such tag: {part}")
    if closed:
        raise SyntaxError("a block without its end")
    return nodes


def _write(nodes: list[Node], values: dict[str, object]) -> Iterator[str]:
    for kind, name, source, body in nodes:
        if kind == "text":
            yield name
        elif kind == "value":
            yield str(_find(name, values)) if _true(name, values) else ""
        elif kind == "for":
            items = _find(source, values)
            assert isinstance(items, list)
            for item in items:
                yield from _write(body, {**values, name: item})
        elif _true(name, values):
            yield from _write(body, values)


def _find(name: str, values: dict[str, object]) -> object:
    found: object = values
    for part in name.split("."):
        if not isinstance(found, dict):
            raise KeyError(name)
        found = found[part]
    return found


def _true(name: str, values: dict[str, object]) -> bool:
    try:
        return bool(_find(name, values))
    except KeyError:
        return False
