"""The table of verdicts that every analysis reads: units by setups by draws by repeats.

A unit is an item of a task; a pair of responses, shown in both orders, is one. A setup is a judge
as it would be used. `panels` slices the samples by task and variant, where the setups are its
judges; `of_setups` takes all samples of each setup together, with the labels that its verdicts are
compared with. Functions of `Verdicts` never see which of the two made it.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import combinations
from typing import Any, NamedTuple, TypeVar, Union
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.belief.disagreement import Replicates, squared_distances
from judge_gym.analysis.belief.masses import BoolArray, FloatArray, IntArray, Masses, sources
from judge_gym.analysis.frames import (
    CELL,
    CELL_OF_REPLICATES,
    JUDGE,
    PANEL,
    cluster_codes,
    first_replicates,
    first_rows,
    once_per_call,
    own_rows,
    select_rows,
)
from judge_gym.analysis.judges.setups import Setup
from judge_gym.analysis.stats.intervals import DISTANCE, MANY_DRAWS, Estimate, Scale, estimate
from judge_gym.errors import DesignError
from judge_gym.records.judge_table import TruthKind

Result = TypeVar("Result")
ALL_SETUPS = -1
"""The index of all setups together."""
PANEL_COLUMNS = (
    *(JUDGE, "evidence", "replicate", "status", "mask", "n_stages", "call_id", "rubric"),
    *("rubric_kind", "rubric_draw", "flipped", "series", "display", "probe", "cluster"),
    "repeats",
)
"""The columns of samples that panels are made of."""
SETUP_COLUMNS = (
    *(*CELL_OF_REPLICATES, "concept", "tag", "cluster", "truth", "replicate", "status"),
    *(
        "rubric.author",
        "rubric_author",
        "probe",
        "mask",
        "n_stages",
        "stage_names",
        "rubric_kind",
        "length",
        "pair",
        "call_id",
        "repeats",
    ),
    *("usd", "seconds", "reference"),
)
"""The columns of samples that the verdicts of setups are made of, as far as samples have them."""
CATEGORY = "category"
"""The part of a benchmark that an item belongs to, where the samples have it."""
UNIT = ["concept", "evidence"]
"""What a verdict of a setup is about."""
LABEL_COLUMNS = ("tag", "evidence", "rater", "stage")
"""The columns of people's labels."""
TIE = 3
"""The stage of a pair's rubric that says that both responses are equally good."""


class Reference(NamedTuple):
    """What verdicts are compared with: known answers, or the labels of people."""

    kind: TruthKind
    labels: FloatArray
    """By row, the share of each stage among the labels of its unit; all 0 without a label."""
    right: FloatArray
    """By row, the share of labels that the verdict agrees with; NaN without label or answer."""
    majority: FloatArray
    """By row, whether the verdict is the most frequent label; NaN too where labels tie."""

    def on(self, rows: Any) -> "Reference":
        """Selects rows."""
        return Reference(self.kind, self.labels[rows], self.right[rows], self.majority[rows])


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Verdicts of setups on units, each call once, without swapped rubrics."""

    key: dict[str, Any]
    """The values that identify a panel, such as task and variant; empty for setups."""
    setups: tuple[Any, ...]
    """The names of setups; of a panel, its judges; of a task, the values of other columns."""
    units: tuple[Any, ...]
    """What the verdicts are about: items by their evidence, of setups with the concept."""
    n_stages: int
    """The largest number of stages."""
    ordinal: bool
    rows: pd.DataFrame
    """The verdicts, with numbers in place of texts in panels."""
    setup: IntArray
    """The index of each row's setup."""
    unit: IntArray
    """The index of each row's unit."""
    mask: IntArray
    """The chosen stages of each row, as bits; 0 without a score."""
    clusters: IntArray
    """The number of each unit's cluster."""
    lacks_draw: bool = False
    """Whether one of many draws of rubrics was left out."""
    references: Mapping[TruthKind, Reference] = field(default_factory=dict)
    """What the verdicts of setups are compared with."""
    raters: pd.DataFrame = field(default_factory=pd.DataFrame)
    """People's labels of the units: unit, rater, stage."""

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of units and of setups."""
        return len(self.units), len(self.setups)

    @property
    def cell(self) -> IntArray:
        """The index of each row's cell: units, and setups within a unit."""
        return self.unit * len(self.setups) + self.setup

    def per_cell(self, values: FloatArray) -> FloatArray:
        """Averages row values by unit and setup, ignoring missing values."""
        has_value = ~np.isnan(values)
        count = int(np.prod(self.size))
        sums = np.bincount(self.cell[has_value], values[has_value], count)
        n = np.bincount(self.cell[has_value], minlength=count)
        return ratio(sums, n).reshape(self.size)

    def total(self, values: FloatArray | BoolArray) -> FloatArray:
        """Sums row values by unit and setup."""
        count = int(np.prod(self.size))
        return np.bincount(self.cell, values, count).astype(float).reshape(self.size)

    @cached_property
    def scored(self) -> IntArray:
        """The number of scored verdicts by unit and setup."""
        count = int(np.prod(self.size))
        return np.bincount(self.cell[self.mask != 0], minlength=count).reshape(self.size)

    @cached_property
    def complete(self) -> BoolArray:
        """Which units every setup scored, none of them with fewer than two setups."""
        return np.asarray((self.scored > 0).all(axis=1) & (len(self.setups) > 1))

    @cached_property
    def abstained(self) -> BoolArray:
        """Whether each row is an abstention."""
        return self.rows["abstained"].to_numpy()

    @cached_property
    def unreadable(self) -> BoolArray:
        """Whether each row is neither scored nor an abstention."""
        return self.rows["unreadable"].to_numpy()

    # --- distributions -------------------------------------------------------------------------

    @cached_property
    def masses(self) -> Masses:
        """The mass function of each cell, unit by unit."""
        count = int(np.prod(self.size))
        return sources(self.cell, self.mask, frame=self.n_stages, cells=count).masses

    @cached_property
    def open_masses(self) -> Masses:
        """The mass function of each cell, with abstentions as mass on all stages."""
        if not self.abstained.any():
            return self.masses
        read, count = ~self.unreadable, int(np.prod(self.size))
        cell, mask = self.cell[read], self.mask[read]
        return sources(cell, mask, frame=self.n_stages, cells=count, abstentions="vacuous").masses

    @cached_property
    def shares(self) -> FloatArray:
        """The distribution over stages by unit and setup."""
        return self.masses.pignistic().reshape(*self.size, self.n_stages)

    @cached_property
    def distances(self) -> FloatArray:
        """The unbiased squared Jousselme distance, by unit and pair of setups."""
        repetition = self.rows["repetition"].to_numpy()
        draw = self.rows["rubric_draw"].to_numpy(dtype=np.int64) if self.many_draws else None
        sides = [
            Replicates(
                self.unit[of_setup],
                repetition[of_setup],
                self.mask[of_setup],
                None if draw is None else draw[of_setup],
            )
            for of_setup in (self.setup == index for index in range(len(self.setups)))
        ]
        return squared_distances(sides, items=len(self.units))

    # --- draws of rubrics ----------------------------------------------------------------------

    @cached_property
    def own_rubrics(self) -> bool:
        """Whether setups used different rubrics, so that they differ in judge and rubric."""
        rubrics, rubric = np.unique(self.rows["rubric"], return_inverse=True)
        used = np.unique(self.setup * len(rubrics) + rubric)
        return len(used) < len(np.unique(self.setup)) * len(rubrics)

    @cached_property
    def many_draws(self) -> bool:
        """Whether there are enough draws of rubrics to generalise beyond them."""
        return self.lacks_draw or self.rows["rubric_draw"].nunique() >= MANY_DRAWS

    @cached_property
    def without_each_draw(self) -> tuple["Verdicts", ...]:
        """The verdicts without each draw of rubrics in turn."""
        return tuple(self.without(draw) for draw in np.unique(self.rows["rubric_draw"]))

    def without(self, draw: int) -> "Verdicts":
        """Leaves out a draw of rubrics, if there are many draws."""
        if not self.many_draws:
            return self
        rest = (self.rows["rubric_draw"] != draw).to_numpy()
        return replace(self.on(rest), lacks_draw=True)

    @property
    def in_blocks(self) -> bool:
        """Whether each draw of the setups' own rubrics is a block."""
        return self.own_rubrics and self.many_draws

    # --- slices --------------------------------------------------------------------------------

    @property
    def rates(self) -> dict[str, float]:
        """The number of scored verdicts, and the shares of abstained and unreadable ones."""
        return self.rates_of(*range(len(self.setups)))

    def rates_of(self, *indexes: int) -> dict[str, float]:
        """Computes `rates` of some setups."""
        of_setups = np.isin(self.setup, indexes)
        abstained, unreadable = self.abstained[of_setups], self.unreadable[of_setups]
        return {
            "effective_n": int((~abstained & ~unreadable).sum()),
            "abstained": float(abstained.mean()),
            "unreadable": float(unreadable.mean()),
        }

    def of(self, *indexes: int) -> "Verdicts":
        """Selects setups by their index, and keeps all units."""
        renumbered = np.full(len(self.setups), -1)
        renumbered[list(indexes)] = np.arange(len(indexes))
        part = self.on(np.isin(self.setup, indexes))
        names = tuple(self.setups[index] for index in indexes)
        key = {**self.key, "judges": list(names)} if self.key else {}
        return replace(part, key=key, setups=names, setup=renumbered[part.setup])

    def on(self, rows: BoolArray) -> "Verdicts":
        """Selects rows, and keeps setups and units."""
        return replace(
            self,
            rows=self.rows[rows],
            setup=self.setup[rows],
            unit=self.unit[rows],
            mask=self.mask[rows],
            references={kind: reference.on(rows) for kind, reference in self.references.items()},
        )


# --- slices by task and variant -----------------------------------------------------------------


def panels(frame: pd.DataFrame, by: Sequence[str] = PANEL) -> Iterator[Verdicts]:
    """Yields the verdicts of each group of a tidy frame, sorted by key, with judges as setups.

    Replicates that repeat each other count as one: the first.
    """
    # Selecting columns first makes it fast to select rows.
    samples = select_rows(frame[[*dict.fromkeys([*by, *PANEL_COLUMNS])]], ~frame["is_swap"])
    samples = once_per_call(samples, [*by, JUDGE])
    names, evidence = (pd.factorize(samples[name], sort=True)[1] for name in (JUDGE, "evidence"))
    for group, part in _numbered(samples).groupby([samples[name] for name in by], observed=True):
        rows = first_replicates(part)
        judges, judge = np.unique(rows[JUDGE], return_inverse=True)
        items, item = np.unique(rows["evidence"], return_inverse=True)
        yield Verdicts(
            key=dict(zip(by, group, strict=True)),
            setups=tuple(map(str, names[judges])),
            units=tuple(evidence[items].tolist()),
            n_stages=int(rows["n_stages"].max()),
            ordinal=not rows["nominal"].any(),
            rows=rows,
            setup=judge,
            unit=item,
            mask=rows["mask"].to_numpy(),
            clusters=pd.factorize(rows["cluster"].to_numpy()[first_rows(item)])[0],
        )


def _numbered(rows: pd.DataFrame) -> pd.DataFrame:
    """Puts numbers in place of texts, which are slow to select and to compare."""
    texts = (JUDGE, "evidence", "rubric", "series")
    display = rows["display"].where(rows["display"] != "")
    columns = {
        **{name: pd.factorize(rows[name], sort=True)[0] for name in texts},
        "repetition": rows.groupby(["series", "replicate"]).ngroup(),
        "shown": rows.groupby(["replicate", "flipped", "rubric_draw"]).ngroup(),
        "display": pd.factorize(display)[0],  # -1 if it is unknown
        "cluster": cluster_codes(rows),
        "nominal": rows["rubric_kind"] == "nominal",
        "abstained": rows["status"] == "abstained",
        "unreadable": ~rows["status"].isin(["scored", "abstained"]),
    }
    numbers = ["mask", "n_stages", "rubric_draw", "flipped", "probe", "repeats"]
    return pd.DataFrame(columns | {name: rows[name] for name in numbers})


# --- slices by task -----------------------------------------------------------------------------

CELL_COLUMNS = (
    *("evidence", "call_id", "mask", "n_stages", "status", "rubric_kind", "truth", "display"),
    *("probe", "probe_call_id", "rubric", "rubric_draw", "flipped", "cluster", "repeats"),
)
"""The columns of samples that values of cells are made of."""


def task_slices(
    frame: pd.DataFrame, by: Sequence[str], kept: npt.ArrayLike | None = None
) -> Iterator[Verdicts]:
    """Yields the verdicts of each task, each call once, with groups of samples as setups.

    Unlike those of panels, replicates that repeat each other all count.

    Args:
        frame: tidy samples.
        by: the columns whose values make a setup, the task among them if it separates samples.
        kept: which samples to take; all by default.
    """
    # Selecting columns first makes it fast to select rows.
    samples = frame[[name for name in dict.fromkeys([*by, *CELL_COLUMNS]) if name in frame]]
    samples = once_per_call(samples if kept is None else select_rows(samples, kept), by)
    other_columns = [name for name in by if name != "task"]
    # Numbers of all tasks together: grouping each task by its texts takes several times as long.
    task, tasks = np.zeros(len(samples), dtype=np.int64), pd.Index([None])
    if "task" in by:
        task, tasks = pd.factorize(samples["task"], sort=True)
    group = np.zeros(len(samples), dtype=np.int64)
    if other_columns:
        group = samples.groupby(other_columns, observed=True).ngroup().to_numpy().astype(np.int64)
    item, evidence = pd.factorize(samples["evidence"].to_numpy(), sort=True)
    for number, name in enumerate(tasks):
        here = np.flatnonzero(task == number)
        rows = samples.take(here) if len(tasks) > 1 else samples
        setup, (items, unit) = _used_numbers(group[here])[1], _used_numbers(item[here])
        names = rows[other_columns].iloc[first_rows(setup)].itertuples(index=False, name=None)
        yield Verdicts(
            key={"task": name} if "task" in by else {},
            setups=tuple(names),
            units=tuple(evidence[items].tolist()),
            n_stages=int(rows["n_stages"].max()) if len(rows) else 0,
            ordinal=bool((rows["rubric_kind"] != "nominal").all())
            if "rubric_kind" in rows
            else True,
            rows=rows,
            setup=setup,
            unit=unit,
            mask=rows["mask"].to_numpy(),
            clusters=cluster_codes(rows.iloc[first_rows(unit)]),
        )


def _used_numbers(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Lists the numbers that occur, and each row's index among them, without a sort."""
    occurs = np.bincount(codes) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def cell_names(
    verdicts: Verdicts, by: Sequence[str]
) -> tuple[pd.DataFrame, tuple[IntArray, IntArray]]:
    """Names the cells of a slice that have samples, and says where values of cells have them.

    Columns: `by`, evidence, cluster.
    """
    first = first_rows(verdicts.setup * len(verdicts.units) + verdicts.unit)
    names = verdicts.rows[[*dict.fromkeys([*by, "evidence", "cluster"])]].take(first)
    return names.reset_index(drop=True), (verdicts.unit[first], verdicts.setup[first])


def list_cells(
    verdicts: Verdicts, by: Sequence[str], values: Mapping[str, FloatArray]
) -> pd.DataFrame:
    """Lists the cells of a slice that have samples: `by`, evidence, cluster, then their values."""
    names, cells = cell_names(verdicts, by)
    columns = pd.DataFrame({name: of_cells[cells] for name, of_cells in values.items()})
    return pd.concat([names, columns], axis=1)


def without_draws(verdicts: Verdicts) -> Iterator[tuple[int, IntArray, Verdicts]]:
    """Yields each draw of rubrics, the setups with many draws that have it, and them without it."""
    if "rubric_draw" not in verdicts.rows:
        return
    draw = verdicts.rows["rubric_draw"].to_numpy()
    draws, number = np.unique(draw, return_inverse=True)
    if len(draws) < MANY_DRAWS:
        return
    has = np.zeros((len(verdicts.setups), len(draws)), dtype=bool)
    has[verdicts.setup, number] = True
    many = has.sum(axis=1) >= MANY_DRAWS
    for column, name in enumerate(draws):
        lacking = many & has[:, column]
        if lacking.any():
            rows = lacking[verdicts.setup] & (number != column)
            yield int(name), np.flatnonzero(lacking), verdicts.on(rows)


# --- slices by setup ----------------------------------------------------------------------------


def of_setups(
    own: pd.DataFrame,
    setups: Sequence[Setup],
    people: pd.DataFrame | None = None,
    preparation: pd.DataFrame | None = None,
) -> Verdicts:
    """Takes the verdicts of setups together, with known answers, people's labels and prices.

    Args:
        own: tidy samples without swaps, which the rows of the setups point into.
        setups: the setups, from `setups_of`.
        people: raters' stages, with columns tag, evidence, rater, stage.
        preparation: the calls for views and rubrics, with columns tag, evidence (of a view) or
            rubric, usd, seconds. They count in full for each setup that needs them.
    """
    columns = [name for name in dict.fromkeys([JUDGE, *SETUP_COLUMNS, CATEGORY]) if name in own]
    every = _with_preparation(own[columns], preparation)
    unit = every.groupby(UNIT, observed=True).ngroup().to_numpy().astype(np.int64)
    first = first_rows(unit)
    units = every[UNIT].iloc[first]
    is_asked = (every["status"] != "provider_error").to_numpy()
    every = every.assign(
        unit=unit,
        asked=is_asked,
        abstained=every["status"] == "abstained",
        unreadable=is_asked & ~every["status"].isin(["scored", "abstained"]),
    )
    labels = _labels(every, people)
    references = dict(_references(every, labels))
    indexes = [_once_per_unit(every, setup.index) for setup in setups]
    index = np.concatenate([np.array([], dtype=np.int64), *indexes])
    rows = every.iloc[index].reset_index(drop=True)
    return Verdicts(
        key={},
        setups=tuple(setup.name for setup in setups),
        units=tuple(units.itertuples(index=False, name=None)),
        n_stages=int(every["n_stages"].max()) if len(every) else 0,
        ordinal=bool((every["rubric_kind"] == "ordinal").all()),
        rows=rows,
        setup=np.repeat(np.arange(len(setups)), [len(part) for part in indexes]),
        unit=unit[index],
        mask=rows["mask"].to_numpy(),
        clusters=_unit_clusters(every.iloc[first]),
        references={kind: reference.on(index) for kind, reference in references.items()},
        raters=labels,
    )


def _once_per_unit(rows: pd.DataFrame, index: IntArray) -> IntArray:
    """Leaves out the rows whose call a setup has on the same unit already."""
    calls = rows[["unit", "call_id"]].iloc[index]
    again = calls.duplicated().to_numpy() & calls["call_id"].notna().to_numpy()
    return index[~again]


def _unit_clusters(units: pd.DataFrame) -> IntArray:
    """Numbers the cluster of each unit. An item is one cluster, whatever it is judged about."""
    names = units["evidence"].astype(str)
    cluster = units["cluster"].astype(str)
    names = names.where(cluster == "", "cluster " + cluster)
    return pd.factorize(names)[0].astype(np.int64)


def _with_preparation(own: pd.DataFrame, preparation: pd.DataFrame | None) -> pd.DataFrame:
    """Adds the price and time of the view and of the rubric that each verdict needed."""
    for kind, key in (("view", "evidence"), ("rubric", "rubric")):
        names = {name: f"{kind}_{name}" for name in ("usd", "seconds")}
        if preparation is None or preparation.empty or preparation[key].isna().all():
            own = own.assign(**dict.fromkeys(names.values(), 0.0))
            continue
        calls = preparation.loc[preparation[key].notna(), ["tag", key, *names]]
        calls = calls.drop_duplicates(["tag", key]).astype({key: own[key].dtype})
        own = own.merge(
            calls.rename(columns=names).assign(prepared=True), on=["tag", key], how="left"
        )
        none = own.pop("prepared").isna()
        own[[*names.values()]] = own[[*names.values()]].astype(float).mask(none, 0.0)
    return own


def _labels(rows: pd.DataFrame, people: pd.DataFrame | None) -> pd.DataFrame:
    """Lists people's labels with their unit, each as often as experiments have it."""
    if people is None or people.empty:
        return pd.DataFrame({"tag": [], "evidence": [], "rater": [], "stage": [], "unit": []})
    for column in LABEL_COLUMNS:
        if column not in people:
            raise DesignError(
                f"labels have no column {column!r}; they need {', '.join(LABEL_COLUMNS)}",
                choices=LABEL_COLUMNS,
            )
    items = rows[["tag", "evidence", "unit"]].drop_duplicates()
    labels = people[[*LABEL_COLUMNS]].merge(items, on=["tag", "evidence"])
    highest = int(rows["n_stages"].max()) if len(rows) else 0
    outside = labels[(labels["stage"] < 1) | (labels["stage"] > highest)]
    if len(outside):
        stage, rater = outside[["stage", "rater"]].iloc[0]
        raise DesignError(f"stage {stage} by rater {rater!r}; choose 1 to {highest}")
    return labels


def _references(rows: pd.DataFrame, labels: pd.DataFrame) -> Iterator[tuple[TruthKind, Reference]]:
    """Yields what the verdicts can be compared with: known answers, people's labels."""
    stages = int(rows["n_stages"].max()) if len(rows) else 0
    truth = pd.to_numeric(rows["truth"], errors="coerce").to_numpy(dtype=float)
    has_answer = truth >= 1
    if has_answer.any():
        answers = np.zeros((len(rows), stages))
        answers[has_answer, truth[has_answer].astype(int) - 1] = 1.0
        yield "accuracy", _reference("accuracy", rows, answers)
    if len(labels):
        counts = pd.crosstab([labels["tag"], labels["evidence"]], labels["stage"])
        counts = counts.reindex(columns=range(1, stages + 1), fill_value=0)
        index = counts.index.get_indexer(pd.MultiIndex.from_frame(rows[["tag", "evidence"]]))
        votes = np.where((index >= 0)[:, None], counts.to_numpy(dtype=float)[index], 0.0)
        yield "agreement", _reference("agreement", rows, votes)


def _reference(kind: TruthKind, rows: pd.DataFrame, votes: FloatArray) -> Reference:
    """Compares verdicts with the votes of their units, by row and stage.

    A verdict without a score agrees with none; a failed call is not compared.
    """
    total, top = votes.sum(axis=1, keepdims=True), votes.max(axis=1, keepdims=True)
    labels = votes / np.maximum(total, 1)
    first = (votes == top) & (top > 0)
    clear = np.where(first.sum(axis=1, keepdims=True) == 1, first, 0.0)
    compared = rows["asked"].to_numpy() & (total[:, 0] > 0)
    right = np.where(compared, _agreement(rows, labels), np.nan)
    settled = rows["asked"].to_numpy() & (clear.sum(axis=1) > 0)
    majority = np.where(settled, _agreement(rows, clear), np.nan)
    return Reference(kind, labels, right, majority)


def _agreement(rows: pd.DataFrame, labels: FloatArray) -> FloatArray:
    """Computes the share of labels that each verdict agrees with. A subset is spread equally.

    A tie on a pair counts one half where no answer or label of the concept is a tie.
    """
    masks = rows["mask"].to_numpy()
    is_stage = (masks[:, None] >> np.arange(labels.shape[1])) & 1
    share: FloatArray = (is_stage * labels).sum(axis=1) / np.maximum(is_stage.sum(axis=1), 1)
    pair = rows["pair"].to_numpy(dtype=bool)
    if pair.any() and labels.shape[1] >= TIE:
        has_ties = pd.Series(labels[:, TIE - 1] > 0).groupby(rows["concept"].to_numpy())
        half = pair & (masks == 1 << (TIE - 1)) & ~has_ties.transform("any").to_numpy()
        share[half] = 0.5
    return share


# --- means over units ---------------------------------------------------------------------------


def mean_over_items(
    verdicts: Verdicts,
    values: Callable[[Verdicts], FloatArray],
    scale: Scale = DISTANCE,
    *,
    mean_over_draws: bool = False,
) -> Estimate:
    """Averages a value over units, with an interval that covers many draws of rubrics too.

    `values` computes one value per unit of a slice; NaN if a unit has none.
    """
    without = [values(part) for part in verdicts.without_each_draw] if verdicts.many_draws else []
    return estimate(
        values(verdicts),
        verdicts.clusters,
        scale=scale,
        without=without,
        mean_over_draws=mean_over_draws,
    )


def mean_of_cells(
    verdicts: Verdicts,
    cells: Callable[[Verdicts], FloatArray],
    scale: Scale = DISTANCE,
    setup: int = ALL_SETUPS,
) -> Estimate:
    """Averages the cells of one setup over units, or the mean of all setups.

    `cells` computes one value per unit and setup of a slice.
    """

    def values(of: Verdicts) -> FloatArray:
        return row_means(cells(of)) if setup == ALL_SETUPS else cells(of)[:, setup]

    return mean_over_items(verdicts, values, scale, mean_over_draws=True)


def once_per_slice(values: Callable[[Verdicts], Result]) -> Callable[[Verdicts], Result]:
    """Keeps the results of a function of a slice for as long as the slice lives."""
    results: WeakKeyDictionary[Verdicts, Result] = WeakKeyDictionary()

    @wraps(values)
    def remembered(verdicts: Verdicts) -> Result:
        if verdicts not in results:
            results[verdicts] = values(verdicts)
        return results[verdicts]

    return remembered


def part_of(
    cells: Callable[[Verdicts], Mapping[str, FloatArray]], name: str
) -> Callable[[Verdicts], FloatArray]:
    """Makes a function that selects one of several values computed together."""
    return lambda verdicts: cells(verdicts)[name]


def ratio(sums: FloatArray | IntArray, n: FloatArray | IntArray) -> FloatArray:
    """Divides, where a denominator that is not positive gives not a number.

    >>> ratio(np.array([1.0, 0.0]), np.array([2, 0])).tolist()
    [0.5, nan]
    """
    quotient: FloatArray = np.divide(sums, n, out=np.full(np.shape(sums), np.nan), where=n > 0)
    return quotient


def row_means(values: FloatArray) -> FloatArray:
    """Averages each row, ignoring missing values."""
    has_value = ~np.isnan(values)
    return ratio(np.where(has_value, values, 0.0).sum(axis=1), has_value.sum(axis=1))


Samples = Union[pd.DataFrame, "Dataset"]
"""A tidy frame, or a dataset that shares its results with other analyses."""


class Dataset:
    """A tidy frame that keeps the results of analyses which several others read."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._results: dict[Hashable, Any] = {}

    @staticmethod
    def of(samples: Samples) -> "Dataset":
        """Wraps a frame in a dataset, and leaves a dataset as it is."""
        return samples if isinstance(samples, Dataset) else Dataset(samples)

    def compute(self, analysis: Callable[[pd.DataFrame], Result]) -> Result:
        """Runs an analysis of the frame on the first call, and remembers its result."""
        if analysis not in self._results:
            self._results[analysis] = analysis(self.frame)
        result: Result = self._results[analysis]
        return result

    def derive(self, make: Callable[..., Result], *options: Hashable) -> Result:
        """Makes something of the dataset with some options once, and remembers it."""
        if (make, options) not in self._results:
            self._results[make, options] = make(self, *options)
        result: Result = self._results[make, options]
        return result

    @cached_property
    def panels(self) -> tuple[Verdicts, ...]:
        """The judges of each task and variant, under the rubrics of their designs."""
        return tuple(panels(self.frame))

    @cached_property
    def tasks(self) -> tuple[Verdicts, ...]:
        """The verdicts of each task, with each judge of each variant as a setup."""
        return tuple(task_slices(self.frame, CELL, ~self.frame["is_swap"]))

    @cached_property
    def without_pairs(self) -> "Dataset":
        """The samples that are not pairwise comparisons, which have their own rules."""
        return self._where(~self.frame["pair"])

    @cached_property
    def ordinal(self) -> "Dataset":
        """The samples under ordinal rubrics."""
        return self._where(self.frame["rubric_kind"] == "ordinal")

    @cached_property
    def own(self) -> pd.DataFrame:
        """The samples under the rubrics of their designs, without swaps."""
        return own_rows(self.frame)

    @cached_property
    def scored(self) -> bool:
        """Whether any sample without a swapped rubric has a score."""
        return bool((self.own["status"] == "scored").any())

    def _where(self, kept: pd.Series) -> "Dataset":
        rows = select_rows(self.frame, kept)
        return self if rows is self.frame else Dataset(rows)


def item_distances(
    frame: pd.DataFrame, by: Sequence[str], without: int | None = None
) -> pd.DataFrame:
    """Lists the distance of judges on items: by, judge, other, evidence, distance.

    Within a group, a judge's verdicts on an item are pooled, swaps included. The distance is NaN
    if a judge has fewer than two scored replicates. A draw of rubrics can be left out of groups
    with many draws.
    """
    parts = []
    for verdicts in panels(frame.assign(is_swap=False), by):
        if without is not None:
            verdicts = verdicts.without(without)
        pairs = list(combinations(verdicts.setups, 2))
        values = {
            "judge": [judge for judge, _ in pairs for _ in verdicts.units],
            "other": [other for _, other in pairs for _ in verdicts.units],
            "evidence": verdicts.units * len(pairs),
            "distance": verdicts.distances.T.ravel(),
        }
        parts += [pd.DataFrame(verdicts.key | values)] if pairs else []
    columns = [*by, "judge", "other", "evidence", "distance"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def distances_without_draws(frame: pd.DataFrame, by: Sequence[str]) -> list[pd.DataFrame]:
    """Computes `item_distances` without each draw of rubrics, empty if draws are few."""
    draws = frame["rubric_draw"].unique()
    if len(draws) < MANY_DRAWS:
        return []
    return [item_distances(frame, by, without=int(draw)) for draw in sorted(draws)]


def common_rubrics(frame: pd.DataFrame) -> pd.DataFrame:
    """Selects the samples under a rubric that no judge of the panel wrote."""
    return frame[~frame["rubric_author"].isin(frame[JUDGE].unique())]


def per_item(distances: pd.DataFrame, by: Sequence[str] = ()) -> pd.Series:
    """Averages distances on each item, over pairs of judges and everything not in `by`."""
    defined = distances.dropna(subset=["distance"])
    return defined.groupby([*by, "evidence"], observed=True)["distance"].mean()
