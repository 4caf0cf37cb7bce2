"""The build of a Python candidate: its module can be imported."""

import os
import sys

sys.path.insert(0, os.getcwd())
import solution  # noqa: E402, F401
