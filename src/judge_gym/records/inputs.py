"""Limits of what users may send, for modules that do without their types."""

from typing import Literal

Workflow = Literal["evidence", "rubric", "score", "swap", "probe"]
WORKFLOWS: tuple[Workflow, ...] = ("evidence", "rubric", "score", "swap", "probe")

LARGEST = 2**31 - 1
"""The largest number of a row."""
STUDY_SUFFIXES = (".yaml", ".yml")
"""The endings of a study file's name."""
ARTICLES = 15
"""The most articles that the search of a draft keeps, unless a limit is given."""
