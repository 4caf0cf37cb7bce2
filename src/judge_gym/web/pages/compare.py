"""Compare: two setups of a study, A and B, with the result as the title."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.records.comparison import SetupComparison
from judge_gym.records.forest import axis_of
from judge_gym.records.judge_table import Unit, column_value
from judge_gym.records.numbers import difference_with_interval
from judge_gym.records.palette import judge_colours
from judge_gym.web.analysis_cache import refuse_large
from judge_gym.web.api.parameters import OpenLab
from judge_gym.web.pages.filters import Text
from judge_gym.web.pages.home import recent_studies
from judge_gym.web.pages.items import all_judges
from judge_gym.web.rendering import render

router = APIRouter()
MAX_TARGETS = 50
"""Studies and experiments whose setups can be compared at once."""
COSTS = ("dollars", "seconds")
"""The units whose values of A are stated as multiples of those of B."""
DRAWN = ("share", "coefficient")
"""The units whose values are drawn on a scale."""
Names = Annotated[list[Text], Query(max_length=MAX_TARGETS)]


@router.get("/compare")
def compare(
    request: Request,
    lab: OpenLab,
    of: Names = [],  # noqa: B006
    study: Names = [],  # noqa: B006
    tag: Names = [],  # noqa: B006
    setup: Names = [],  # noqa: B006
    a: Text = None,
    b: Text = None,
) -> Response:
    """Shows which study is compared; the comparison is loaded after the page.

    Lists send the experiments that were ticked as `tag`, the judge table its setups as `setup`;
    `study` and `of` name studies.
    """
    studies = recent_studies(lab)
    targets = _unique([*of, *study, *tag]) or studies[:1]
    if targets:
        lab.studies.find(*targets)  # refuses what does not exist
    ticked = dict(zip("ab", _unique(setup), strict=False))
    setups = {"a": a, "b": b} if a or b else ticked
    return render(
        request,
        "compare.html.j2",
        studies=studies,
        targets=targets,
        pinnable=not setups.get("b"),
        query=_query(targets, **setups),
    )


@router.get("/parts/compare")
def parts(request: Request, lab: OpenLab, of: Names, a: Text = None, b: Text = None) -> Response:
    """Returns a part of the page: the result, the setups side by side, and where they differ."""
    targets = _unique(of)
    refuse_large(lab, [row["tag"] for row in lab.studies.find(*targets)])
    studies = recent_studies(lab)
    if len(targets) == 1 and targets[0] in studies:
        comparison = lab.results.comparison(targets[0], a, b)  # stored until the data change
    else:
        comparison = lab.reports.compare(targets[0], a=a, b=b, others=targets[1:])
    left, right = (
        {"judge.model": row["judge"], **row["knobs"]} for row in (comparison["a"], comparison["b"])
    )
    return render(
        request,
        "_compare.html.j2",
        found=comparison,
        targets=targets,
        rows=_rows(comparison),
        gap=_gap(comparison),
        column_value=column_value,
        knobs=[(knob, left[knob], right[knob]) for knob in left if left[knob] != right.get(knob)],
        link=lambda a, b: f"/compare?{_query(targets, a=a, b=b)}",
        items="" if targets[0] not in studies else _items(targets[0], comparison),
        colours=judge_colours(
            all_judges(lab, targets[0])
            if targets[0] in studies and len(targets) == 1
            else [row["judge"] for row in comparison["setups"]]
        ),
    )


def _unique(names: Sequence[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))


def _query(targets: Sequence[str], **chosen: str | None) -> str:
    named = [(side, name) for side, name in chosen.items() if name]
    return urlencode([*(("of", target) for target in targets), *named])


def _items(study: str, found: SetupComparison) -> str:
    """Returns the address of the study's items with the columns and answers of A and B."""
    a, b = found["a"]["setup"], found["b"]["setup"]
    query = urlencode([("setup", a), ("setup", b), ("a", a), ("b", b)])
    return f"/studies/{quote(study)}/items?{query}"


def _rows(comparison: SetupComparison) -> list[dict[str, Any]]:
    """Returns the main columns of the judge table as rows with both setups; empty ones are out."""
    rows = []
    for head in comparison["columns"]:
        a = column_value(comparison["a"], head["name"])
        b = column_value(comparison["b"], head["name"])
        if not head["main"] or not (a or b):
            continue
        unit = head["unit"]
        values = [value for value in (a, b) if value is not None]
        rows.append(
            {
                "name": head["title"],
                "about": head["about"],
                "unit": unit,
                "a": a,
                "b": b,
                "axis": axis_of(values, unit) if unit in DRAWN else None,
                "times": _times(a, b) if unit in COSTS else None,
            }
        )
    return rows


def _gap(comparison: SetupComparison) -> dict[str, Any] | None:
    """Returns the difference that the sentence states, with a scale that has 0 in its middle."""
    value, title = comparison["difference"], "difference"
    unit: Unit = "points"
    if comparison["endpoint"] == "stage":
        value, unit, title = comparison["stage"], "stages", "mean stage, from 0 to 1"
    elif comparison["columns"]:
        unit, title = comparison["columns"][0]["unit"], comparison["columns"][0]["title"]
    if value is None:
        return None
    text = difference_with_interval(value, unit).removesuffix(" stages")
    return {
        "value": value,
        "title": title,
        "text": text,
        "axis": axis_of([value], unit, signed=True),
    }


def _times(a: Any, b: Any) -> float | None:
    """Returns how many times as much A takes as B; None if that is unknown."""
    return a["value"] / b["value"] if a and b and a["value"] > 0 and b["value"] > 0 else None
