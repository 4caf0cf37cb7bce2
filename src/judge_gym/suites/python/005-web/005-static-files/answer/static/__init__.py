"""Serves files from memory."""

from static.app import File, Static

__all__ = ["File", "Static"]
