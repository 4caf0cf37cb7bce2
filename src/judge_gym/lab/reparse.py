"""Parses stored answers again with the current parsers, and reports or writes the changes.

Verdicts, probes and critiques are parsed again. Views and rubrics are not, since verdicts are about
the texts that judges have seen; nor are refusals, truncated answers and failed calls.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar

from judge_gym.axes import RECORDED
from judge_gym.records import Critique, Probe, Sample
from judge_gym.stages import Critic, Prober, ProbeTarget, Scorer
from judge_gym.store import Run, Store

Kind = Literal["sample", "probe", "critique"]
Reading = Literal["same", "other", "none"]
R = TypeVar("R", Sample, Probe, Critique)
EXAMPLES = 3
"""Examples of each kind of change."""


@dataclass(frozen=True, slots=True)
class Change:
    """One record that reads differently now. `ledger show` prints its call."""

    record: Kind
    tag: str
    call_id: int | None
    before: str
    after: str
    was: str
    """The stages or numbers before."""
    reads: str
    """The stages or numbers now."""


@dataclass(slots=True)
class Reparsed:
    """The result of parsing answers again."""

    written: bool
    read: Counter[Kind] = field(default_factory=Counter)
    changes: Counter[tuple[Kind, str, str]] = field(default_factory=Counter)
    """The numbers of changed records, by kind and by status before and after."""
    probes_dropped: int = 0
    """Probes of samples that changed, which are deleted."""
    examples: list[Change] = field(default_factory=list)
    recorded: Counter[Reading] = field(default_factory=Counter)
    """Of verdicts that others recorded: whether we read the same, another or none. They stay."""

    def note(self, change: Change) -> None:
        """Counts a change and keeps the first ones of a kind as examples."""
        kind = change.record, change.before, change.after
        self.changes[kind] += 1
        if self.changes[kind] <= EXAMPLES:
            self.examples.append(change)

    def to_json(self) -> dict[str, Any]:
        """Converts the result to what `--json` prints."""
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
            "recorded": dict(self.recorded),
        }


def reparse(store: Store, tags: Sequence[str], *, write: bool) -> Reparsed:
    """Parses the answers of the active runs of experiments again."""
    result = Reparsed(write)
    criticised: set[int | None] = set()  # runs share rubrics and their critiques
    for run in store.runs.active(tags):
        _reparse_samples(store, run, result)
        critic = Critic(run.experiment.design)
        pairs = [
            (old, replace(critic.read(old.rubric, answer), call_id=old.call_id))
            for old, answer in store.completed.critiques(run)
            if old.call_id not in criticised
        ]
        criticised |= {old.call_id for old, _ in pairs}
        critiques = _find_changes("critique", run, pairs, result)
        if write:
            store.completed.write([], [], critiques)
    return result


def _reparse_samples(store: Store, run: Run, found: Reparsed) -> None:
    """Parses the samples of a run, and the probes of unchanged samples, page by page."""
    experiment = run.experiment
    scorer = Scorer(experiment.design, experiment.seed, run.series, experiment.template)
    prober = Prober(experiment.design, experiment.seed, run.series)
    recorded = RECORDED in experiment.design.values()
    for page in store.completed.samples(run):
        pairs = [(old, scorer.reread(old, answer)) for old, answer in page]
        if recorded:
            _compare_recorded(run, pairs, found)
            continue
        samples = _find_changes("sample", run, pairs, found)
        found.probes_dropped += store.completed.count_probes(samples)
        answers = store.completed.probes([old for old, new in pairs if old == new])
        read = (prober.read(ProbeTarget(old.sample, ""), answer) for old, answer in answers)
        probe_pairs = [
            (old, replace(new, call_id=old.call_id))
            for (old, _), new in zip(answers, read, strict=True)
        ]
        probes = _find_changes("probe", run, probe_pairs, found)
        if found.written:
            store.completed.write(samples, probes, [])


def _compare_recorded(run: Run, pairs: Sequence[tuple[Sample, Sample]], found: Reparsed) -> None:
    """Counts how our reading of answers agrees with the verdicts that others recorded."""
    for old, new in pairs:
        found.read["sample"] += 1
        same = (old.status, old.stages) == (new.status, new.stages)
        kind: Reading = "same" if same else "none" if new.status == "parse_failed" else "other"
        found.recorded[kind] += 1
        if kind == "other" and found.recorded[kind] <= EXAMPLES:
            words = old.status, new.status, _values(old), _values(new)
            found.examples.append(Change("sample", run.experiment.tag, old.call_id, *words))


def _find_changes(kind: Kind, run: Run, pairs: Iterable[tuple[R, R]], found: Reparsed) -> list[R]:
    """Finds the records that read differently, as they read now."""
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
