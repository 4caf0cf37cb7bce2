"""The tidy frame that every analysis reads: one row per sample, one column per knob.

It comes from a lab (`lab.experiments.samples`), from an exported file, or from verdicts recorded
elsewhere. Six columns are required; the others have defaults. Each column has one type, whatever
its source: text is `str`; knobs other than the judge are `category`, because a million repeated
words take little memory then.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NewType, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from judge_gym.analysis.belief.masses import stage_masks
from judge_gym.axes import FOREIGN, Design, defaults
from judge_gym.errors import DesignError, unknown
from judge_gym.records import STATUSES, TaskType

Parsed = TypeVar("Parsed")
TEXT = pd.StringDtype("python", na_value=np.nan)
"""Text as Python strings, each distinct one once: small frames, which analyses make by the hundred,
are grouped in two thirds of the time that Arrow strings take; large ones take longer."""
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


class Columns:
    """Reads the columns of a frame.

    A missing column counts as one of empty cells. `empty` is the value of empty cells; None keeps
    them missing.
    """

    def __init__(self, frame: pd.DataFrame, source: str) -> None:
        self._frame = frame.reset_index(drop=True)
        self._source = source

    def text(self, name: str, empty: str | None = "") -> pd.Series:
        """Reads a column of text."""
        codes, texts = self._parsed(name, _text)
        filled = [empty if text == "" else text for text in texts]
        return pd.Series(pd.array(filled, dtype=TEXT).take(codes))

    def required_text(self, name: str) -> pd.Series:
        """Reads a column of text without empty cells."""
        values = self.text(name)
        self.check(name, values != "", "is missing")
        return values

    def one_of(self, name: str, choices: Sequence[str], empty: str | None = None) -> pd.Series:
        """Reads a column of the given choices. Empty cells need `empty`."""
        values = self.text(name, empty or "")
        for value in values.unique():
            if value not in choices and value != empty:
                row = int((values == value).argmax()) + 1
                message = unknown(name, value, choices, self._source)
                raise DesignError(f"{message} (sample {row})", choices=choices)
        return values

    def ids(self, name: str, empty: int | None = None) -> pd.Series:
        """Reads a column of integers, or of text if some cell is not an integer."""
        values = self._column(name)
        if is_numeric_dtype(values.dtype) and not (values % 1 > 0).any():
            return self.integers(name, empty)
        return self.required_text(name) if empty is None else self.text(name, str(empty))

    def levels(self, name: str, empty: str = "") -> pd.Series:
        """Reads a column of repeated text as sorted categories."""
        codes, texts = self._parsed(name, _text)
        names, index = np.unique([text or empty for text in texts], return_inverse=True)
        return pd.Series(pd.Categorical.from_codes(index[codes], names.tolist()))

    def flags(self, name: str) -> pd.Series:
        """Reads a column of booleans, in which an empty cell is false."""
        if self._column(name).dtype == bool:
            return self._column(name)
        codes, texts = self._parsed(name, lambda value: _text(value).lower() or "false")
        is_flag = np.array([text in _FLAGS for text in texts])
        self.check(name, pd.Series(is_flag[codes]), "is neither true nor false")
        return pd.Series(np.array([_FLAGS[text] for text in texts])[codes])

    def numbers(self, name: str, low: float = -np.inf, high: float = np.inf) -> pd.Series:
        """Reads a column of numbers, in which an empty cell is not a number."""
        values = self._column(name)
        if not isinstance(values.dtype, np.dtype) or values.dtype.kind not in "iuf":
            codes, parsed = self._parsed(name, _number)
            wrong = np.array([number is None for number in parsed])
            self.check(name, pd.Series(~wrong[codes]), "is not a number")
            values = pd.Series(np.array(parsed, dtype=float)[codes])
        inside = values.between(low, high) | values.isna()
        self.check(name, inside, f"is not between {low} and {high}")
        return values

    def integers(self, name: str, empty: int | None = None) -> pd.Series:
        """Reads a column of integers."""
        values = self.numbers(name)
        if is_integer_dtype(values.dtype):
            return values
        if empty is not None:
            values = values.fillna(empty)
        self.check(name, values % 1 == 0, "is not a whole number")
        return values.astype("int64")

    def numbers_or_text(self, name: str) -> pd.Series:
        """Reads a column of numbers if every cell that is not empty is one, else of text."""
        codes, parsed = self._parsed(name, _number)
        if None in parsed:
            return self.text(name, None)
        return pd.Series(np.array(parsed, dtype=float)[codes])

    def check(self, name: str, valid: pd.Series, problem: str) -> None:
        """Refuses the first cell that is not valid, with its value and row."""
        if not valid.all():
            row = int(valid.to_numpy(dtype=bool).argmin())
            value = self._column(name).iloc[row]
            text = repr(value) if isinstance(value, str) else str(value)
            text = "" if pd.isna(value) or value == "" else f" {text}"
            raise DesignError(f"{self._source}: {name}{text} of sample {row + 1} {problem}")

    def _column(self, name: str) -> pd.Series:
        if name in self._frame:
            return self._frame[name]
        return pd.Series(np.full(len(self._frame), np.nan))

    def _parsed(
        self, name: str, parse: Callable[[Any], Parsed]
    ) -> tuple[npt.NDArray[np.intp], list[Parsed]]:
        """Parses the distinct values of a column, and codes each row by its value."""
        codes, distinct = pd.factorize(self._column(name), use_na_sentinel=False)
        return codes, [parse("" if pd.isna(value) else value) for value in distinct]


def _text(value: Any) -> str:
    # Integers with an empty cell among them are read as floats: 3.0 was written as 3.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: Any) -> float | None:
    """Parses a number: NaN for an empty cell, None for anything else."""
    try:
        return float(value) if value != "" else np.nan
    except ValueError:
        return None


JUDGE = "judge.model"
PANEL = ["task", "variant"]
"""All judges of one task under one design."""
CELL = [*PANEL, JUDGE]
"""One configured judge on one task; with `evidence`, a cell of the design."""
ITEM = [*CELL, "evidence"]
"""One configured judge on one evidence item."""
CELL_OF_REPLICATES = [*ITEM, "series", "rubric", "rubric_draw", "flipped", "is_swap"]
"""The columns that the replicates of one cell share."""
REPEATED_FROM = 0.5
"""The share of pairs of replicates with the same text above which replicates count as one."""
NEEDED = (JUDGE, "evidence", "replicate", "status", "stages", "n_stages")
KINDS = ("ordinal", "nominal")
"""The kinds of rubrics."""
_TASK = ["concept", "task_type", "country", "pool"]
NAMES_APART = " | "
"""What separates the names of stages in the column `stage_names`."""
_TEXTS = {
    **dict.fromkeys(
        ("stages", "tag", "study", "protocol", *_TASK, "series", "display", "cluster", "answer"), ""
    ),
    "stage_names": "",
    **{"rubric_author": "provided", "probe_status": None},
}
"""Text columns, with the value of an empty cell."""
TEXTS = (
    *_TEXTS,
    *(JUDGE, "evidence", "evidence_title", "status", "rubric_kind", "reported_model"),
)
"""Columns, beside knobs, that a file reader leaves as text; evidence may be numbered."""
_ORDER = [JUDGE, "evidence", "replicate", "task", "variant", "series", "is_swap", "rubric_draw"]
_ORDER += ["rubric", "flipped", "tag", "call_id", "mask", "probe"]
_DISPLAY = re.compile(r"\S+=\d+(?: \S+=\d+)*")
_WHOLE = re.compile(r"\b(\d+)\.0+\b")
"""A stage as a spreadsheet may write it."""
_NUMBERS = (
    "dose",
    "probe_call_id",
    "observability",
    "discriminability",
    "call_id",
    "usd",
    "seconds",
    "length",
)


def tidy(samples: pd.DataFrame, *, source: str = "the frame") -> pd.DataFrame:
    """Validates samples and adds the columns that analyses share.

    Added are `mask` (one bit per chosen stage; 0 if none was scored), `task` (a name for concept,
    type, country and pool), `variant` (the levels of what varies within the task) and `repeats`
    (whether the judge's replicates repeat each other, so that they count as one). Columns that
    are not judge-gym's stay as they are. Rows are sorted, so that results do not depend on the
    order of the input.

    Args:
        samples: at least the columns of `NEEDED`.
        source: the name of the samples in error messages.
    """
    if missing := [column for column in NEEDED if column not in samples]:
        raise DesignError(
            f"{source} has no column {', '.join(map(repr, missing))}; samples need "
            f"{', '.join(NEEDED)}",
            choices=NEEDED,
        )
    if samples.empty:
        raise DesignError(f"{source} has no samples")
    read = Columns(samples, source)
    columns = {
        JUDGE: read.required_text(JUDGE),
        "evidence": read.ids("evidence"),
        "rubric": read.ids("rubric", 0),
        "status": read.one_of("status", STATUSES),
        "rubric_kind": read.one_of("rubric_kind", KINDS, "ordinal"),
        **{name: read.text(name, empty) for name, empty in _TEXTS.items()},
        "task_type": read.one_of("task_type", get_args(TaskType), ""),
        **{name: read.flags(name) for name in ("pair", "flipped", "is_swap")},
        **{name: read.integers(name) for name in ("replicate", "n_stages")},
        "rubric_draw": read.integers("rubric_draw", 0),
        **{name: read.numbers(name) for name in _NUMBERS},
        **{name: read.numbers(name, 0, 1) for name in ("probe", "reference")},
        "truth": read.numbers_or_text("truth"),
        **_knobs(read, samples),
    }
    titles = "evidence_title" if "evidence_title" in samples else "evidence"
    models = "reported_model" if "reported_model" in samples else JUDGE
    columns |= {"evidence_title": read.text(titles), "reported_model": read.text(models, None)}
    columns["stages"] = _whole_stages(columns["stages"])
    frame = samples.reset_index(drop=True).assign(**columns)
    frame = with_variant(frame.assign(mask=_masks(frame, source), task=task_names(frame)))
    frame = _with_named_settings(frame, read, samples)
    _refuse_contradictions(frame, read)
    return _sorted(frame.assign(repeats=_repeats(frame)))


def _with_named_settings(frame: pd.DataFrame, read: Columns, samples: pd.DataFrame) -> pd.DataFrame:
    """Adds what a variant or tag of recorded verdicts tells apart, and no knob, as a setting.

    Otherwise verdicts under two prompts would count as repeats of each other.
    """
    cell = ["task", JUDGE, "variant", "rubric_author"]
    if "variant" in samples:
        variant = read.levels("variant")
        if _tells_more(frame[cell], variant):
            frame = with_variant(frame.assign(**{f"{FOREIGN}variant": variant}))
    # A lab's tags differ by knobs, or name the same calls.
    if (
        "tag" in samples
        and frame["call_id"].isna().all()
        and _tells_more(frame[cell], frame["tag"])
    ):
        frame = with_variant(frame.assign(**{f"{FOREIGN}tag": read.levels("tag")}))
    return frame


def _tells_more(cells: pd.DataFrame, names: pd.Series) -> bool:
    """Whether names tell rows of a cell apart."""
    named = cells.assign(name=names.to_numpy())
    return len(named.drop_duplicates()) > len(cells.drop_duplicates())


def number_truths(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """Replaces known answers in words by their stages, and refuses words that are no stage.

    Where judges wrote rubrics of their own, the word may be a stage of none, and stays.
    """
    if is_numeric_dtype(frame["truth"].dtype):
        return frame
    about = frame[["evidence", "truth", "stage_names", "n_stages", "rubric_author"]]
    truths: list[Any] = []
    for item, truth, names, scale, author in about.itertuples(index=False, name=None):
        labels = names.split(NAMES_APART) if names else []
        number = None if pd.isna(truth) else _number(truth)
        if pd.isna(truth):
            truths.append(np.nan)
        elif truth in labels:
            truths.append(float(labels.index(truth) + 1))
        elif author != "provided":
            truths.append(truth)
        elif number is not None and number % 1 == 0 and 1 <= number <= scale:
            truths.append(number)
        else:
            choices = labels or [str(stage) for stage in range(1, scale + 1)]
            message = unknown(f"truth of item {item}", truth, choices, source)
            raise DesignError(message, choices=choices)
    return frame.assign(truth=pd.Series(truths, frame.index).infer_objects())


def _knobs(read: Columns, samples: pd.DataFrame) -> dict[str, pd.Series]:
    """Reads the knobs that the samples have. The levels of all others are unknown."""
    kinds = {"text": read.levels, "true or false": read.flags}
    knobs = {
        path: kinds.get(knob.type, read.numbers)(path)
        for path, knob in Design.knobs().items()
        if path in samples and path != JUDGE
    }
    for path, knob in Design.knobs().items():
        if path in knobs and knob.type == "text" and not knob.open:
            read.one_of(path, knob.levels, "")
    foreign = {str(name): read.levels(str(name)) for name in samples if is_foreign(name)}
    # The rubric's author decides what a difference between judges means.
    return {**knobs, **foreign, "rubric.author": read.levels("rubric.author", "provided")}


def _masks(frame: pd.DataFrame, source: str) -> npt.NDArray[np.int64]:
    """Encodes the chosen stages of each sample as bits. Each distinct text is parsed once."""
    codes, texts = pd.factorize(frame["stages"])
    scored = (frame["status"] == "scored").to_numpy(dtype=bool)
    scales = frame["n_stages"].to_numpy()
    masks = np.zeros(len(frame), dtype=np.int64)
    for scale in np.unique(scales):
        rows = scored & (scales == scale)
        used = np.flatnonzero(np.bincount(codes[rows], minlength=len(texts)))
        mask_of_code = np.zeros(len(texts), dtype=np.int64)
        for code in map(int, used):
            try:
                mask_of_code[code] = stage_masks([str(texts[code])], frame=int(scale))[0]
            except (DesignError, ValueError) as error:
                row = int((rows & (codes == code)).argmax()) + 1
                what = error if isinstance(error, DesignError) else f"stages {texts[code]!r}"
                raise DesignError(
                    f"{source}: {what}; stages are written '2' or '2 3' (sample {row})"
                ) from error
        masks[rows] = mask_of_code[codes[rows]]
    empty = scored & (masks == 0)
    if empty.any():
        row = int(empty.argmax()) + 1
        raise DesignError(f"{source}: sample {row} is scored, but names no stage")
    return masks


def _whole_stages(stages: pd.Series) -> pd.Series:
    """Writes stages as whole numbers: 4.0 becomes 4."""
    codes, texts = pd.factorize(stages)
    if not any("." in text for text in texts):
        return stages
    whole_numbers = [_WHOLE.sub(r"\1", text) for text in texts]
    return pd.Series(pd.array(whole_numbers, dtype=TEXT).take(codes))


def _repeats(frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Says whether the replicates of each row's judge repeat each other.

    They do at temperature 0, and where most pairs have the same text.
    """
    cold = frame.get("judge.temperature", pd.Series(np.nan, frame.index)) == 0
    same = identical_texts(frame)
    if same.empty:
        return np.asarray(cold)
    cells = pd.MultiIndex.from_frame(frame[CELL])
    return np.asarray(cold) | (same.reindex(cells).to_numpy(float) > REPEATED_FROM)


def identical_texts(frame: pd.DataFrame) -> pd.Series:
    """Computes per configured judge the share of pairs of replicates with the same text.

    A judge without two scored replicates of known text has none. The words of a simulated judge
    follow from its verdict, and say nothing about how it was drawn.
    """
    has_text = (frame["answer"] != "") & (frame["status"] == "scored")
    has_text &= ~frame["reported_model"].fillna("").str.startswith("sim:")
    rows = frame.loc[has_text, [*CELL_OF_REPLICATES, "replicate", "answer"]]
    rows = rows.drop_duplicates([*CELL_OF_REPLICATES, "replicate"])

    def pairs(by: list[str]) -> pd.Series:
        sizes = rows.groupby(by, sort=False, observed=True).size()
        return (sizes * (sizes - 1) / 2).groupby(level=CELL, sort=False).sum()

    every = pairs(CELL_OF_REPLICATES)
    return (pairs([*CELL_OF_REPLICATES, "answer"]) / every)[every > 0]


def first_replicates(frame: pd.DataFrame) -> pd.DataFrame:
    """Leaves one replicate of each cell whose replicates repeat each other."""
    repeats = frame["repeats"].to_numpy(dtype=bool)
    if not repeats.any():
        return frame
    columns = [name for name in CELL_OF_REPLICATES if name in frame]
    first_rows_of_calls: pd.DataFrame = frame[~(repeats & frame.duplicated(columns).to_numpy())]
    return first_rows_of_calls.reset_index(drop=True)


def _refuse_contradictions(frame: pd.DataFrame, read: Columns) -> None:
    """Refuses cells that are valid by themselves but contradict each other."""
    unscored = frame["status"] != "scored"
    problem = "names a stage, but its status is not scored; leave stages empty"
    read.check("stages", ~(unscored & (frame["stages"] != "")), problem)
    truth = pd.to_numeric(frame["truth"], errors="coerce")
    most = frame.groupby("evidence", observed=True)["n_stages"].transform("max")
    valid = truth.isna() | ((truth % 1 == 0) & truth.between(1, most))
    read.check("truth", valid, "is not a stage of its scale; choose 1 to n_stages, or a label")
    codes, displays = pd.factorize(frame["display"])
    is_display = np.array([not text or bool(_DISPLAY.fullmatch(text)) for text in displays])
    problem = "is not LABEL=STAGE for each label as shown, such as 'B=1 A=2'"
    read.check("display", pd.Series(is_display[codes]), problem)
    if (frame["cluster"] != "").any():
        clusters = frame.groupby(["task", "evidence"], observed=True)["cluster"]
        problem = "differs from other samples of its item; an item belongs to one cluster"
        read.check("cluster", frame["cluster"] == clusters.transform("first"), problem)
    scale = frame.groupby(["task", "variant", "rubric", "pair"], observed=True)["n_stages"]
    if (scale.transform("nunique") > 1).any():
        usual = scale.transform(lambda part: part.mode().iloc[0])
        problem = "differs from other samples under its rubric; set rubric or rubric.scale"
        read.check("n_stages", frame["n_stages"] == usual, problem)


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    """Sorts rows in an order that does not depend on the input's."""
    codes = [pd.factorize(frame[name], sort=True)[0] for name in reversed(_ORDER)]
    order = np.lexsort(codes)
    if (np.diff(order) == 1).all():  # copying text is slow
        return frame
    return frame.take(order).reset_index(drop=True)


def task_names(frame: pd.DataFrame) -> pd.Series:
    """Names each row's task: concept, type, country, and pool if there are several."""
    cells, tasks = _distinct(frame, _TASK)
    pools = tasks.groupby(_TASK[:3])["pool"].transform("nunique")
    names = []
    for several, (concept, kind, country, pool) in zip(
        pools > 1, tasks.itertuples(index=False, name=None), strict=True
    ):
        region = f"{country}, {pool}" if country and several else country or pool
        about = ", ".join(part for part in (kind, region) if part)
        names.append((concept or "all") + (f" ({about})" if about else ""))
    return _repeated(names, cells, frame)


def knob_columns(frame: pd.DataFrame) -> list[str]:
    """Lists the columns that are knobs: those of a design, then those recorded elsewhere."""
    return [
        *(knob for knob in Design.knobs() if knob in frame.columns),
        *sorted(str(name) for name in frame.columns if is_foreign(name)),
    ]


def is_foreign(column: object) -> bool:
    """Whether a column is a choice that another tool or paper recorded: `foreign.prompt`."""
    return str(column).startswith(FOREIGN)


def varied_knobs(frame: pd.DataFrame) -> list[str]:
    """Lists the knobs, other than the judge, that take more than one value."""
    knobs = [knob for knob in knob_columns(frame) if knob != JUDGE]
    return [knob for knob in knobs if frame[knob].nunique(dropna=False) > 1]


def usual_levels(frame: pd.DataFrame) -> dict[str, Any]:
    """Looks up each knob's default under the protocol of the samples, neutral if that varies."""
    protocols = frame["protocol"].unique()
    return defaults(str(protocols[0]) if len(protocols) == 1 else "")


def with_variant(frame: pd.DataFrame) -> pd.DataFrame:
    """Adds a column `variant` that names the levels of what varies within each task.

    Differences between tasks do not count as variation. Each series is a variant of its own,
    because a retest is not a further replicate.
    """
    columns = [name for name in ("task", *varied_knobs(frame), "series") if name in frame]
    cells, levels = _distinct(frame, columns)
    names = pd.Series("base", index=levels.index)
    for _, part in levels.groupby("task"):
        varied = varied_knobs(part)
        if "series" in part and part["series"].nunique() > 1:
            varied.append("series")
        for row, *values in part[varied].itertuples(name=None):
            pairs = zip(varied, values, strict=True)
            named = ", ".join(f"{name}={level_name(level)}" for name, level in pairs)
            names[row] = named or "base"
    return frame.assign(variant=_repeated(names.tolist(), cells, frame))


def without_series(frame: pd.DataFrame) -> pd.Series:
    """Names the variant of each sample without its series, so that retests are pooled."""
    if frame["series"].nunique() < 2:
        return frame["variant"]
    return with_variant(frame.assign(series=""))["variant"]


def _distinct(frame: pd.DataFrame, columns: list[str]) -> tuple[npt.NDArray[np.intp], pd.DataFrame]:
    """Numbers each row's distinct combination, and lists the combinations."""
    groups = frame.groupby(columns, sort=False, dropna=False, observed=True)
    cells = np.asarray(groups.ngroup(), dtype=np.intp)
    return cells, frame[columns].iloc[first_rows(cells)].reset_index(drop=True)


def first_rows(code: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Finds the first row of each number from 0 on, without a slow sort of all rows."""
    first = np.flatnonzero(~pd.Series(code).duplicated())
    return first[np.argsort(code[first])]


def _repeated(names: Sequence[str], cells: npt.NDArray[np.intp], frame: pd.DataFrame) -> pd.Series:
    """Names each row's combination."""
    return pd.Series(pd.array(names, dtype=TEXT).take(cells), index=frame.index)


def level_name(level: object) -> str:
    """Writes a level as a study does."""
    if level == "" or pd.isna(level):  # type: ignore[call-overload]  # of any object
        return "unset"
    return str(level).lower() if isinstance(level, bool | np.bool_) else str(level)


def cluster_codes(rows: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Numbers each row's cluster. An item without one is a cluster of its own.

    >>> rows = pd.DataFrame({"evidence": [5, 6, 7, 6], "cluster": ["Gazette", "", "Gazette", ""]})
    >>> cluster_codes(rows).tolist()
    [0, 1, 0, 1]
    """
    item_codes = pd.factorize(rows["evidence"].to_numpy())[0].astype(np.int64)
    names_of_clusters = rows["cluster"].to_numpy(dtype=object)
    unclustered = names_of_clusters == ""
    if unclustered.all():
        return item_codes
    named, names = pd.factorize(names_of_clusters)
    return pd.factorize(np.where(unclustered, len(names) + item_codes, named))[0].astype(np.int64)


def clusters_of(frame: pd.DataFrame, items: pd.Index) -> npt.NDArray[np.int64]:
    """Numbers each item's cluster, for items by the name of their evidence."""
    first = frame[["evidence", "cluster"]].drop_duplicates("evidence").set_index("evidence")
    return cluster_codes(first.reindex(items).rename_axis("evidence").reset_index())


def select_rows(frame: pd.DataFrame, mask: npt.ArrayLike) -> pd.DataFrame:
    """Selects the rows of a mask, without a slow copy if that is all of them.

    >>> frame = pd.DataFrame({"a": [1, 2]})
    >>> select_rows(frame, [True, True]) is frame
    True
    """
    selection = np.asarray(mask, dtype=bool)
    return frame if selection.all() else frame[selection]


def scored_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Selects the samples that have a score."""
    return select_rows(frame, frame["status"] == "scored")


def own_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Selects the samples under the rubric of their own design, without swaps."""
    return select_rows(frame, ~frame["is_swap"].to_numpy(dtype=bool))


def once_per_call(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Leaves each call once per group, as rows that share a call are one observation."""
    # Few calls are shared: only those are compared in full.
    calls = frame["call_id"]
    several = np.flatnonzero(calls.duplicated(keep=False) & calls.notna())
    if not len(several):
        return frame.reset_index(drop=True)
    seen = frame[[*by, "evidence", "call_id"]].iloc[several].duplicated()
    is_first = np.full(len(frame), True)
    is_first[several[seen.to_numpy()]] = False
    return frame[is_first].reset_index(drop=True)


OrdinalFrame = NewType("OrdinalFrame", pd.DataFrame)
"""Samples under ordinal rubrics; functions that need an order accept no other frame."""


def ordinal(frame: pd.DataFrame) -> OrdinalFrame:
    """Selects samples for analyses that need ordered stages, and refuses nominal rubrics.

    Expected stages, distances of stages and weighted agreement need an order. A frame that did not
    pass through here does not type-check there.
    """
    if (frame["rubric_kind"] == "nominal").any():
        raise DesignError("options of a nominal rubric have no order: no stage can be expected")
    return OrdinalFrame(frame)
