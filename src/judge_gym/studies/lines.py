"""YAML whose every entry knows its line, so that an error can point at it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from judge_gym.errors import DesignError

Path = tuple[str | int, ...]
Line = tuple[Path, int]


@contextmanager
def located(file: str, lines: Mapping[Path, int]) -> Iterator[None]:
    """Errors about a place in the file name its line, or that of what is around it."""
    try:
        yield
    except DesignError as fault:
        around = (fault.path[:length] for length in range(len(fault.path), -1, -1))
        line = next((lines[path] for path in around if path in lines), 1)
        place = f"{file}:{line}: " if file else ""  # a study made of a command has no file
        raise DesignError(place + fault.message, choices=fault.choices) from fault


@contextmanager
def at(path: Path) -> Iterator[None]:
    """Errors that name no place are about this one."""
    try:
        yield
    except DesignError as fault:
        if fault.path:
            raise
        raise DesignError(fault.message, choices=fault.choices, path=path) from fault


class _Loader(yaml.SafeLoader):
    """YAML whose values that cannot be, such as 2026-02-30, are errors with a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as fault:
            raise _broken(str(fault), node) from fault


def load_yaml(text: str) -> tuple[Any, dict[Path, int]]:
    """The data of a YAML text, and the line of each of its entries."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        lines = dict(_lines(node)) if node else {}
        return (loader.construct_document(node) if node else None), lines
    finally:
        loader.dispose()


def _lines(node: yaml.Node, path: Path = (), above: tuple[int, ...] = ()) -> Iterator[Line]:
    """The line of every entry, so that an error can point at it."""
    if id(node) in above:
        raise _broken("an alias within itself", node)
    above = (*above, id(node))
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _lines(item, (*path, number), above)
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _broken("a key must be text", key)
            if key.value in seen:
                raise _broken(f"{key.value!r} is given twice", key)
            seen.add(key.value)
            below = _lines(value, (*path, key.value), above)
            next(below)  # the key's own line is the better one
            yield (*path, key.value), key.start_mark.line + 1
            yield from below


def _broken(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
