"""The old name of the package `measures`."""

import sys
import warnings

import measures.convert
import measures.tables
from measures import Quantity, UnitError
from measures import to as convert_units

warnings.warn("units is now measures", DeprecationWarning, stacklevel=2)
conversion = measures.convert
tables = measures.tables
sys.modules["units.conversion"] = conversion
sys.modules["units.tables"] = tables

__all__ = ["Quantity", "UnitError", "conversion", "convert_units", "tables"]
