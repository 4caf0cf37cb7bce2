"""The nine metrics of a panel, each with its interval, items and effective n.

Polarization, swap sensitivity and consistency have modules of their own; the others, and the
summary of all nine, are here.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.belief import panel_conflict
from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.endpoints import (
    ITEM,
    grouped,
    over_items,
    positions,
    right_by_item,
    scored_only,
)
from judge_gym.analysis.frames import CELL, JUDGE
from judge_gym.analysis.metrics.consistency import ALL, bare_variant, consistency
from judge_gym.analysis.metrics.polarization import (
    above_chance,
    distance_columns,
    panel_chance,
    polarization_row,
)
from judge_gym.analysis.metrics.swap_sensitivity import ROLES, panel_swap, swap_pairs
from judge_gym.analysis.panels import (
    PANEL,
    Judged,
    Panel,
    mean_of_cells,
    mean_over_items,
    panels,
    part_of,
)
from judge_gym.analysis.stats.intervals import Estimate, share, student, undefined
from judge_gym.analysis.stats.rubric_draws import estimated, left_out

KINDS = ("pairwise", "own", "excess", "joint")
"""Of conflict."""
ESTIMATES = {"right": share, "absolute_error": student, "within_half_stage": share}
METRICS = (
    "polarization",
    "entrenchment",
    "swap_sensitivity",
    "accuracy",
    "abstention",
    "conflict",
    "uncertainty_gap",
    "subset_size",
    "consistency",
)


# --- entrenchment --------------------------------------------------------------------------------


def entrenchment(frame: Judged) -> pd.DataFrame:
    """E of each judge: how far it lies from the others above chance, times how sure it is.

    The row of judge `all` is the mean over judges. Items count on which every judge has a scored
    verdict and a stated probability; the others are `dropped`.
    """
    rows = []
    for panel in panels(frame):
        for place, judge in enumerate((ALL, *panel.judges)):
            found = _entrenched(panel, place - 1)
            dropped = len(panel.evidence) - found.n
            rows.append(
                {**panel.key, JUDGE: judge, **_named(found), "dropped": dropped, **panel.rates}
            )
    return pd.DataFrame(rows)


def _entrenched(panel: Panel, place: int = -1) -> Estimate:
    """E of one judge, or of all."""

    def values(of: Panel) -> FloatArray:
        """By item, divergence from the others above chance times the mean probability."""
        sure = of.per_cell(of.rows["probe"].to_numpy(dtype=float))
        each = above_chance(of, panel_chance(of), "lone") * sure
        mean: FloatArray = each.mean(axis=1)  # an item counts where every judge has a value
        return mean if place < 0 else np.where(np.isnan(mean), np.nan, each[:, place])

    return mean_over_items(panel, values)


# --- ground truth --------------------------------------------------------------------------------


def ground_truth(frame: pd.DataFrame) -> pd.DataFrame:
    """How right each configured judge is, where something is known.

    Columns: task, variant, judge, `measure`, mean, low, high, items. `right` is the share of
    verdicts on the known stage; against a reference value from 0 to 1, `absolute_error` is of the
    normalised expected stage, and `within_half_stage` the share of items that close to it.
    """
    without = left_out(frame, CELL, _truth_cells).values()
    parts = [
        over_items(
            cells, CELL, "value", ESTIMATES[measure], [one[measure] for one in without]
        ).assign(measure=measure)
        for measure, cells in _truth_cells(frame).items()
    ]
    columns = [*CELL, "measure", "mean", "low", "high", "items"]
    found = pd.concat([part for part in parts if len(part)] or parts[:1])
    return found[columns].sort_values(CELL, kind="stable", ignore_index=True)


def _truth_cells(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By measure, the value of each cell; pairs of responses have rules of their own."""
    own = frame[~(frame["is_swap"] | frame["pair"]).to_numpy(dtype=bool)]
    known = own["reference"].between(0, 1) & (own["rubric_kind"] != "nominal")
    groups = grouped(scored_only(own[known.to_numpy()]), [*ITEM, "reference"])
    error = np.abs(groups.mean(positions(groups.rows)) - groups.names["reference"].to_numpy())
    half = groups.mean(0.5 / (groups.rows["n_stages"].to_numpy() - 1))
    # A stage whose edge is the reference agrees, whatever rounding makes of the edge.
    near = (error <= half + 1e-12).astype(float)
    return {
        "right": right_by_item(own, CELL),
        "absolute_error": groups.names.assign(value=error),
        "within_half_stage": groups.names.assign(value=near),
    }


# --- belief --------------------------------------------------------------------------------------


def conflict(frame: Judged) -> pd.DataFrame:
    """Conflict k of each panel, beside the distance; on items that every judge scored.

    `k` is the mean over pairs of judges, `own` of each judge with itself, `excess` the difference;
    `joint` is of all judges at once and grows with `fan_in`, their number.
    """
    return pd.DataFrame([_conflict_row(panel) for panel in panels(frame)])


def _conflict_row(panel: Panel) -> dict[str, Any]:
    by_item = cache(_conflict_by_item)
    k, own, excess, joint = (
        mean_over_items(panel, part_of(by_item, kind), student) for kind in KINDS
    )
    return {
        **panel.key,
        "k": k.value,
        "low": k.low,
        "high": k.high,
        "own": own.value,
        "excess": excess.value,
        "excess_low": excess.low,
        "excess_high": excess.high,
        "joint": joint.value,
        "fan_in": len(panel.judges),
        **distance_columns(panel),
        "items": k.n,
        "dropped": len(panel.evidence) - k.n,
        **panel.rates,
    }


def _conflict_by_item(panel: Panel) -> dict[str, FloatArray]:
    """Kinds of conflict on each item; not a number where a judge is missing."""
    items, judges = panel.size
    found = panel_conflict(panel.masses, np.repeat(np.arange(items), judges), groups=items)
    # One verdict cannot conflict with itself: where there is no second, nothing is known of it.
    torn = panel.complete & (panel.scored.max(initial=0) > 1)
    known = {"own": torn, "excess": torn}
    return {
        name: np.where(known.get(name, panel.complete), getattr(found, name), np.nan)
        for name in KINDS
    }


def uncertainty(frame: Judged) -> pd.DataFrame:
    """The uncertainty gap and the mean subset size of each judge, and of `all` together.

    Columns: task, variant, judge, `gap`, `gap_low`, `gap_high`, `size`, `size_low`, `size_high`,
    items, dropped (no scored verdict), effective_n and rates.
    """
    rows = []
    for panel in panels(frame):
        cells = cache(_gap), cache(_size)
        for place, judge in enumerate((ALL, *panel.judges)):
            gaps, sizes = (mean_of_cells(panel, of, student, place - 1) for of in cells)
            rows.append(
                {
                    **panel.key,
                    JUDGE: judge,
                    **dict(zip(("gap", "gap_low", "gap_high"), gaps[:3], strict=True)),
                    **dict(zip(("size", "size_low", "size_high"), sizes[:3], strict=True)),
                    "items": gaps.n,
                    "dropped": len(panel.evidence) - gaps.n,
                    **(panel.rates_of(place - 1) if place else panel.rates),
                }
            )
    return pd.DataFrame(rows)


def _gap(panel: Panel) -> FloatArray:
    return panel.masses.uncertainty_gap().reshape(panel.size)


def _size(panel: Panel) -> FloatArray:
    return panel.masses.subset_size().reshape(panel.size)


# --- no score ------------------------------------------------------------------------------------


def abstention(frame: Judged) -> pd.DataFrame:
    """The rates of abstentions and, apart, of verdicts that could not be read, per judge.

    Columns: task, variant, judge (`all` too), abstained, abstained_low, abstained_high, unreadable,
    unreadable_low, unreadable_high, items, n, effective_n.
    """
    rows = []
    for panel in panels(frame):
        rates = {name: cache(cells) for name, cells in RATES.items()}
        for place, judge in enumerate((ALL, *panel.judges)):
            row: dict[str, Any] = {**panel.key, JUDGE: judge}
            for name, cells in rates.items():
                found = mean_of_cells(panel, cells, share, place - 1)
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
                row["items"] = found.n
            mine = panel.judge == place - 1 if place else np.full(len(panel.judge), True)
            row |= {"n": int(mine.sum()), "effective_n": int((panel.mask[mine] != 0).sum())}
            rows.append(row)
    return pd.DataFrame(rows)


def _abstained(panel: Panel) -> FloatArray:
    return panel.per_cell(panel.abstained.astype(float))


def _unreadable(panel: Panel) -> FloatArray:
    return panel.per_cell(panel.unreadable.astype(float))


RATES = {"abstained": _abstained, "unreadable": _unreadable}
"""By name, the share of such verdicts in each cell."""


# --- all nine ------------------------------------------------------------------------------------


def nine_metrics(
    frame: pd.DataFrame,
    judged: Judged | None = None,
    steady: pd.DataFrame | None = None,
    pairs: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A row per task, variant and metric: value, low, high, n (items) and a note.

    Polarization is above chance at this n, with the raw value in the note. Consistency is the
    variance on identical inputs; series are pooled for it.

    Args:
        frame: the samples.
        judged: their panels, where these are at hand.
        steady: their `consistency`, where it is at hand.
        pairs: their `swap_pairs`, where these are at hand.
    """
    if frame["is_swap"].all():  # there is no panel
        return pd.DataFrame(columns=[*PANEL, "metric", "value", "low", "high", "n", "note"])
    swaps = _by_panel(swap_pairs(frame) if pairs is None else pairs)
    truths = _by_panel(_truth_by_item(frame))
    lacking = [_by_panel(one) for one in left_out(frame, CELL, _truth_by_item).values()]
    steady = consistency(frame) if steady is None else steady
    all_judges = _by_panel(steady[steady[JUDGE] == ALL])
    bare = pd.Series(bare_variant(frame).to_numpy(), frame["variant"])
    bare = bare[~bare.index.duplicated()]
    rows = []
    for panel in panels(frame if judged is None else judged):
        task, variant = panel.key["task"], panel.key["variant"]
        summary = {
            "polarization": _polarization_note(polarization_row(panel)),
            "entrenchment": (_entrenched(panel), "mean over judges"),
            "swap_sensitivity": _swap_note(swaps.get((task, variant))),
            "accuracy": _truth_note(
                truths.get((task, variant)),
                [one[task, variant] for one in lacking if (task, variant) in one],
            ),
            "abstention": _abstention_note(panel),
            "conflict": _conflict_note(_conflict_row(panel)),
            "uncertainty_gap": (mean_of_cells(panel, _gap, student), "Pl - Bel, mean over stages"),
            "subset_size": (mean_of_cells(panel, _size, student), f"of {panel.n_stages} stages"),
            "consistency": _consistency_note(all_judges[task, bare[variant]]),
        }
        rows += [
            {
                **panel.key,
                "metric": metric,
                **dict(zip(("value", "low", "high", "n"), summary[metric][0], strict=True)),
                "note": summary[metric][1],
            }
            for metric in METRICS
        ]
    return pd.DataFrame(rows)


Noted = tuple[Estimate, str]


def _by_panel(frame: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    return dict(list(frame.groupby(list(PANEL), observed=True)))


def _polarization_note(row: dict[str, Any]) -> Noted:
    found = Estimate(row["above"], row["low"], row["high"], row["items"])
    if not row["items"]:
        return found, "needs an item with scored verdicts of two judges"
    apart = _number(row["distance"])
    tested = "one verdict a cell cannot be told from chance"
    if row["draws"]:
        tested = f"p {row['p_value']:.3f} ({row['draws']} draws)"
    note = (
        f"above chance at {row['replicates']:.1f} samples a cell; raw P {row['p']:.3f}, "
        f"{tested}; squared distance {apart}; "
        f"measures {row['measures']}; {row['dropped']} items dropped"
    )
    return found, note


def _swap_note(pairs: pd.DataFrame | None) -> Noted:
    if pairs is None:
        return undefined(), "no probed verdict under another's rubric"
    rival, control = (panel_swap(pairs, role) for role in ROLES)
    third = f"; own minus a third party's {control.value:.3f}" if control.n else ""
    return rival, f"own minus rival rubric, {len(pairs)} pairs{third}"


def _truth_by_item(frame: pd.DataFrame) -> pd.DataFrame:
    """What is known of each item, judges with equal weight: task, variant, evidence, measures."""
    means = [
        cells.groupby([*PANEL, "evidence"], observed=True)["value"].mean().rename(measure)
        for measure, cells in _truth_cells(frame).items()
    ]
    return pd.concat(means, axis=1).reset_index()


def _truth_note(items: pd.DataFrame | None, without: Sequence[pd.DataFrame]) -> Noted:
    """The first measure that there is; others beside it."""
    if items is None:
        return undefined(), "nothing is known of these items"
    drawn = [one.set_index("evidence").reindex(items["evidence"]) for one in without]
    found = {
        measure: estimated(
            estimate,
            items[measure].to_numpy(float),
            [one[measure].to_numpy(float) for one in drawn],
        )
        for measure, estimate in ESTIMATES.items()
        if items[measure].notna().any()
    }
    first, *others = found
    note = "; ".join(f"{name.replace('_', ' ')} {found[name].value:.3f}" for name in others)
    return found[first], first.replace("_", " ") + (f"; {note}" if note else "")


def _abstention_note(panel: Panel) -> Noted:
    unreadable = mean_of_cells(panel, _unreadable, share)
    return mean_of_cells(panel, _abstained, share), f"unreadable {_number(unreadable.value)}"


def _conflict_note(row: dict[str, Any]) -> Noted:
    found = Estimate(row["k"], row["low"], row["high"], row["items"])
    if not row["items"]:
        return found, "needs an item with scored verdicts of two judges"
    note = (
        f"mean over pairs; fan-in {row['fan_in']}, joint {row['joint']:.3f}, excess over "
        f"self-conflict {_number(row['excess'])}; squared distance {_number(row['distance'])}"
    )
    return found, note


def _consistency_note(rows: pd.DataFrame) -> Noted:
    row: Any = rows.iloc[0]
    note = (
        f"variance on identical inputs; over replicates {_number(row['jitter'])}; alpha "
        f"{_number(row['alpha'])}, ICC {_number(row['icc'])}, means over judges; "
        f"{row['flagged']} cells to review"
    )
    found = Estimate(row["sampling"], row["sampling_low"], row["sampling_high"], row["items"])
    return found, note


def _number(value: float) -> str:
    """A number in a sentence; undefined is a dash."""
    return "–" if np.isnan(value) else f"{value:.3f}"


def _named(found: Estimate) -> dict[str, float]:
    return dict(zip(("mean", "low", "high", "items"), found, strict=True))
