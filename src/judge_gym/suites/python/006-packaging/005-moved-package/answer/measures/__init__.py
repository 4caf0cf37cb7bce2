"""Units and their conversion."""

from measures.convert import Quantity, UnitError
from measures.convert import convert as to

__all__ = ["Quantity", "UnitError", "to"]
