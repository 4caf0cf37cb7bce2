"""Compare: how two or more experiments differ in design, in results, and item by item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import Design
from judge_gym.errors import DesignError
from judge_gym.lab import Lab
from judge_gym.web.analysis_cache import Analyses, tidy_samples
from judge_gym.web.api.parameters import OpenLab
from judge_gym.web.pages.experiment import differences
from judge_gym.web.pages.filters import Text
from judge_gym.web.rendering import render

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.report import Chart, Section

router = APIRouter()
MAX_TAGS = 8
"""Experiments that can be compared at once."""
OFFERED = 200
"""Tags that the form offers."""
DISAGREEMENT = 25
"""Items that are listed, those on which experiments disagree most."""
Tags = Annotated[list[Text], Query(max_length=50)]


@router.get("/compare")
def compare(request: Request, lab: OpenLab, tag: Tags = []) -> Response:  # noqa: B006
    """Shows how the designs differ; the results are loaded after the page."""
    tags = _unique(tag)
    rows = lab.experiments.find_tags(tags)
    offered = lab.experiments.page_tags(limit=OFFERED).rows
    return render(
        request,
        "compare.html.j2",
        rows=rows,
        tags=tags,
        most=MAX_TAGS,
        offered=[row["tag"] for row in offered],
        differences=differences(rows) if len(rows) > 1 else [],
        query=_query(tags),
    )


@router.get("/parts/compare")
def parts(request: Request, analyses: Analyses, lab: OpenLab, tag: Tags) -> Response:
    """Returns a part of the page: the results of the comparison."""
    tags = _unique(tag)
    lab.experiments.find_tags(tags)  # refuses tags that do not exist
    results = analyses.get(analyse, tags)
    return render(request, "_compare.html.j2", tags=tags, query=_query(tags), results=results)


def _unique(tags: Sequence[str | None]) -> list[str]:
    chosen = list(dict.fromkeys(tag for tag in tags if tag))
    if len(chosen) > MAX_TAGS:
        raise DesignError(f"{len(chosen)} experiments are too many to compare; {MAX_TAGS} at most")
    return chosen


def _query(tags: Sequence[str]) -> str:
    return urlencode([("tag", tag) for tag in tags])


@dataclass(frozen=True, slots=True)
class ComparisonResults:
    """The comparison of experiments."""

    sections: "tuple[Section, ...]"
    names: dict[str, str]
    """A short name for each experiment: what sets it apart from the others."""
    effects: list[dict[str, Any]]
    """Contrasts of two experiments, one row per endpoint."""
    refused: list[dict[str, str]]
    """Pairs of experiments that cannot be compared, and the reason."""
    disagreement: list[dict[str, Any]]
    """Items with the expected stage in each experiment, those with the widest range first."""
    without_samples: list[str]

    @property
    def summary(self) -> list[str]:
        """One sentence per contrast on where it moves the verdicts."""
        return [_sentence(row) for row in self.effects if row["endpoint"] == "stage"]


def _sentence(effect: Mapping[str, Any]) -> str:
    level, base, value = effect["level"], effect["base"], effect["value"]
    low, high = effect["low"], effect["high"]
    if any(number is None or number != number for number in (value, low, high)):
        return f"{level} against {base}: too few items for an interval."
    interval = f"95 % interval {low:+.2f} to {high:+.2f}, {effect['items']} items"
    if low <= 0 <= high:
        return f"{level} against {base}: no clear effect on the verdicts ({interval})."
    direction = "higher" if value > 0 else "lower"
    return f"{level} places items {abs(value):.2f} {direction} than {base} ({interval})."


def analyse(lab: Lab, tags: tuple[str, ...]) -> ComparisonResults:
    """Computes the contrast of every two experiments, and the items on which they disagree most."""
    from judge_gym.analysis.figures import forest_figure
    from judge_gym.analysis.panels import Dataset
    from judge_gym.analysis.report import ReportInput, disagreement
    from judge_gym.analysis.report.page import Chart, section

    rows = {row["tag"]: row for row in lab.experiments.find_tags(tags)}
    names = _names(list(rows.values()))
    frame = tidy_samples(lab, tags)
    sampled = set() if frame is None else set(frame["tag"])
    without_samples = [tag for tag in tags if tag not in sampled]
    if frame is None:
        return ComparisonResults((), names, [], [], [], without_samples)
    frame = _common_series(frame)
    own = frame[~frame["is_swap"] & ~frame["pair"]]
    effects, refused = _effects(own, [tag for tag in tags if tag in sampled], rows)
    cells, on_stage = _cells(own), effects[effects["endpoint"] == "stage"]
    parts = [
        section(
            "Effects",
            "Level minus base, paired by item; intervals are 95 %.",
            charts=[Chart("Effects on the expected stage", forest_figure, on_stage)],
        ),
        section(
            "Item by item",
            "The expected stage of each item in each experiment; 0 is the first stage, 1 the last.",
            charts=[_heat(cells, names)],
        ),
        disagreement.disagreement(ReportInput(Dataset(frame))),
    ]
    return ComparisonResults(
        sections=tuple(part for part in parts if part is not None),
        names=names,
        effects=[dict(zip(map(str, effects), row, strict=True)) for row in effects.to_numpy()],
        refused=refused,
        disagreement=_disagreement(cells),
        without_samples=without_samples,
    )


def _names(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns a name for each experiment: its differing levels, or its tag if those repeat."""
    knobs = differences(rows) if len(rows) > 1 else []
    knobs.sort(key=lambda knob: knob["name"] != "judge.model")
    names = {
        row["tag"]: " · ".join(_level(knob["name"], knob["levels"][place]) for knob in knobs)
        for place, row in enumerate(rows)
    }
    unique = len(set(names.values())) == len(names)
    return names if knobs and unique else {row["tag"]: row["tag"] for row in rows}


def _level(name: str, level: Any) -> str:
    """Returns a level as a name; a number or a boolean is preceded by its knob's name."""
    return level if isinstance(level, str) and level else f"{name.rpartition('.')[2]} {level}"


def _common_series(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Returns the samples of the newest series that all experiments share, else all samples."""
    shared = set.intersection(*(set(part["series"]) for _, part in frame.groupby("tag")))
    newest = frame.loc[frame["series"].isin(shared)].sort_values("run")["series"]
    return frame[frame["series"] == newest.iloc[-1]] if len(newest) else frame


def _effects(
    own: "pd.DataFrame", tags: Sequence[str], rows: Mapping[str, Mapping[str, Any]]
) -> "tuple[pd.DataFrame, list[dict[str, str]]]":
    """Returns the contrast of every two experiments, and the pairs that analysis refuses."""
    import pandas as pd

    from judge_gym.analysis.frames import JUDGE, tidy
    from judge_gym.analysis.stats.contrasts import (
        COLUMNS,
        changed_knobs,
        contrasts,
        judge_contrasts,
        register,
    )

    tables, refused = [], []
    for base, level in combinations(tags, 2):
        both = own[own["tag"].isin((base, level))]
        try:
            if both["tag"].nunique() < 2:
                raise DesignError("they are the same experiment, or one has no verdicts to compare")
            both = tidy(both)
            if both["task"].nunique() > 1:
                raise DesignError(f"they judge different tasks: {', '.join(both['task'].unique())}")
            designs = [Design.of(rows[tag]["design"]) for tag in (level, base)]
            knobs = changed_knobs(*designs)
            if JUDGE in knobs and len(knobs) > 1:
                raise DesignError(f"a contrast varies one knob; they differ in {', '.join(knobs)}")
            if knobs == (JUDGE,):
                table = judge_contrasts(both)
            else:
                task = str(both["task"].iloc[0])
                series = both.drop_duplicates("tag").set_index("tag")["series"]
                levels = [
                    {**design.values(), "series": series[tag]}
                    for design, tag in zip(designs, (level, base), strict=True)
                ]
                table = contrasts(both, [register(both, *levels, task=task)])
            of = {"of": level, "against": base}
            if knobs == (JUDGE,) and str(table["level"].iloc[0]) != designs[0].judge.model:
                of = {"of": base, "against": level}
            tables.append(table.assign(**of))
        except DesignError as error:
            refused.append({"of": level, "against": base, "reason": str(error)})
    columns = [*COLUMNS, "of", "against"]
    return (
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)
    ), refused


def _cells(own: "pd.DataFrame") -> "pd.DataFrame":
    """Returns the expected stage of each item in each experiment, for ordinal rubrics."""
    import pandas as pd

    from judge_gym.analysis.endpoints import expected_stage
    from judge_gym.analysis.frames import ordinal

    by = ["task", "evidence", "evidence_title", "tag"]
    placed = own[(own["rubric_kind"] == "ordinal") & (own["status"] == "scored")]
    if placed.empty:
        return pd.DataFrame(columns=[*by, "mean"])
    keyed = placed.assign(item=placed["evidence"])
    cells = expected_stage(ordinal(keyed), ["task", "item", "evidence_title", "tag"])
    return cells.rename(columns={"item": "evidence"})


def _heat(cells: "pd.DataFrame", names: Mapping[str, str]) -> "Chart":
    from judge_gym.analysis import figures
    from judge_gym.analysis.frames import JUDGE
    from judge_gym.analysis.report.page import Chart

    if cells.empty:
        return Chart("Heat map", figures.heat_figure, cells)
    titles = cells.drop_duplicates("evidence").set_index("evidence")["evidence_title"].astype(str)
    repeated = titles.duplicated(keep=False)
    item = titles.where(~repeated, titles + " (" + titles.index.astype(str) + ")")
    drawn = cells.assign(item=cells["evidence"].map(item), **{JUDGE: cells["tag"].map(names)})
    finding = figures.heat_figure.finding(drawn).replace("Judges", "Experiments")
    return Chart("Heat map", figures.heat_figure, drawn, finding)


def _disagreement(cells: "pd.DataFrame") -> list[dict[str, Any]]:
    """Returns the items with the widest range between experiments."""
    rows = []
    for _, part in cells.groupby(["task", "evidence"], sort=False):
        if part["tag"].nunique() < 2:
            continue
        task, evidence, title = part[["task", "evidence", "evidence_title"]].iloc[0]
        means = dict(zip(part["tag"], part["mean"].astype(float), strict=True))
        rows.append(
            {
                "task": task,
                "evidence": int(evidence),
                "title": str(title),
                "range": max(means.values()) - min(means.values()),
                "means": means,
            }
        )
    return sorted(rows, key=lambda row: -row["range"])[:DISAGREEMENT]
