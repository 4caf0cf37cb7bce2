"""The shape of verdicts: which kind of set was chosen, and where on the display it stood."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.endpoints import ITEM, Groups, groups_of, over_items
from judge_gym.analysis.frames import CELL, once_per_call
from judge_gym.analysis.stats.intervals import share, student
from judge_gym.analysis.stats.rubric_draws import left_out

KINDS = ("abstain", "singleton", "adjacent", "non_adjacent", "several", "broad")
"""Of a verdict. `several` are options of a nominal rubric, which have no neighbours."""


def kinds(rows: pd.DataFrame) -> np.ndarray:
    """The kind of each sample's verdict; empty where it could not be read.

    Broad is the whole scale, or more than two stages that are more than half of it. Of the others,
    stages without a gap are adjacent.
    """
    masks, n = rows["mask"].to_numpy(), rows["n_stages"].to_numpy()
    size = np.bitwise_count(masks).astype(np.int64)
    # Adding the lowest stage to a run of stages carries through it: at most one bit is left.
    run = np.bitwise_count(masks + (masks & -masks)) == 1
    nominal = (rows["rubric_kind"] == "nominal").to_numpy()
    return np.select(
        [
            (rows["status"] == "abstained").to_numpy(),
            size == 0,
            size == 1,
            (size == n) | (size > np.maximum(2, n / 2)),
            nominal,
            run,
        ],
        ["abstain", "", "singleton", "broad", "several", "adjacent"],
        "non_adjacent",
    )


def geometry(frame: pd.DataFrame) -> pd.DataFrame:
    """How often each judge gives each kind of verdict, and how sure it is of expert agreement.

    Shares are of abstentions and scored verdicts, with their interval over items; `confidence` is
    the mean stated probability. Abstentions are not probed.
    """
    parts = []
    without = left_out(frame, CELL, _kinds_by_item).values()
    for name, cells in _kinds_by_item(frame).items():
        if not cells["n"].any():
            continue
        drawn = [one[name] for one in without]
        counts = cells.groupby(CELL, observed=True)[["n", "probed"]].sum().astype(int)
        told = over_items(cells, CELL, "confidence", share, drawn).drop(columns="items")
        told = told.rename(
            columns={
                "mean": "confidence",
                "low": "confidence_low",
                "high": "confidence_high",
            }
        )
        found = over_items(cells, CELL, "share", share, drawn).assign(geometry=name)
        parts.append(found.merge(counts.reset_index(), on=CELL).merge(told, on=CELL))
    columns = [*CELL, "geometry", "mean", "low", "high", "items", "n"]
    columns += ["confidence", "confidence_low", "confidence_high", "probed"]
    return pd.concat(parts)[columns].sort_values(CELL, kind="stable", ignore_index=True)


def _kinds_by_item(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By kind, its share in each cell, and how sure the judge is of such verdicts."""
    groups = _cells(frame, ["mask", "n_stages", "rubric_kind", "status", "probe"])
    kind = kinds(groups.rows)
    probe = groups.rows["probe"].to_numpy(dtype=float)
    found = {}
    for name in KINDS:
        sure = np.where(kind == name, probe, np.nan)
        found[name] = groups.names.assign(
            share=groups.mean(np.where(kind == "", np.nan, kind == name)),
            n=groups.total((kind == name).astype(float)),
            probed=groups.total((~np.isnan(sure)).astype(float)),
            confidence=groups.mean(sure),
        )
    return found


# --- position and label --------------------------------------------------------------------------


def display_bias(frame: pd.DataFrame) -> pd.DataFrame:
    """The share of scored verdicts at each displayed position and label, minus 1/n.

    Without bias it is 0 in expectation where `shuffled`; where it is not, a position or label
    stands for a stage, and the number says nothing of bias. Samples without a display are out.
    """
    shown = frame["display"].astype("string").fillna("").ne("").to_numpy(dtype=bool)
    own = ~frame["is_swap"].to_numpy(dtype=bool)
    scored = frame[shown & own & (frame["status"] == "scored").to_numpy()]
    columns = [*CELL, "kind", "place", "mean", "low", "high", "items", "shuffled"]
    if scored.empty:
        return pd.DataFrame(columns=columns)
    cells, shuffled = _bias_by_item(scored)
    without = [drawn for drawn, _ in left_out(scored, CELL, _bias_by_item).values()]
    parts = [
        over_items(of, CELL, "bias", student, [one[at] for one in without if at in one]).assign(
            kind=at[0], place=at[1]
        )
        for at, of in cells.items()
    ]
    found = pd.concat(parts).merge(shuffled, on=[*CELL, "kind"])
    order = [*CELL, "kind"]
    return found[columns].sort_values(order, kind="stable", ignore_index=True)


_Place = tuple[str, str]
"""Whether it is a position or a label, and which."""


def _bias_by_item(scored: pd.DataFrame) -> tuple[dict[_Place, pd.DataFrame], pd.DataFrame]:
    """By place, the bias of each cell; and whether what stood there was shuffled."""
    groups = _cells(scored, ["mask", "n_stages", "display", "status"])
    codes, texts = pd.factorize(groups.rows["display"])
    stage, label, names = _displays(texts.astype(str).tolist())
    places = dict(_places(groups, stage[codes], label[codes], names))
    return places, _shuffled(groups, codes, stage, label)


def _places(
    groups: Groups, stage: IntArray, label: IntArray, names: list[str]
) -> Iterator[tuple[_Place, pd.DataFrame]]:
    """For each position, then each label: what verdicts give it beyond its due, cell by cell."""
    masks = groups.rows["mask"].to_numpy()
    size = np.bitwise_count(masks)
    due = 1 / groups.rows["n_stages"].to_numpy()
    excess: list[FloatArray] = []
    for place in range(stage.shape[1]):
        here = stage[:, place]
        held = np.where(here > 0, (masks >> np.maximum(here - 1, 0) & 1) / size - due, np.nan)
        excess.append(held)
        yield ("position", str(place + 1)), groups.names.assign(bias=groups.mean(held))
    for number, name in enumerate(names):
        held = np.full(len(masks), np.nan)
        for place, beyond in enumerate(excess):
            held = np.where(label[:, place] == number, beyond, held)
        yield ("label", name), groups.names.assign(bias=groups.mean(held))


def _displays(texts: list[str]) -> tuple[IntArray, IntArray, list[str]]:
    """The stage and the label at each position of each display, and what labels are called."""
    read = [[part.rpartition("=")[::2] for part in text.split()] for text in texts]
    names = sorted({label for display in read for label, _ in display})
    number = {name: place for place, name in enumerate(names)}
    shape = (len(read), max(map(len, read)))
    stage, label = np.zeros(shape, dtype=np.int64), np.full(shape, -1)
    for row, display in enumerate(read):
        for place, (name, value) in enumerate(display):
            stage[row, place], label[row, place] = int(value), number[name]
    return stage, label, names


def _shuffled(groups: Groups, codes: np.ndarray, stage: IntArray, label: IntArray) -> pd.DataFrame:
    """Whether a judge saw stages in more than one order, and under more than one label each."""
    by_stage = np.take_along_axis(label, np.argsort(stage, axis=1), axis=1)
    seen = groups.rows[CELL].assign(
        position=np.unique(stage, axis=0, return_inverse=True)[1][codes],
        label=np.unique(by_stage, axis=0, return_inverse=True)[1][codes],
    )
    several = seen.groupby(CELL, observed=True)[["position", "label"]].nunique() > 1
    return several.reset_index().melt(CELL, var_name="kind", value_name="shuffled")


def _cells(frame: pd.DataFrame, columns: list[str]) -> Groups:
    """The samples under own rubrics by cell, a call once, with these columns."""
    own = frame.loc[~frame["is_swap"].to_numpy(dtype=bool), [*ITEM, "call_id", *columns]]
    rows = once_per_call(own, CELL)
    return groups_of(rows, ITEM)
