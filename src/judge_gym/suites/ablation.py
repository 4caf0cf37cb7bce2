"""The conditions of suite runs, and the effect of removing a section of the guidelines. Pure.

The unit is the eval: its replicates are averaged first, and evals are compared in pairs. The change
of one eval may be noise, so each is tested as well, corrected for the number of tests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any

from judge_gym.errors import DesignError, unknown
from judge_gym.records.outcomes import EvalResult

if TYPE_CHECKING:
    from judge_gym.analysis.stats.intervals import Estimate

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Condition:
    """What a model is given besides the task."""

    name: str
    guidelines: bool = True
    without: tuple[str, ...] = ()
    """Sections of the guidelines to leave out."""
    web_search: bool = False
    extra: str = ""
    """Text of the user, after the guidelines."""

    def __post_init__(self) -> None:
        kinds = {"guidelines": bool, "without": tuple, "web_search": bool, "extra": str}
        for key, kind in kinds.items():
            if not isinstance(value := getattr(self, key), kind):
                what = f"{key} of the condition {self.name!r}"
                raise DesignError(f"{what} is {kind.__name__}; it has {value!r}")

    @property
    def key(self) -> dict[str, Any]:
        """What it changes, as part of hashes."""
        return {name: value for name, value in asdict(self).items() if name != "name"}

    def kept(self, guidelines: Mapping[str, str]) -> dict[str, str]:
        """The sections that are shown."""
        if not self.guidelines:
            return {}
        return {name: text for name, text in guidelines.items() if name not in self.without}


CONDITIONS = {
    condition.name: condition
    for condition in (
        Condition("default"),
        Condition("no_guidelines", guidelines=False),
        Condition("web_search", web_search=True),
    )
}


def ablations(
    guidelines: Mapping[str, str], sections: Sequence[str] = (), base: Condition | None = None
) -> tuple[Condition, ...]:
    """Lists a condition without each section, by default of all that the base shows."""
    base = base or CONDITIONS["default"]
    guideline_sections = base.kept(guidelines)
    if not guideline_sections:
        raise DesignError(f"the condition {base.name!r} has no guidelines to remove")
    for section in sections:
        if section not in guideline_sections:
            raise DesignError(
                unknown("section", section, guideline_sections), choices=guideline_sections
            )
    under = "" if base.name == "default" else f"{base.name} "
    return tuple(
        replace(base, name=f"{under}without {name}", without=(*base.without, name))
        for name in (sections or guideline_sections)
    )


@dataclass(frozen=True, slots=True)
class Change:
    """The change of an eval's pass rate between the base and a condition."""

    eval: str
    base: float
    """The share of passed replicates under the base."""
    under: float
    replicates: tuple[int, int]
    """Conclusive replicates under the base and under the condition."""
    p: float
    """The p-value of Fisher's exact test."""
    q: float
    """The p-value corrected for the number of evals in all conditions."""

    @property
    def beyond_noise(self) -> bool:
        """Whether it is significant after correction."""
        return self.q < ALPHA


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a condition against the base."""

    condition: str
    difference: "Estimate"
    """The pass rate under the condition minus that under the base, paired by eval."""
    p: float
    test: str
    q: float
    """The p-value corrected for the number of conditions."""
    changes: tuple[Change, ...]
    unpaired: tuple[str, ...]
    """Evals without a conclusive replicate on one side."""

    @property
    def regressions(self) -> tuple[Change, ...]:
        """Evals that passed less often, the largest change first."""
        worse = (change for change in self.changes if change.under < change.base)
        return tuple(sorted(worse, key=lambda c: (c.under - c.base, c.eval)))

    @property
    def improvements(self) -> tuple[Change, ...]:
        """Evals that passed more often, the largest change first."""
        better = (change for change in self.changes if change.under > change.base)
        return tuple(sorted(better, key=lambda c: (c.base - c.under, c.eval)))

    @property
    def verdict(self) -> str:
        """The conclusion: `regression`, `improvement` or `no effect shown`."""
        if not self.q < ALPHA:
            return "no effect shown"
        return "regression" if self.difference.value < 0 else "improvement"


Counts = Mapping[str, tuple[int, int]]


def counts(results: Iterable[EvalResult]) -> dict[str, tuple[int, int]]:
    """Counts passed and conclusive replicates by eval."""
    by_path: dict[str, tuple[int, int]] = {}
    for result in results:
        passed, all_ = by_path.get(result.path, (0, 0))
        if result.outcome.kind != "inconclusive":
            passed, all_ = passed + (result.outcome.kind == "passed"), all_ + 1
        by_path[result.path] = (passed, all_)
    return by_path


def ablate(
    base: Iterable[EvalResult], under: Mapping[str, Iterable[EvalResult]]
) -> tuple[Effect, ...]:
    """Compares each condition with the base, paired by eval."""
    # Every command knows conditions; what compares them costs a second to load.
    from judge_gym.analysis.stats import comparisons, paired_tests

    def correct_p_values(p: Sequence[float]) -> list[float]:
        adjusted: list[float] = paired_tests.among_known(
            paired_tests.benjamini_hochberg, p
        ).tolist()
        return adjusted

    ours = counts(base)
    sides = {name: counts(results) for name, results in under.items()}
    tested = {name: _changes(ours, theirs) for name, theirs in sides.items()}
    every = [change for changes in tested.values() for change in changes]
    q = iter(correct_p_values([change.p for change in every]))
    effects = []
    for name, theirs in sides.items():
        evals = sorted(ours.keys() | theirs.keys())
        paired = comparisons.compare_pair(
            _shares(theirs, evals), _shares(ours, evals), key=["ablation", name]
        )
        difference = paired.difference
        changes = tuple(replace(change, q=next(q)) for change in tested[name])
        compared = {change.eval for change in changes}
        unpaired = tuple(path for path in evals if path not in compared)
        effects.append(Effect(name, difference, paired.p, paired.test, nan, changes, unpaired))
    q = iter(correct_p_values([effect.p for effect in effects]))
    return tuple(replace(effect, q=next(q)) for effect in effects)


def _shares(side: Counts, evals: Sequence[str]) -> list[float]:
    pairs = [side.get(path, (0, 0)) for path in evals]
    return [passed / all_ if all_ else nan for passed, all_ in pairs]


def _changes(base: Counts, under: Counts) -> list[Change]:
    """Lists the changes of all evals that both sides have."""
    import scipy

    changes = []
    for path in sorted(base.keys() & under.keys()):
        (was, n), (now, m) = base[path], under[path]
        if n and m:
            p = float(scipy.stats.fisher_exact([[now, m - now], [was, n - was]])[1])
            changes.append(Change(path, was / n, now / m, (n, m), p, nan))
    return changes
