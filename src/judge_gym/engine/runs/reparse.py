"""Reading stored answers with today's parsers: what would change, and the change.

Verdicts, probes and critics' scores are read again. Views and rubrics are not: judges have seen
them, and their verdicts are about what they saw. What a provider decided stays: a refusal, a
cut-off answer, a call without an answer.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar

from judge_gym.records import Critique, Probe, Sample
from judge_gym.stages import Critic, Prober, ProbeTarget, Scorer
from judge_gym.store import Run, Store

Kind = Literal["sample", "probe", "critique"]
R = TypeVar("R", Sample, Probe, Critique)
EXAMPLES = 3
"""Of each kind of change, so many are shown."""


@dataclass(frozen=True, slots=True)
class Change:
    """One record that reads differently now; `ledger show` prints the answer of its call."""

    record: Kind
    tag: str
    call_id: int | None
    before: str
    after: str
    was: str
    """The stages or numbers that were read."""
    reads: str


@dataclass(slots=True)
class Reparsed:
    """What a second reading finds."""

    written: bool
    read: Counter[Kind] = field(default_factory=Counter)
    changes: Counter[tuple[Kind, str, str]] = field(default_factory=Counter)
    """How many records went from one status to another, or kept it with other values."""
    probes_dropped: int = 0
    """Probes of samples that changed: they asked about a verdict that stands no more."""
    examples: list[Change] = field(default_factory=list)

    def note(self, change: Change) -> None:
        """Count a change; the first of a kind are kept."""
        kind = change.record, change.before, change.after
        self.changes[kind] += 1
        if self.changes[kind] <= EXAMPLES:
            self.examples.append(change)

    def to_json(self) -> dict[str, Any]:
        """The findings as `--json` prints them."""
        changes = [
            {"record": record, "before": before, "after": after, "count": count}
            for (record, before, after), count in sorted(self.changes.items())
        ]
        return {
            "written": self.written,
            "read": dict(self.read),
            "changes": changes,
            "stages_changed": self.changes["sample", "scored", "scored"],
            "probes_dropped": self.probes_dropped,
            "examples": [asdict(example) for example in self.examples],
        }


def reparse(store: Store, tags: Sequence[str], *, write: bool) -> Reparsed:
    """Read the answers behind the active runs of experiments again; a second time is nothing."""
    found = Reparsed(write)
    criticised: set[int | None] = set()  # runs share rubrics and what was said of them
    for run in store.runs.active(tags):
        _reparse_samples(store, run, found)
        critic = Critic(run.experiment.design)
        pairs = [
            (old, replace(critic.read(old.rubric, said), call_id=old.call_id))
            for old, said in store.completed.critiques(run)
            if old.call_id not in criticised
        ]
        criticised |= {old.call_id for old, _ in pairs}
        critiques = _changed("critique", run, pairs, found)
        if write:
            store.completed.write([], [], critiques)
    return found


def _reparse_samples(store: Store, run: Run, found: Reparsed) -> None:
    """The samples of a run and the probes of those that stay as they are, page by page."""
    experiment = run.experiment
    scorer = Scorer(experiment.design, experiment.seed, run.series)
    prober = Prober(experiment.design, experiment.seed, run.series)
    for page in store.completed.samples(run):
        pairs = [(old, scorer.reread(old, said)) for old, said in page]
        samples = _changed("sample", run, pairs, found)
        found.probes_dropped += store.completed.count_probes(samples)
        asked = store.completed.probes([old for old, new in pairs if old == new])
        probes = _changed(
            "probe",
            run,
            [
                (old, replace(prober.read(ProbeTarget(old.sample, ""), said), call_id=old.call_id))
                for old, said in asked
            ],
            found,
        )
        if found.written:
            store.completed.write(samples, probes, [])


def _changed(kind: Kind, run: Run, pairs: Iterable[tuple[R, R]], found: Reparsed) -> list[R]:
    """The records that read differently, as they read now."""
    changed = []
    for old, new in pairs:
        found.read[kind] += 1
        if old != new:
            changed.append(new)
            words = old.status, new.status, _values(old), _values(new)
            found.note(Change(kind, run.experiment.tag, old.call_id, *words))
    return changed


def _values(record: Sample | Probe | Critique) -> str:
    match record:
        case Sample():
            return " ".join(map(str, record.stages))
        case Probe():
            return _number(record.probability)
        case _:
            return f"{_number(record.observability)} {_number(record.discriminability)}".strip()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
