"""The old name of the package `measures`."""

import warnings

from measures import *

warnings.warn("units is now measures", DeprecationWarning, stacklevel=2)
