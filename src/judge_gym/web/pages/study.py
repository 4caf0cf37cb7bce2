"""Study: the answer first, then its judges and its design; `items` and `runs` are further tabs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import find_knob
from judge_gym.lab import Lab
from judge_gym.lab.study_results import StudyResults
from judge_gym.records import STATUSES, Status
from judge_gym.records.judge_table import (
    CORRECTED,
    JudgeTable,
    column_value,
    deciding_column,
    interval_units,
    is_corrected,
    people_deciding,
    sentences_on_chosen,
)
from judge_gym.web.analysis_cache import Analyses
from judge_gym.web.api.parameters import Cursor, Name, OpenLab
from judge_gym.web.pages.filters import EMPTY_IS_NONE
from judge_gym.web.pages.items import item_view, stage_words, study_page
from judge_gym.web.rendering import render

router = APIRouter()
ANSWERS = 20
"""Answers per page."""
LONGEST = 20_000
"""Characters of an answer that the list shows; its sample's page shows more."""
DISPUTED = 5
"""Items that the findings name, the most disputed first."""
Study = Annotated[Name, Query()]


@router.get("/studies/{name}")
def findings(request: Request, lab: OpenLab, name: Name) -> Response:
    """Shows which judge to use, and where judges disagree."""
    study_file = lab.experiments.show_study(name)
    page = study_page(name, "findings")
    return render(request, "study_findings.html.j2", **page, file=study_file["text"])


@router.get("/studies/{name}/judges")
def judges(request: Request, lab: OpenLab, name: Name) -> Response:
    """Shows the whole judge table."""
    lab.experiments.show_study(name)
    return render(request, "study_judges.html.j2", **study_page(name, "judges"))


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
    request: Request, lab: OpenLab, analyses: Analyses, study: Study, whole: bool = False
) -> Response:
    """Returns a part of a page: the sentence and the judge table, in short or whole."""
    table = analyses.study(StudyResults.judges, study)
    judges = [row["judge"] for row in table["rows"]] if table else []
    page = study_page(study, "judges", judges)
    view = {} if table is None else _table_view(table, whole)
    crossed = None if table is None else _crossed(lab, study, table)
    return render(
        request,
        "_judge_table.html.j2",
        **page,
        table=table,
        whole=whole,
        crossed=crossed,
        **view,
    )


def _crossed(lab: Lab, study: str, table: JudgeTable) -> dict[str, Any] | None:
    """Returns items by verdict and label, of the recommended setup or else the first, as links."""
    if table["kind"] is None:
        return None
    chosen_row = next((row for row in table["rows"] if row["setup"] == table["chosen"]), None)
    tags = {*(chosen_row or table["rows"][0])["tags"]}
    # A table names setups by what varies among those that were run, a grid among all.
    setups = lab.experiments.list_setups(study)
    setup = next((entry["setup"] for entry in setups if tags <= {*entry["tags"]}), None)
    truth = table["kind"] == "accuracy"
    counts = setup and lab.pages.crossed_labels(study, setup, truth=truth)
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
            (verdict, [(n, link(verdict=verdict, **{column: label})) for n, label in cells])
            for verdict, row in zip(counts["verdicts"], counts["counts"], strict=True)
            for cells in [[*zip(row, counts["labels"], strict=True)]]
        ],
        "unlike": link(wrong="1") if truth else link(differs="1", sort="people"),
        "unlike_items": lab.pages.count_items(
            study, setups=[counts["setup"]], **{"wrong" if truth else "differs": True}
        ),
    }


def _table_view(table: JudgeTable, whole: bool) -> dict[str, Any]:
    """Returns the columns of a judge table that a page has, and what stands below it."""
    return {
        "heads": [head for head in table["columns"] if whole or head["main"]],
        "deciding": deciding_column(table),
        "people": people_deciding(table),
        "units": interval_units(table),
        "corrected": CORRECTED if is_corrected(table) else "",
        "sentences": sentences_on_chosen(table),
        "column_value": column_value,
    }


@router.get("/parts/study/disputed")
def disputed(request: Request, lab: OpenLab, study: Study) -> Response:
    """Returns a part of a page: the items on which setups disagree most."""
    page = lab.experiments.page_items(study, limit=DISPUTED)
    setups = lab.experiments.list_setups(study)
    rows = [row for row in page.rows if row["disagreement"]]
    return render(
        request,
        "_disputed.html.j2",
        **study_page(study, "findings", [one["judge"] for one in setups]),
        rows=[item_view(row) for row in rows],
        judges={one["setup"]: one["judge"] for one in setups},
    )


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
