"""Study: the answer first, then its judges and its design; `items` and `runs` are further tabs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from judge_gym.axes import find_knob
from judge_gym.lab import Lab
from judge_gym.lab.study_results import StudyResults
from judge_gym.records import STATUSES, Status
from judge_gym.records.forest import judge_plot
from judge_gym.records.judge_table import (
    CORRECTED,
    ColumnHead,
    JudgeRow,
    JudgeTable,
    answer,
    column_value,
    deciding_column,
    interval_units,
    is_corrected,
    people_deciding,
    sentences_on_chosen,
)
from judge_gym.records.responses import SetupRow
from judge_gym.web.analysis_cache import Analyses
from judge_gym.web.api.parameters import Cursor, Name, OpenLab
from judge_gym.web.charts import price_chart
from judge_gym.web.pages.filters import EMPTY_IS_NONE, Text
from judge_gym.web.pages.items import (
    all_judges,
    item_view,
    setup_view,
    stage_words,
    study_page,
)
from judge_gym.web.rendering import initial, render

router = APIRouter()
ANSWERS = 20
"""Answers per page."""
LONGEST = 20_000
"""Characters of an answer that the list shows; its sample's page shows more."""
DISPUTED = 9
"""Items that the findings show, those furthest from people first."""
COLUMNS = 12
"""Setups that these items are shown with, the best first."""
SHORT = ("exact", "consistency", "position_bias", "unreadable", "seconds", "usd_per_1000")
"""The columns that the table has beside its forest plot; `columns=all` shows every one."""
COSTS = ("dollars", "seconds")
"""The units of what is better the lower it is."""
LOW_IS_GOOD = ("abstained", "unreadable", "disagreement", "error", "bias", "position_bias", "loss")
"""The columns in which the lowest value comes first."""
Study = Annotated[Name, Query()]


@router.get("/studies/{name}")
def findings(
    request: Request,
    lab: OpenLab,
    name: Name,
    columns: Annotated[Literal["all"] | None, EMPTY_IS_NONE] = None,
    sort: Text = None,
) -> Response:
    """Shows which judge to use, how good each setup is, and where they differ from people."""
    study_file = lab.experiments.show_study(name)
    query = {"study": name, "columns": columns, "sort": sort}
    return render(
        request,
        "study_findings.html.j2",
        **study_page(name, "findings"),
        file=study_file["text"],
        query=urlencode({key: value for key, value in query.items() if value}),
    )


@router.get("/studies/{name}/judges")
def judges(name: Name) -> Response:
    """Leads to all columns of the judge table, which the findings have."""
    return RedirectResponse(f"/studies/{quote(name, safe='')}?columns=all#judges", 303)


@router.get("/studies/{name}/design")
def design(request: Request, lab: OpenLab, name: Name) -> Response:
    """Shows what was asked: tasks, judges, what varies, and the study file."""
    study_file = lab.experiments.show_study(name)
    rows = lab.studies.find_study(name)
    return render(
        request,
        "study_design.html.j2",
        **study_page(name, "design", [row["design"]["judge.model"] for row in rows]),
        file=study_file["text"],
        budget={cap: value for cap, value in study_file["budget"].items() if value},
        tasks=_tasks(rows),
        **_knobs(rows),
    )


def _tasks(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the tasks of experiments, each with an experiment on it and how many there are."""
    names = ("concept", "task_type", "country", "pool_name")
    tasks: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        task = tasks.setdefault(key, {**dict(zip(names, key, strict=True)), "tag": row["tag"]})
        task["experiments"] = task.get("experiments", 0) + 1
    return [*tasks.values()]


def _knobs(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the knobs that vary, with their levels, and the level of every other knob."""
    levels = {
        path: [*dict.fromkeys(row["design"].get(path) for row in rows)]
        for path in dict.fromkeys(path for row in rows for path in row["design"])
    }
    described = [
        {"path": path, "levels": each, "question": find_knob(path).question}
        for path, each in levels.items()
    ]
    return {
        "varied": [knob for knob in described if len(knob["levels"]) > 1],
        "fixed": [knob for knob in described if len(knob["levels"]) == 1],
    }


# --- the answer, which is loaded after the page ---------------------------------------------------


@router.get("/parts/study/sentence")
def sentence(request: Request, analyses: Analyses, study: Study) -> Response:
    """Returns a part of a page: the sentence that answers which judge to use."""
    table = analyses.study(StudyResults.judges, study)
    return render(request, "_sentence.html.j2", table=table, study=study)


@router.get("/parts/study/judges")
def judges_part(
    request: Request,
    lab: OpenLab,
    analyses: Analyses,
    study: Study,
    columns: Annotated[Literal["all"] | None, EMPTY_IS_NONE] = None,
    sort: Text = None,
) -> Response:
    """Returns a part of a page: the answer, the judge table, and verdicts beside labels.

    Args:
        request: the request.
        lab: the lab.
        analyses: the cache of analyses.
        study: the name of the study.
        columns: show all columns with their intervals, to be sorted and chosen for a comparison.
        sort: the column to sort by, the best first; the table's own order by default.
    """
    table = analyses.study(StudyResults.judges, study)
    page = study_page(study, "findings", all_judges(lab, study))
    if table is None:
        return render(request, "_judge_table.html.j2", **page, table=None)
    return render(
        request,
        "_judge_table.html.j2",
        **page,
        table=table,
        crossed=_crossed(lab, study, table),
        prices=price_chart(table, page["colours"], f"/studies/{quote(study, safe='')}/items"),
        **_table_view(table, whole=columns == "all", sort=sort),
    )


def _crossed(lab: Lab, study: str, table: JudgeTable) -> dict[str, Any] | None:
    """Returns items by label and verdict, of the recommended setup or else the first, as links."""
    if table["kind"] is None:
        return None
    chosen_row = next((row for row in table["rows"] if row["setup"] == table["chosen"]), None)
    setup = _grid_setup(chosen_row or table["rows"][0], lab.experiments.list_setups(study))
    truth = table["kind"] == "accuracy"
    counts = setup and lab.pages.crossed_labels(study, setup["setup"], truth=truth)
    if not counts:
        return None
    column = "truth" if truth else "label"
    items_page = f"/studies/{quote(study, safe='')}/items"

    def link(**query: str) -> str:
        return f"{items_page}?{urlencode({'setup': counts['setup'], **query})}"

    return {
        **counts,
        "truth": truth,
        "rows": [
            (
                label,
                [
                    _crossed_cell(
                        n, of_label, verdict, label, link(verdict=verdict, **{column: label})
                    )
                    for verdict, n in zip(counts["verdicts"], of_label, strict=True)
                ],
            )
            for label, *of_label in zip(counts["labels"], *counts["counts"], strict=True)
        ],
        "unlike": link(wrong="1") if truth else link(differs="1", sort="people"),
        "unlike_items": lab.pages.count_items(
            study, setups=[counts["setup"]], **{"wrong" if truth else "differs": True}
        ),
    }


def _crossed_cell(
    count: int, of_label: Sequence[int], verdict: str, label: str, place: str
) -> dict[str, Any]:
    """Returns a cell of the table of labels and verdicts, shaded by its part of its row."""
    said, items = verdict.replace("_", " "), f"{count:,} item{'' if count == 1 else 's'}"
    return {
        "share": count / max(sum(of_label), 1),
        "text": f"{count:,}",
        "title": f"{items}: {label}; verdict {said}",
        "place": place if count else None,
        "equal": verdict == label,
    }


def _table_view(table: JudgeTable, *, whole: bool, sort: str | None) -> dict[str, Any]:
    """Returns the columns and rows of a judge table that a page has, and what stands beside it."""
    plot = judge_plot(table)
    deciding = deciding_column(table)
    heads = [head for head in table["columns"] if whole or head["name"] in SHORT]
    groups = plot.groups if plot is not None else (("", tuple(table["rows"])),)
    sorted_by = next((head for head in table["columns"] if head["name"] == sort), None)
    if sorted_by is not None:
        groups = (("", tuple(_sorted(table["rows"], sorted_by))),)
    headline, details = answer(table)
    if not details.startswith(tuple(row["setup"] for row in table["rows"])):
        details = initial(details)
    return {
        "whole": whole,
        "plot": plot,
        "groups": [(title, [_judge_view(row) for row in rows]) for title, rows in groups],
        "heads": [head for head in heads if whole or _says_something(table, head)],
        "sorted_by": sorted_by,
        "headline": headline,
        "details": details,
        "deciding": deciding,
        "people": people_deciding(table),
        "units": interval_units(table),
        "corrected": CORRECTED if is_corrected(table) else "",
        "sentences": sentences_on_chosen(table),
        "column_value": column_value,
    }


def _judge_view(row: JudgeRow) -> dict[str, Any]:
    """Returns a row with the parts of its setup's name: the judge, and what differs."""
    name, *differing = row["setup"].split(", ")
    return {**row, "name": name, "differing": differing}


def _sorted(rows: Sequence[JudgeRow], head: ColumnHead) -> list[JudgeRow]:
    """Returns rows by a column: the highest first, prices and times the lowest; unknown last."""
    lowest_first = head["unit"] in COSTS or head["name"] in LOW_IS_GOOD

    def key(row: JudgeRow) -> tuple[bool, float]:
        value = column_value(row, head["name"])
        estimate = value["value"] if value is not None else 0.0
        return value is None, estimate if lowest_first else -estimate

    return sorted(rows, key=key)


def _says_something(table: JudgeTable, head: ColumnHead) -> bool:
    """Whether a column has a value above 0 in any row; a price says something at 0 too."""
    values = [column_value(row, head["name"]) for row in table["rows"]]
    return head["unit"] in COSTS or any(value is not None and value["value"] for value in values)


@router.get("/parts/study/disputed")
def disputed(request: Request, lab: OpenLab, analyses: Analyses, study: Study) -> Response:
    """Returns a part of a page: the items furthest from people, else the most disputed ones.

    The setups stand in the order of the judge table; of many, the first ones are shown.
    """
    table = analyses.study(StudyResults.judges, study)
    setups = lab.experiments.list_setups(study)
    colours = [row["judge"] for row in setups]
    if table is not None:
        ranked = [_grid_setup(row, setups) for row in table["rows"]]
        setups = [row for row in ranked if row is not None] or setups
    labelled = bool(lab.pages.item_choices(study)["labels"])
    page = lab.experiments.page_items(
        study,
        limit=DISPUTED,
        sort="people" if labelled else "disagreement",
        setups=[row["setup"] for row in setups[:COLUMNS]],
    )
    shown = setups[:COLUMNS]
    order = {row["setup"]: number for number, row in enumerate(shown)}
    rows = [
        item_view(row) for row in page.rows if row["from_people" if labelled else "disagreement"]
    ]
    return render(
        request,
        "_disputed.html.j2",
        **study_page(study, "findings", colours),
        rows=[
            {**row, "cells": sorted(row["cells"], key=lambda cell: order[cell.setup])}
            for row in rows
        ],
        setups=[setup_view(row) for row in shown],
        all_setups=len(setups),
        labelled=labelled,
        judged=any(cell["verdicts"] for row in page.rows for cell in row["cells"]),
        all_items=lab.pages.count_items(study),
    )


def _grid_setup(row: JudgeRow, setups: Sequence[SetupRow]) -> SetupRow | None:
    """Returns the setup of a grid that a row of the judge table is.

    A table names setups by what varies among those that were run, a grid among all.
    """
    tags = {*row["tags"]}
    return next((setup for setup in setups if tags <= {*setup["tags"]}), None)


@router.get("/studies/{name}/answers")
def answers(
    request: Request,
    lab: OpenLab,
    name: Name,
    status: Annotated[Status | None, EMPTY_IS_NONE] = None,
    after: Cursor = None,
) -> Response:
    """Shows what judges answered, word for word."""
    page = lab.experiments.page_answers(name, status=status, after=after, limit=ANSWERS)
    stages = lab.pages.given_stages([*{row["tag"] for row in page.rows}])
    return render(
        request,
        "answers.html.j2",
        study=name,
        statuses=STATUSES,
        chosen=status,
        answers=[
            {**row, "verdict": stage_words(row["stages"], stages.get(row["tag"], []))}
            for row in page.rows
        ],
        next=page.next,
        first=after is None,
        longest=LONGEST,
    )
