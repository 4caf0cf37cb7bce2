"""The names of the package."""

from reporter import PluginError, Registry

__all__ = ["PluginError", "Registry"]
