"""A store that survives crashes."""

from store.store import Locked, Store

__all__ = ["Locked", "Store"]
