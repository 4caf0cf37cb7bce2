"""Whether the intervals of a judge table hold at the size of a study: panels, tables, coverage."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.analysis.judges.table import DECIDERS, judge_table
from judge_gym.calibrate.panels import draw_panel, generator, panel_frames
from judge_gym.calibrate.profile import StudyProfile, measure_study
from judge_gym.calibrate.truths import POSITIVE, Truths, true_values
from judge_gym.records.coverage import (
    CoverageReport,
    CoverageRow,
    Rate,
    Verdict,
    quantity_words,
)
from judge_gym.records.judge_table import JudgeRow, JudgeTable

POSITIVE_LABEL = str(POSITIVE + 1)
"""The name of the positive one of two labels, which simulated verdicts have as numbers."""
PANELS = 200
"""The number of panels, unless they are large."""
SECONDS = 50.0
"""How long a check should take."""
PER_PANEL, PER_SETUP, PER_VERDICT = 0.1, 0.05, 2e-5
"""The seconds that a panel needs, with each of its setups and verdicts."""
LEAST, MOST = 0.93, 0.97
"""Coverage below which an interval does not hold, and above which it is wider than it must be."""
FALSE_WORSE = 0.05
MONTE_CARLO = 0.99
Watch = Callable[[int, int], None]


_Estimate = tuple[Mapping[str, Any], float | None]
"""A quantity of a table and its true value; None if that is not known."""


class _Outcome(NamedTuple):
    """The intervals of one quantity of one panel."""

    printed: bool
    below: bool
    """Whether an interval ends below the truth."""
    above: bool
    width: float
    reason: str
    """Why there is no interval."""


def check_coverage(
    frame: pd.DataFrame,
    people: pd.DataFrame | None = None,
    *,
    panels: int | None = None,
    seed: int = 0,
    watch: Watch = lambda done, total: None,
) -> CoverageReport:
    """Simulates studies like this one, and counts how often judge tables hold the truth.

    Args:
        frame: the tidy samples of the study.
        people: raters' stages, with columns tag, evidence, rater, stage.
        panels: the number of panels; by default as many as take about a minute.
        seed: the seed of all panels.
        watch: called with the number of finished panels, and with their total number.
    """
    profile = measure_study(frame, people)
    count = panels or _default_panels(profile)
    compares = len(profile.setups) > 1 and profile.labels != "none"
    equal = max(5, count // 2) if compares else 0
    rows, unchecked = quantity_coverage(
        profile, count, seed, lambda done, _: watch(done, count + equal)
    )
    worse = false_worse(profile, equal, seed, lambda done, _: watch(count + done, count + equal))
    return {
        "sentence": _sentence(profile, rows, worse, count),
        "panels": count,
        "seed": seed,
        "study": _facts(profile),
        "quantities": rows,
        "false_worse": worse,
        "equal_panels": equal,
        "unchecked": unchecked,
        "notes": [*profile.notes],
    }


def quantity_coverage(
    profile: StudyProfile, panels: int, seed: int = 0, watch: Watch = lambda done, total: None
) -> tuple[list[CoverageRow], list[str]]:
    """Simulates panels of a profile, and compares the intervals of their judge tables with truth.

    Returns:
        A row for each quantity, and the names of quantities whose true value is not known.
    """
    truths = true_values(profile, seed)
    outcomes: dict[str, list[_Outcome]] = defaultdict(list)
    unknown: set[str] = set()
    for done, table in enumerate(_tables(profile, "like", panels, seed), 1):
        for name, estimates in _quantities(table, truths).items():
            if any(truth is None for _, truth in estimates):
                unknown.add(name)
            else:
                outcomes[name].append(_outcome(estimates))
        watch(done, panels)
    return [_coverage_row(name, each, panels) for name, each in outcomes.items()], sorted(unknown)


def false_worse(
    profile: StudyProfile, panels: int, seed: int = 0, watch: Watch = lambda done, total: None
) -> Rate | None:
    """Counts how often a table calls a setup worse though all judge equally well.

    None where setups are not compared.
    """
    worse = []
    tables = _tables(profile.with_equal_setups(), "equal", panels, seed)
    for done, table in enumerate(tables, 1):
        standings = {row["standing"] for row in table["rows"]}
        if standings != {"unknown"}:
            worse.append("worse" in standings)
        watch(done, panels)
    return _rate(sum(worse), len(worse)) if worse else None


def _default_panels(profile: StudyProfile) -> int:
    setups = len(profile.setups)
    verdicts = profile.items * profile.orders * profile.repeats * setups
    each = PER_PANEL + PER_SETUP * setups + PER_VERDICT * verdicts
    return int(np.clip(SECONDS / each / 1.5, 40, PANELS))  # half as many panels of equal setups


def _tables(profile: StudyProfile, kind: str, count: int, seed: int) -> Iterator[JudgeTable]:
    for number in range(count):
        rng = generator("panel", kind, seed, number)
        frame, people = panel_frames(profile, draw_panel(profile, rng), rng)
        yield judge_table(frame, people, positive=POSITIVE_LABEL if _is_binary(profile) else None)


def _is_binary(profile: StudyProfile) -> bool:
    return profile.scale == 2 and not profile.pair and profile.labels != "none"


def _quantities(table: JudgeTable, truths: Mapping[str, Truths]) -> dict[str, list[_Estimate]]:
    """Lists every estimate of a table with its truth by name, None where it is unknown."""
    estimates: dict[str, list[_Estimate]] = defaultdict(list)
    judges = {row["setup"]: row["judge"] for row in table["rows"]}
    best = next((row["judge"] for row in table["rows"] if row["difference"] is None), "")
    # Differences and the chosen setup's number are of the measure that decides.
    decider = DECIDERS[table["measure"]]
    name_of_truth = "truth" if decider == "exact" else decider
    quality = {name: values.get(name_of_truth, np.nan) for name, values in truths.items()}
    for fields in map(_fields, table["rows"]):
        true_of_row = dict(truths[fields["judge"]])
        if best:
            true_of_row["difference"] = quality[fields["judge"]] - quality[best]
        # Exact agreement is `truth`, too.
        measures = {**fields, **(fields.get("measures") or {})}
        measures.pop("exact", None)
        for name, value in measures.items():
            if _is_quantity(value):
                estimates[name].append((value, true_of_row.get(name)))
    true_of_row = dict(truths[""])
    if table["chosen"] is not None:
        true_of_row["chosen_quality"] = quality[judges[table["chosen"]]]
    for name, value in _fields(table).items():
        if _is_quantity(value):
            estimates[name].append((value, true_of_row.get(name)))
    return estimates


def _fields(row: JudgeRow | JudgeTable) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], row)


def _is_quantity(value: object) -> bool:
    return isinstance(value, Mapping) and {"value", "low", "high"} <= value.keys()


def _outcome(rows: Sequence[_Estimate]) -> _Outcome:
    """Returns whether all setups' intervals hold together, as the table says that they do."""
    with_interval = [
        (row, truth) for row, truth in rows if row["low"] is not None and truth is not None
    ]
    reasons = [str(row.get("withheld") or "") for row, _ in rows if row["low"] is None]
    near = 1e-9
    return _Outcome(
        bool(with_interval),
        any(row["high"] < truth - near for row, truth in with_interval),
        any(row["low"] > truth + near for row, truth in with_interval),
        float(np.mean([row["high"] - row["low"] for row, _ in with_interval]))
        if with_interval
        else np.nan,
        next(filter(None, reasons), ""),
    )


def _rate(count: int, n: int) -> Rate:
    ends = stats.binomtest(count, n).proportion_ci(MONTE_CARLO, method="wilson")
    return {"value": count / n, "low": float(ends.low), "high": float(ends.high)}


def _coverage_row(name: str, outcomes: list[_Outcome], panels: int) -> CoverageRow:
    printed = [outcome for outcome in outcomes if outcome.printed]
    n = len(printed)
    covered = sum(not (outcome.below or outcome.above) for outcome in printed)
    rate = _rate(covered, n) if n else None
    verdict: Verdict = "holds"
    if rate is None:
        verdict = "withheld"
    elif rate["high"] < LEAST:
        verdict = "fails"
    elif rate["low"] > MOST:
        verdict = "wide"
    reasons = [outcome.reason for outcome in outcomes if outcome.reason]
    return {
        "quantity": name,
        "verdict": verdict,
        "coverage": rate,
        "printed": n / panels,
        "width": float(np.mean([outcome.width for outcome in printed])) if n else None,
        "too_low": sum(outcome.below for outcome in printed) / n if n else None,
        "too_high": sum(outcome.above for outcome in printed) / n if n else None,
        "reason": max(set(reasons), key=reasons.count) if reasons else "",
    }


# --- in words ------------------------------------------------------------------------------------


def _facts(profile: StudyProfile) -> dict[str, Any]:
    """Returns what was measured of the study, as JSON."""
    return {
        "items": profile.items,
        "clusters": len(profile.cluster_sizes),
        "largest_cluster": max(profile.cluster_sizes),
        "scale": profile.scale,
        "kind": "pairs" if profile.pair else "ordinal" if profile.ordered else "nominal",
        "labels": profile.labels,
        "labelled": profile.labelled,
        "raters": profile.raters,
        "prevalence": [round(float(share), 4) for share in profile.prevalence],
        "repeats": profile.repeats,
        "label_correlation": profile.label_correlation,
        "error_correlation": profile.error_correlation,
        "setup_correlation": profile.setup_correlation,
        "setups": [setup.name for setup in profile.setups],
    }


def _sentence(
    profile: StudyProfile, rows: list[CoverageRow], worse: Rate | None, panels: int
) -> str:
    """Returns the answer in words: what holds, what does not and why, and what was simulated."""
    holding = [row for row in rows if row["verdict"] in ("holds", "wide")]
    rates = [row["coverage"]["value"] for row in holding if row["coverage"]]
    parts = []
    if rates:
        low, high = (f"{100 * end:.0f}" for end in (min(rates), max(rates)))
        span = f"{low} %" if low == high else f"{low} to {high} %"
        parts.append(f"At this size, 95 % intervals cover {span} of true values.")
    parts += [_failure(row) for row in rows if row["verdict"] == "fails"]
    if none := [quantity_words(row["quantity"]) for row in rows if row["verdict"] == "withheld"]:
        parts.append(f"No interval is printed of {', '.join(none)}.")
    if worse is not None:
        rate = f"in {100 * worse['value']:.0f} % of panels with equal setups one is called worse"
        holds = worse["low"] <= FALSE_WORSE
        parts.append(
            f"{rate[0].upper()}{rate[1:]}{'' if holds else ', more than the 5 % allowed'}."
        )
    clusters = len(profile.cluster_sizes)
    size = f"{profile.items:,} items" + (
        f" in {clusters:,} clusters" if clusters < profile.items else ""
    )
    setups = f"{len(profile.setups)} setup{'s' if len(profile.setups) > 1 else ''}"
    parts.append(f"Simulated: {panels:,} panels of {size} and {setups}.")
    return " ".join(parts)


def _failure(row: CoverageRow) -> str:
    """Returns in words how an interval fails: to one side, or by being too narrow."""
    low, high, rate = row["too_low"] or 0.0, row["too_high"] or 0.0, row["coverage"]
    assert rate is not None
    why = f"they are too narrow (mean width {row['width']:.2f})"
    if max(low, high) > 3 * min(low, high) + 0.01:
        side, share = ("below", low) if low > high else ("above", high)
        why = f"{100 * share:.0f} % lie {side} the true value"
    covered = (
        f"covers {100 * rate['value']:.0f} % [{100 * rate['low']:.0f}, {100 * rate['high']:.0f}]"
    )
    name = quantity_words(row["quantity"])
    return f"The interval of {name} does not hold: it {covered}, because {why}."
