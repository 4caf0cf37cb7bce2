"""The names of the package."""

from static import File, Static

__all__ = ["File", "Static"]
