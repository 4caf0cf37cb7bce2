"""Finds formats, and imports them when they are used."""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

Format = Callable[[Mapping[str, int]], str]
BUILTIN = {"json": "reporter.builtin:format_json", "lines": "reporter.builtin:format_lines"}
OWN = "reporter"


class PluginError(Exception):
    """A format is unknown or broken."""


def distribution_of(entry: EntryPoint) -> str:
    """Returns the name of the distribution that has an entry point."""
    return entry.dist.name if entry.dist is not None else OWN


class Registry:
    """Formats by name."""

    def __init__(self, group: str = "reporter.formats") -> None:
        self._group = group
        self._functions: dict[str, Format] = {}
        self._problems: dict[str, str] = {}
        self._broken: dict[str, tuple[str, BaseException | None]] = {}
        self._entries: dict[str, EntryPoint] | None = None

    def add(self, name: str, function: Format) -> None:
        """Adds a format, in place of any other of its name."""
        self._functions[name] = function
        self._broken.pop(name, None)

    def names(self) -> list[str]:
        """Returns the names of all formats."""
        return sorted({*self._find(), *self._functions})

    def problems(self) -> dict[str, str]:
        """Returns what is wrong with formats, by their names."""
        self._find()
        return dict(self._problems)

    def get(self, name: str) -> Format:
        """Returns a format; imports it at its first use."""
        entries = self._find()
        if name in self._functions:
            return self._functions[name]
        if name in self._broken:
            message, cause = self._broken[name]
            raise PluginError(message) from cause
        if name not in entries:
            raise PluginError(f"unknown format {name!r}; choose from {', '.join(self.names())}")
        entry = entries[name]
        try:
            function = entry.load()
        except Exception as error:
            raise self._note(name, entry, f"cannot be loaded: {error}", error) from error
        if not callable(function):
            raise self._note(name, entry, "cannot be called", None)
        self._functions[name] = function
        return self._functions[name]

    def _note(
        self, name: str, entry: EntryPoint, what: str, cause: BaseException | None
    ) -> PluginError:
        message = f"the format {name!r} of {distribution_of(entry)} {what}"
        self._problems[name] = message
        return PluginError(message)

    def _find(self) -> dict[str, EntryPoint]:
        """Looks for plugins, once."""
        if self._entries is not None:
            return self._entries
        plugins: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=self._group):
            if distribution_of(entry).lower() != OWN:
                plugins.setdefault(entry.name, []).append(entry)
        self._entries = {
            name: EntryPoint(name, value, self._group) for name, value in BUILTIN.items()
        }
        for name, entries in plugins.items():
            entries.sort(key=lambda entry: distribution_of(entry).lower())
            self._entries[name] = entries[0]
            if len(entries) > 1:
                distributions = ", ".join(map(distribution_of, entries))
                self._problems[name] = f"several distributions have {name!r}: {distributions}"
        return self._entries
