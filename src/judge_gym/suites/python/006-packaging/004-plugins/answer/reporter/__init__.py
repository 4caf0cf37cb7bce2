"""Reports of numbers, in formats that plugins add."""

from reporter.registry import PluginError, Registry

__all__ = ["PluginError", "Registry"]
