"""Chooses what a client accepts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TOKEN = r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+"
TYPE = re.compile(f"({TOKEN})/({TOKEN})")
LANGUAGE = re.compile(r"\*|[A-Za-z0-9]{1,8}(?:-[A-Za-z0-9]{1,8})*")
QUALITY = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


@dataclass(frozen=True)
class Element:
    """A range with its parameters and its quality."""

    range: str
    parameters: dict[str, str]
    quality: float


def split(text: str, separator: str) -> list[str]:
    """Splits a text at a separator outside of quotes."""
    parts, current, quoted, escaped = [], "", False, False
    for character in text:
        if escaped:
            escaped = False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            parts.append(current.strip(" \t"))
            current = ""
            continue
        current += character
    return [*parts, current.strip(" \t")]


def value_of(text: str) -> str:
    """Returns a parameter's value without quotes."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def parameters_of(parts: Sequence[str]) -> dict[str, str]:
    """Returns parameters by name; those without a value are left out."""
    parameters = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if equals:
            name = name.strip(" \t").lower()
            value = value_of(value.strip(" \t"))
            parameters[name] = value.lower() if name == "charset" else value
    return parameters


def elements(header: str) -> Iterator[Element]:
    """Yields the elements of a header whose quality is valid."""
    for text in split(header, ","):
        first, *rest = split(text, ";")
        if not first:
            continue
        parameters = parameters_of(rest)
        quality = parameters.pop("q", "1")
        if QUALITY.fullmatch(quality):
            yield Element(first.lower(), parameters, float(quality))


def choose(offers: Sequence[str], qualities: Sequence[float | None]) -> str | None:
    """Returns the first offer of the highest quality above 0."""
    best = max((quality or 0 for quality in qualities), default=0)
    if not best:
        return None
    return offers[[quality or 0 for quality in qualities].index(best)]


def best_type(accept: str | None, offers: Sequence[str]) -> str | None:
    """Returns the media type that a client likes best."""
    ranges = [each for each in elements(accept or "") if _is_type(each.range)]
    if not ranges:
        return offers[0] if offers else None
    return choose(offers, [_type_quality(offer, ranges) for offer in offers])


def _is_type(text: str) -> bool:
    match = TYPE.fullmatch(text)
    return match is not None and (match[1] != "*" or match[2] == "*")


def _type_quality(offer: str, ranges: Sequence[Element]) -> float | None:
    name, *rest = split(offer, ";")
    kind, _, subtype = name.lower().partition("/")
    parameters = parameters_of(rest)
    matches = []
    for each in ranges:
        if each.range in ("*/*", f"{kind}/*", f"{kind}/{subtype}") and (
            each.parameters.items() <= parameters.items()
        ):
            level = 2 - each.range.split("/").count("*")
            matches.append((level, len(each.parameters), each.quality))
    return max(match[2] for match in matches) if matches else None


def best_language(accept: str | None, offers: Sequence[str]) -> str | None:
    """Returns the language that a client likes best."""
    ranges = [each for each in elements(accept or "") if LANGUAGE.fullmatch(each.range)]
    if not ranges:
        return offers[0] if offers else None
    qualities = [_language_quality(offer, ranges) for offer in offers]
    best = choose(offers, qualities)
    if best is not None:
        return best
    shorter = [
        Element(each.range.rpartition("-")[0] or each.range, {}, each.quality) for each in ranges
    ]
    second = [
        None if quality == 0 else _language_quality(offer, shorter)
        for offer, quality in zip(offers, qualities, strict=True)
    ]
    return choose(offers, second)


def _language_quality(offer: str, ranges: Sequence[Element]) -> float | None:
    matches = []
    for each in ranges:
        if each.range == "*":
            matches.append((0, each.quality))
        elif f"{offer.lower()}-".startswith(f"{each.range}-"):
            matches.append((each.range.count("-") + 1, each.quality))
    return max(matches)[1] if matches else None
