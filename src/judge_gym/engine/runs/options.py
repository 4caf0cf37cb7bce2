"""The options with which runs are executed, declared once for the engine and every verb."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Workflow = Literal["evidence", "rubric", "score", "swap", "probe"]
WORKFLOWS: tuple[Workflow, ...] = ("evidence", "rubric", "score", "swap", "probe")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a study or experiments are run. The defaults run a study as its file says."""

    workflows: Sequence[Workflow] = WORKFLOWS
    """The workflows that may be executed; what is missing of the others is an error."""
    samples: int | None = None
    """Replicates per cell, instead of the study's."""
    series: str | None = None
    """The name under which scores and probes are drawn afresh; by default the study's seed."""
    new_run: bool = False
    """Supersede the active runs; the ledger still answers what was asked before."""
    rivals: Sequence[str] = ()
    """Authors whose rubrics are used beside those that the study names."""
    budget: Mapping[str, Any] = field(default_factory=dict)
    """Limits instead of the study's: usd, calls, tokens, minutes, run.usd, ..."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Knobs over those of the study file's base design."""
    offline: bool = False
    """Fetch nothing and call no model; every answer must be in the ledger."""
    pause_after: Workflow | None = None
    """Pause when this workflow is done."""
    only_failed: bool = False
    """Repeat failed calls and nothing else."""
    allow_private: bool = False
    """Allow evidence to be fetched from private network addresses."""
