"""The old name of the package `measures`."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import Any

_NAMES = {
    "Quantity": ("measures", "Quantity"),
    "UnitError": ("measures", "UnitError"),
    "convert_units": ("measures", "to"),
}
_MODULES = {"conversion": "measures.convert", "tables": "measures.tables"}


def _warn(old: str, new: str) -> None:
    """Warns at the line of the user's code, which is behind those of the import system."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        frame.f_globals.get("__name__") == __name__
        or frame.f_code.co_filename.startswith("<frozen importlib")
        or frame.f_globals.get("__name__") == "importlib"
    ):
        frame = frame.f_back
    filename = frame.f_code.co_filename if frame else "unknown"
    line = frame.f_lineno if frame else 1
    message = f"units.{old} is now {new}"
    warnings.warn_explicit(message, DeprecationWarning, filename, line)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        module, new = _NAMES[name]
        # `from units import NAME` asks whether there is such a name before it reads it.
        if sys._getframe(1).f_code.co_name != "_handle_fromlist":
            _warn(name, f"{module}.{new}")
        return getattr(importlib.import_module(module), new)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the new modules under their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __name__ or name not in _MODULES:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__.rpartition(".")[2]
        _warn(name, _MODULES[name])
        sys.modules[module.__name__] = importlib.import_module(_MODULES[name])


sys.meta_path.insert(0, _Finder())
