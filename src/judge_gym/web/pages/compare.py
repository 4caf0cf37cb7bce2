"""Two or more experiments: what the difference of their designs does, and where they part."""

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
from judge_gym.web.api.answers import OpenLab
from judge_gym.web.findings import OpenFindings, tidy_samples
from judge_gym.web.pages.experiment import compared
from judge_gym.web.pages.filters import Text
from judge_gym.web.rendering import shown

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.report import Section

router = APIRouter()
MOST_TAGS = 8
"""Experiments side by side."""
OFFERED = 200
"""Tags that the form completes."""
APART = 25
"""Items on which experiments lie furthest apart that are listed."""
Tags = Annotated[list[Text], Query(max_length=50)]


@router.get("/compare")
def compare(request: Request, lab: OpenLab, tag: Tags = []) -> Response:  # noqa: B006
    """The designs side by side; what was found comes once the page is shown."""
    tags = _chosen(tag)
    rows = _rows(lab, tags)
    offered = lab.store.queries.tags_page(limit=OFFERED).rows
    return shown(
        request,
        "compare.html.j2",
        rows=rows,
        tags=tags,
        most=MOST_TAGS,
        offered=[one["tag"] for one in offered],
        differences=compared(rows) if len(rows) > 1 else [],
        query=urlencode([("tag", one) for one in tags]),
    )


@router.get("/parts/compare")
def parts(request: Request, findings: OpenFindings, lab: OpenLab, tag: Tags) -> Response:
    """What comparing experiments finds."""
    tags = _chosen(tag)
    _rows(lab, tags)
    query = urlencode([("tag", one) for one in tags])
    return shown(
        request, "_compare.html.j2", tags=tags, query=query, found=findings.of(found, tags)
    )


def _chosen(tags: Sequence[str | None]) -> list[str]:
    chosen = list(dict.fromkeys(tag for tag in tags if tag))
    if len(chosen) > MOST_TAGS:
        raise DesignError(f"{len(chosen)} experiments are too many to compare; {MOST_TAGS} at most")
    return chosen


def _rows(lab: Lab, tags: Sequence[str]) -> list[dict[str, Any]]:
    rows = lab.store.queries.tags(tags=tags) if tags else []
    return sorted(rows, key=lambda row: tags.index(row["tag"]))


@dataclass(frozen=True, slots=True)
class Compared:
    """What comparing experiments finds."""

    sections: "tuple[Section, ...]"
    names: dict[str, str]
    """What each experiment is called beside the others."""
    effects: list[dict[str, Any]]
    """Matched pairs, an endpoint each."""
    refused: list[dict[str, str]]
    """Pairs that are no contrast, and why."""
    apart: list[dict[str, Any]]
    """Items by how far experiments lie apart on them, with the expected stage of each."""
    silent: list[str]
    """Experiments without samples."""


def found(lab: Lab, tags: tuple[str, ...]) -> Compared:
    """Contrasts of every two experiments, and the items on which they lie furthest apart."""
    from judge_gym.analysis.report import disagreement
    from judge_gym.analysis.report.material import Material
    from judge_gym.analysis.report.page import section

    rows = {row["tag"]: row for row in _rows(lab, tags)}
    names = _names(list(rows.values()))
    frame = tidy_samples(lab, tags)
    seen = set() if frame is None else set(frame["tag"])
    silent = [tag for tag in tags if tag not in seen]
    if frame is None:
        return Compared((), names, [], [], [], silent)
    frame = _common_series(frame)
    own = frame[~frame["is_swap"] & ~frame["pair"]]
    effects, refused = _effects(own, [tag for tag in tags if tag in seen], rows)
    cells = _cells(own)
    parts = [
        section(
            "Effects",
            "Level minus base, paired by item; intervals are 95 %.",
            charts=[("Effects on the expected stage", _forest(effects))],
        ),
        section(
            "Item by item",
            "The expected stage of each item in each experiment; 0 is the first stage, 1 the last.",
            charts=[("Heat map", _heat(cells, names))],
        ),
        disagreement.how_far_apart(Material(frame)),
    ]
    return Compared(
        sections=tuple(part for part in parts if part is not None),
        names=names,
        effects=[dict(zip(map(str, effects), row, strict=True)) for row in effects.to_numpy()],
        refused=refused,
        apart=_apart(cells),
        silent=silent,
    )


def _names(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Experiments by what sets them apart; by their tags where that is nothing."""
    told = compared(rows) if len(rows) > 1 else []
    told.sort(key=lambda one: one["name"] != "judge.model")
    names = {
        row["tag"]: " · ".join(_level(one["name"], one["levels"][place]) for one in told)
        for place, row in enumerate(rows)
    }
    unique = len(set(names.values())) == len(names)
    return names if told and unique else {row["tag"]: row["tag"] for row in rows}


def _level(name: str, level: Any) -> str:
    """A level that a word tells; a number or a truth value needs its knob's name."""
    return level if isinstance(level, str) and level else f"{name.rpartition('.')[2]} {level}"


def _common_series(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The newest series that all experiments have; all where they share none."""
    shared = set.intersection(*(set(part["series"]) for _, part in frame.groupby("tag")))
    newest = frame.loc[frame["series"].isin(shared)].sort_values("run")["series"]
    return frame[frame["series"] == newest.iloc[-1]] if len(newest) else frame


def _effects(
    own: "pd.DataFrame", tags: Sequence[str], rows: Mapping[str, Mapping[str, Any]]
) -> "tuple[pd.DataFrame, list[dict[str, str]]]":
    """The contrast of every two experiments, and those that analysis refuses."""
    import pandas as pd

    from judge_gym.analysis.contrasts import COLUMNS, contrasts, diff, judge_contrasts, register
    from judge_gym.analysis.frames import JUDGE, tidy

    tables, refused = [], []
    for base, level in combinations(tags, 2):
        both = own[own["tag"].isin((base, level))]
        try:
            if both["tag"].nunique() < 2:
                raise DesignError("they are one experiment, or one of them has no single verdicts")
            both = tidy(both)
            if both["task"].nunique() > 1:
                raise DesignError(f"they judge different tasks: {', '.join(both['task'].unique())}")
            designs = [Design.of(rows[tag]["design"]) for tag in (level, base)]
            knobs = diff(*designs)
            if JUDGE in knobs and len(knobs) > 1:
                raise DesignError(f"a contrast varies one knob; they differ in {', '.join(knobs)}")
            if knobs == (JUDGE,):
                table = judge_contrasts(both)
            else:
                task = str(both["task"].iloc[0])
                levels = [
                    {**one.values(), **_series(both, tag)}
                    for one, tag in zip(designs, (level, base), strict=True)
                ]
                table = contrasts(both, [register(both, *levels, task=task)])
            of = {"of": level, "against": base}
            if knobs == (JUDGE,) and str(table["level"].iloc[0]) != designs[0].judge.model:
                of = {"of": base, "against": level}
            tables.append(table.assign(**of))
        except DesignError as fault:
            refused.append({"of": level, "against": base, "why": str(fault)})
    columns = [*COLUMNS, "of", "against"]
    return (
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)
    ), refused


def _series(frame: "pd.DataFrame", tag: str) -> dict[str, Any]:
    return {"series": frame.loc[frame["tag"] == tag, "series"].iloc[0]}


def _forest(effects: "pd.DataFrame") -> Any:
    from judge_gym.analysis import figures

    return figures.forest_figure(effects[effects["endpoint"] == "stage"])


def _cells(own: "pd.DataFrame") -> "pd.DataFrame":
    """The expected stage of each item in each experiment, where stages have an order."""
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


def _heat(cells: "pd.DataFrame", names: Mapping[str, str]) -> Any:
    from judge_gym.analysis import figures
    from judge_gym.analysis.frames import JUDGE

    if cells.empty:
        return None
    titles = cells.drop_duplicates("evidence").set_index("evidence")["evidence_title"].astype(str)
    twice = titles.duplicated(keep=False)
    item = titles.where(~twice, titles + " (" + titles.index.astype(str) + ")")
    drawn = cells.assign(item=cells["evidence"].map(item), **{JUDGE: cells["tag"].map(names)})
    return figures.heat_figure(drawn, figures.heat_finding(drawn).replace("Judges", "Experiments"))


def _apart(cells: "pd.DataFrame") -> list[dict[str, Any]]:
    """The items with the widest span between experiments."""
    rows = []
    for _, part in cells.groupby(["task", "evidence"], sort=False):
        if part["tag"].nunique() < 2:
            continue
        task, evidence, title = part[["task", "evidence", "evidence_title"]].iloc[0]
        means = dict(zip(part["tag"], part["mean"].astype(float), strict=True))
        span = max(means.values()) - min(means.values())
        rows.append(
            {
                "task": task,
                "evidence": int(evidence),
                "title": str(title),
                "span": span,
                "means": means,
            }
        )
    return sorted(rows, key=lambda row: -row["span"])[:APART]
