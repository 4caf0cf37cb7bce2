"""Home: a card for each study; and the list of all experiments."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab import Lab
from judge_gym.records import TaskType
from judge_gym.web.api.parameters import OpenLab
from judge_gym.web.pages import usage
from judge_gym.web.pages.filters import EMPTY_IS_NONE, Text
from judge_gym.web.pages.runs import progress
from judge_gym.web.pages.suites import run_row
from judge_gym.web.pages.suites import suites as suites_page
from judge_gym.web.rendering import render, usd

router = APIRouter()
PAGE = 25
"""Experiments per page."""
STUDIES = 60
"""Studies that are shown as cards; the list of experiments finds the others."""
SUITE_RUNS = 5
"""Suite runs that are shown, the newest."""
NOTHING = usd(0.0)
ANALYSIS = "analyze-"
"""How the names of studies begin in which judges classify failed evals."""


@router.get("/")
def home(request: Request, lab: OpenLab) -> Response:
    """Shows studies, each with its answer, its progress and its cost, and recent suite runs."""
    if request.state.caller is None:  # scores are public, and nothing else is
        return suites_page(request, lab)
    runs = [run_row(report, "model") for report in lab.suites.reports()[-SUITE_RUNS:]]
    studies = lab.pages.count_by_study()
    named = recent_studies(lab)
    states = lab.pages.study_states()
    paid = [row for row in lab.pages.spending() if not row["imported"]]
    costs = {row["name"]: amount(row) for row in usage.totals(paid, "study")}
    cards = [
        {
            "name": name,
            "state": states[name],
            "table": lab.results.stored_judges(name),
            "cost": costs.get(name, NOTHING),
        }
        for name in named[:STUDIES]
    ]
    return render(
        request,
        "home.html.j2",
        cards=cards,
        all_studies=len(named),
        total=sum(studies.values()),
        failed=sum(state.counts.failed for state in states.values()),
        cost=next(map(amount, usage.totals(paid, None)), NOTHING),
        alone=studies.get("", 0),
        suite_runs=runs[::-1],
    )


def recent_studies(lab: Lab) -> list[str]:
    """Returns studies, the newest first; analyses of failed evals come last."""
    names = [name for name in lab.pages.count_by_study() if name]
    return sorted(names, key=lambda name: name.startswith(ANALYSIS))


@router.get("/experiments")
def experiments(
    request: Request,
    lab: OpenLab,
    study: Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]*$")] = None,
    task_type: Annotated[TaskType | None, EMPTY_IS_NONE] = None,
    judge: Text = None,
    after: Text = None,
    before: Text = None,
) -> Response:
    """Shows the experiments of all studies and of none, to be filtered and compared."""
    criteria = {"study": study or None, "task_type": task_type, "judge": judge}
    listed = lab.experiments.page(**criteria, after=after, before=before, limit=PAGE, reasons=False)
    filters = {name: value for name, value in criteria.items() if value is not None}

    paid = [row for row in lab.pages.spending() if not row["imported"]]
    costs = {row["name"]: amount(row) for row in usage.totals(paid, "tag")}

    def place(**where: str | None) -> str | None:
        return f"/experiments?{urlencode({**filters, **where})}" if all(where.values()) else None

    return render(
        request,
        "experiments.html.j2",
        rows=[
            {**row, **progress(row), "cost": costs.get(row["tag"], NOTHING)} for row in listed.rows
        ],
        here=f"/experiments?{request.url.query}",
        all_studies=sorted(recent_studies(lab)),
        judges=lab.pages.judges(),
        task_types=lab.pages.task_types(),
        chosen=criteria,
        first=place() if after or before else None,
        previous=place(before=listed.previous),
        next=place(after=listed.next),
    )


def amount(paid: Mapping[str, Any]) -> str:
    """Returns an amount in US dollars, as a lower bound if some prices are unknown."""
    if paid["unpriced"] and not paid["usd"]:
        return "no price known"
    return f"at least {usd(paid['usd'])}" if paid["unpriced"] else usd(paid["usd"])
