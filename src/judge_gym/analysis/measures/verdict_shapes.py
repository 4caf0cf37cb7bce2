"""The shape of verdicts (which kind of set was chosen), and their bias by position and label."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.endpoints import means_over_items
from judge_gym.analysis.frames import CELL, ITEM
from judge_gym.analysis.stats.intervals import DIFFERENCE, LEVEL, SHARE, without_each_draw
from judge_gym.analysis.verdicts import Verdicts, cell_names, task_slices

SHAPES = ("abstain", "singleton", "adjacent", "non_adjacent", "several", "broad")
"""The shapes of verdicts; `several` are options of a nominal rubric, which have no neighbours."""

CONFIDENCE = ["confidence", "confidence_low", "confidence_high"]


def shapes(rows: pd.DataFrame) -> np.ndarray:
    """Names the shape of each sample's verdict, empty if it could not be read.

    Broad is the whole scale, or more than two stages that are more than half of it. Other sets of
    stages without a gap are adjacent.
    """
    masks, n = rows["mask"].to_numpy(), rows["n_stages"].to_numpy()
    size = np.bitwise_count(masks).astype(np.int64)
    # Adding its lowest bit to a run of bits carries through it, so that one bit is left.
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


def verdict_shapes(frame: pd.DataFrame) -> pd.DataFrame:
    """Estimates how often each judge gives each shape of verdict, and its confidence.

    Shares are of abstained and scored verdicts, with an interval over items; `confidence` is the
    mean stated probability that experts agree. Abstentions are not probed.
    """
    parts = []
    without = without_each_draw(frame, CELL, _shapes_by_item).values()
    for name, cells in _shapes_by_item(frame).items():
        if not cells["n"].any():
            continue
        without_draws = [table[name] for table in without]
        counts = cells.groupby(CELL, observed=True)[["n", "probed"]].sum().astype(int)
        confidence = means_over_items(cells, CELL, "confidence", SHARE, without_draws)
        confidence = confidence[[*CELL, "mean", "low", "high"]].set_axis(
            [*CELL, *CONFIDENCE], axis=1
        )
        shares = means_over_items(cells, CELL, "share", SHARE, without_draws).assign(shape=name)
        parts.append(shares.merge(counts.reset_index(), on=CELL).merge(confidence, on=CELL))
    columns = [*CELL, "shape", "mean", "low", "high", "items", "n", *CONFIDENCE, "probed"]
    return pd.concat(parts)[columns].sort_values(CELL, kind="stable", ignore_index=True)


def _shapes_by_item(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Computes by shape its share in each cell, and the confidence in such verdicts."""
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in SHAPES}
    for verdicts in task_slices(frame, CELL, ~frame["is_swap"]):
        shape, probe = shapes(verdicts.rows), verdicts.rows["probe"].to_numpy(dtype=float)
        names, of_cells = cell_names(verdicts, CELL)
        for name, tables in parts.items():
            stated = np.where(shape == name, probe, np.nan)
            values = {
                "share": verdicts.per_cell(np.where(shape == "", np.nan, shape == name)),
                "n": verdicts.total(shape == name),
                "probed": verdicts.total(~np.isnan(stated)),
                "confidence": verdicts.per_cell(stated),
            }
            tables.append(names.assign(**{name: of[of_cells] for name, of in values.items()}))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


# --- position and label --------------------------------------------------------------------------


def display_bias(frame: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """Estimates the share of scored verdicts at each displayed position and label, minus 1/n.

    Without bias it is 0 in expectation if `shuffled`. If not shuffled, a position or label
    identifies a stage, and the number does not measure bias. Samples without a display are left
    out.

    Args:
        frame: tidy samples.
        level: the confidence level; intervals that are to hold together need a higher one.
    """
    has_display = (frame["display"] != "") & ~frame["is_swap"]
    scored = frame.loc[has_display & (frame["status"] == "scored"), _BIAS_COLUMNS]
    columns = [*CELL, "kind", "place", "mean", "low", "high", "items", "shuffled"]
    if scored.empty:
        return pd.DataFrame(columns=columns)
    cells, shuffled = _bias_by_item(scored)
    without = [
        cells_without_draw
        for cells_without_draw, _ in without_each_draw(scored, CELL, _bias_by_item).values()
    ]
    parts = [
        means_over_items(
            of,
            CELL,
            "bias",
            DIFFERENCE,
            [biases[at] for biases in without if at in biases],
            level=level,
        ).assign(kind=at[0], place=at[1])
        for at, of in cells.items()
    ]
    table = pd.concat(parts).merge(shuffled, on=[*CELL, "kind"])
    order = [*CELL, "kind"]
    return table[columns].sort_values(order, kind="stable", ignore_index=True)


_BIAS_COLUMNS = [*ITEM, "cluster", "call_id", "mask", "n_stages", "display", "rubric_draw"]
_Place = tuple[str, str]
"""Either a position or a label, and which one."""


def _bias_by_item(scored: pd.DataFrame) -> tuple[dict[_Place, pd.DataFrame], pd.DataFrame]:
    """Returns the bias of each cell by place, and whether positions and labels were shuffled."""
    codes, texts = pd.factorize(scored["display"])
    stage, label, names = _displays(texts.astype(str).tolist())
    parts: dict[_Place, list[pd.DataFrame]] = {}
    for verdicts in task_slices(scored.assign(display=codes), CELL):
        display_index = verdicts.rows["display"].to_numpy()
        cells, of_cells = cell_names(verdicts, CELL)
        for key, excess in _places(verdicts, stage[display_index], label[display_index], names):
            bias = verdicts.per_cell(excess)[of_cells]
            parts.setdefault(key, []).append(cells.assign(bias=bias))
    places = {key: pd.concat(tables, ignore_index=True) for key, tables in parts.items()}
    return places, _shuffled(scored[CELL], codes, stage, label)


def _places(
    verdicts: Verdicts, stage: IntArray, label: IntArray, names: list[str]
) -> Iterator[tuple[_Place, FloatArray]]:
    """Yields for each position, then each label, by how much each verdict exceeds an even share.

    Only those that the displays have; other tasks may have others.
    """
    size, even = np.bitwise_count(verdicts.mask), 1 / verdicts.rows["n_stages"].to_numpy()
    excess: list[FloatArray] = []
    for position in range(stage.shape[1]):
        here = stage[:, position]
        share = (verdicts.mask >> np.maximum(here - 1, 0) & 1) / size - even
        excess.append(np.where(here > 0, share, np.nan))
        if (here > 0).any():
            yield ("position", str(position + 1)), excess[-1]
    for number, name in enumerate(names):
        if (label == number).any():
            of_label = np.full(len(even), np.nan)
            for position, share in enumerate(excess):
                of_label = np.where(label[:, position] == number, share, of_label)
            yield ("label", name), of_label


def _displays(texts: list[str]) -> tuple[IntArray, IntArray, list[str]]:
    """Parses each display into the stage and label number at each position, and the labels."""
    read = [[part.rpartition("=")[::2] for part in text.split()] for text in texts]
    names = sorted({label for display in read for label, _ in display})
    number = {name: position for position, name in enumerate(names)}
    shape = (len(read), max(map(len, read)))
    stage, label = np.zeros(shape, dtype=np.int64), np.full(shape, -1)
    for row, display in enumerate(read):
        for position, (name, value) in enumerate(display):
            stage[row, position], label[row, position] = int(value), number[name]
    return stage, label, names


def _shuffled(
    cells: pd.DataFrame, codes: IntArray, stage: IntArray, label: IntArray
) -> pd.DataFrame:
    """Returns whether each judge saw several orders of stages, and several labelings."""
    by_stage = np.take_along_axis(label, np.argsort(stage, axis=1), axis=1)
    seen = cells.assign(
        position=np.unique(stage, axis=0, return_inverse=True)[1].ravel()[codes],
        label=np.unique(by_stage, axis=0, return_inverse=True)[1].ravel()[codes],
    )
    several = seen.groupby(CELL, observed=True)[["position", "label"]].nunique() > 1
    return several.reset_index().melt(CELL, var_name="kind", value_name="shuffled")
