"""Loads YAML with the line of every entry, so that errors can name it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from judge_gym.errors import DesignError

Path = tuple[str | int, ...]
Line = tuple[Path, int]


@contextmanager
def locate_errors(file: str, lines: Mapping[Path, int]) -> Iterator[None]:
    """Adds file and line to errors about a key of the file, or the line of its parent."""
    try:
        yield
    except DesignError as error:
        around = (error.path[:length] for length in range(len(error.path), -1, -1))
        line = next((lines[path] for path in around if path in lines), 1)
        location = f"{file}:{line}: " if file else ""  # a study from a command has no file
        raise DesignError(location + error.message, choices=error.choices) from error


@contextmanager
def errors_at(path: Path) -> Iterator[None]:
    """Adds a path to errors that have none."""
    try:
        yield
    except DesignError as error:
        if error.path:
            raise
        raise DesignError(error.message, choices=error.choices, path=path) from error


class _Loader(yaml.CSafeLoader):
    """A fast loader that reports impossible values, such as 2026-02-30, with their line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            raise _broken(str(error), node) from error


def load_yaml(text: str) -> tuple[Any, dict[Path, int]]:
    """Returns the data of a YAML text, and the line of each entry."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        lines = dict(_lines(node)) if node else {}
        return (loader.construct_document(node) if node else None), lines
    finally:
        loader.dispose()


def _lines(node: yaml.Node, path: Path = (), above: tuple[int, ...] = ()) -> Iterator[Line]:
    """Yields the path and the line of every entry."""
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
            next(below)  # the line of the key is more helpful than that of its value
            yield (*path, key.value), key.start_mark.line + 1
            yield from below


def _broken(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
