"""Suite runs: a run with its evals, controls and report, its categories, and the form for a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.errors import NotFoundError, ScopeError, TokenError, unknown
from judge_gym.lab import Lab
from judge_gym.lab.suite_reports import SuiteReport, eval_row
from judge_gym.models.simulated import CODERS
from judge_gym.records import SuiteResult
from judge_gym.store import Event
from judge_gym.store.events import STATES
from judge_gym.suites import ablate
from judge_gym.triage import result_name
from judge_gym.web.api.parameters import OpenLab
from judge_gym.web.failure_reports import RunReport, find_report
from judge_gym.web.pages.filters import Number, Text
from judge_gym.web.pages.suite_paths import OutcomeFilter, Place, RunOfPlace, SuitePlace
from judge_gym.web.pages.suites import categories, history, run_row
from judge_gym.web.rendering import render

router = APIRouter()
PAST_RUNS = 10
"""Runs whose outcomes are shown for each eval."""
MARKS = {"passed": "✓", "failed": "✗", "inconclusive": "?", "missing": "·"}


class Mark(NamedTuple):
    """The outcome of an eval in one run, over its replicates."""

    kind: str
    """passed, failed, inconclusive, mixed or missing."""
    text: str
    link: str
    title: str


@router.get("/suites/new")
def new_run(
    request: Request,
    lab: OpenLab,
    suite: Text = None,
    model: Text = None,
    condition: Text = None,
    series: Text = None,
    failed_of: Number = None,
) -> Response:
    """Shows the form that starts a run; the query fills it in."""
    caller = request.state.caller
    if caller is None:
        raise TokenError("starting a run needs a token that may write")
    if caller.scope != "write":
        raise ScopeError("the token may read only; starting a run needs one that may write")
    suites = {loaded.name: loaded for loaded in lab.suites.list()}
    if suite is not None and suite not in suites:
        raise NotFoundError(unknown("suite", suite, suites), choices=suites)
    selected = suites[suite or next(iter(suites))]
    callable_models = [id for id in lab.pages.named_models() if lab.pages.can_call(id)]
    return render(
        request,
        "suite_new.html.j2",
        suites=suites.values(),
        chosen=selected,
        categories=Counter(task.category for task in selected.evals),
        models=[*(f"sim:{name}" for name in CODERS), *callable_models],
        model=model or "",
        condition=condition or "default",
        series=series or fresh_series(lab, selected.name, model or "", condition or "default"),
        failed_of=failed_of,
        budget=lab.suites.budget(selected.name).get("usd"),
    )


@router.get("/experiment/{name:path}/run/{run}/report")
@router.get("/model/{name:path}/run/{run}/report")
def run_report(request: Request, lab: OpenLab, place: Place, report: RunOfPlace) -> Response:
    """Shows the newest report on the failures of a run."""
    run, failure_report = report.run.id, find_report(lab.folder, report.run)
    if failure_report is None:
        raise NotFoundError(f"there is no report on run {run}; judge-gym analyze {run} writes one")
    links = {
        result_name(row.result): place.eval(run, row.result.path, row.result.replicate)
        for row in report.results
    }
    return render(
        request, "suite_report.html.j2", place=place, run=run, report=failure_report, links=links
    )


@router.get("/experiment/{name:path}/run/{run}/{category}")
@router.get("/model/{name:path}/run/{run}/{category}")
def run_category(
    request: Request, lab: OpenLab, place: Place, report: RunOfPlace, category: str
) -> Response:
    """Shows a category of a run: its evals, how they went in past runs, and scores over time."""
    rows = [row for row in report.results if row.result.category == category]
    targets = [path for path in report.run.evals if path.startswith(f"{category}/")]
    names = categories(report.run.evals)
    if not targets:
        raise NotFoundError(f"run {report.run.id} has no category {category!r}", choices=names)
    past = comparable(lab, report)
    compared = place.reports(lab, report.run.suite)
    return render(
        request,
        "suite_category.html.j2",
        place=place,
        run=run_row(report, place),
        category=category,
        categories=names,
        score=score_row(report, category),
        targets=sum(report.run.replicates_of[path] for path in targets),
        evals=_eval_rows(place, rows, find_report(lab.folder, report.run), None),
        runs=past,
        marks={path: [eval_mark(place, other, path) for other in past] for path in targets},
        history=history(lab, compared, report.run.version, category, **place.filters),
    )


@router.get("/experiment/{name:path}/run/{run}")
@router.get("/model/{name:path}/run/{run}")
def one_run(
    request: Request,
    lab: OpenLab,
    place: Place,
    report: RunOfPlace,
    outcome: OutcomeFilter = None,
) -> Response:
    """Shows a run: its progress and controls, its score, its categories, and its evals."""
    run, failure_report = report.run.id, find_report(lab.folder, report.run)
    earlier = comparable(lab, report)[:-1]
    events = lab.pages.events(0, [report.run.payer])
    unfinished = report.event is not None and not report.ended
    worked = duration(report, events, datetime.now(UTC))
    kinds = Counter(row.result.outcome.kind for row in report.results)
    rows = [row for row in report.results if outcome in (None, row.result.outcome.kind)]
    return render(
        request,
        "suite_run.html.j2",
        place=place,
        run=run_row(report, place),
        state=lab.runs.status(f"suite:{run}")["runs"][0] if unfinished else None,
        repeatable=sum(not row.result.settled for row in report.results) if report.ended else 0,
        follows=report.event is not None,
        duration=worked,
        pace=pace(report, worked) if unfinished and report.in_progress else None,
        budget=lab.suites.budget(report.run.suite).get("usd"),
        events=list(reversed(events)),
        categories=[
            {
                "name": category,
                "link": place.category(run, category),
                **score_row(report, category),
                "marks": [
                    eval_mark(place, report, path)
                    for path in report.run.evals
                    if path.startswith(f"{category}/")
                ],
            }
            for category in categories(report.run.evals)
        ],
        evals=_eval_rows(place, rows, failure_report, outcome),
        results=len(report.results),
        earlier={
            path: [eval_mark(place, other, path) for other in earlier] for path in report.run.evals
        },
        change=change_since(place, earlier, report),
        kinds=kinds,
        outcome=outcome,
        report=failure_report,
        analyses=lab.failures.list(run=run) if request.state.caller is not None else (),
    )


def fresh_series(lab: Lab, suite: str, model: str, condition: str) -> str:
    """Returns the first number that is no series of a model's runs of a suite yet."""
    reports = lab.suites.reports(suite=suite, model=model)
    used = {report.run.series for report in reports if report.run.condition == condition}
    return next(str(number) for number in count() if str(number) not in used)


def comparable(lab: Lab, report: SuiteReport) -> list[SuiteReport]:
    """Returns the last runs that a run can be compared with, oldest first, itself included."""
    run = report.run
    same = [
        other
        for other in lab.suites.reports(suite=run.suite, model=run.model)
        if (other.run.version, other.run.condition) == (run.version, run.condition)
        and (other.run.created, other.run.id) <= (run.created, run.id)
    ]
    return sorted(same, key=lambda found: (found.run.created, found.run.id))[-PAST_RUNS:]


def change_since(
    place: SuitePlace, earlier: Sequence[SuiteReport], report: SuiteReport
) -> dict[str, Any] | None:
    """Returns what changed since the last run that covers all of a run's evals, paired by eval."""
    evals = set(report.run.evals)
    bases = [other for other in earlier if other.ended and evals <= set(other.run.evals)]
    if not bases or not report.ended or report.score.score is None:
        return None
    base, run = bases[-1], report.run.id
    before = [row.result for row in base.results if row.result.path in evals]
    [effect] = ablate(before, {"now": [row.result for row in report.results]})
    if effect.difference.value != effect.difference.value:
        return None
    return {
        "run": base.run,
        "link": place.run(base.run.id),
        "difference": effect.difference,
        "verdict": effect.verdict.replace("no effect shown", "no clear change"),
        "worse": [(change.eval, place.eval(run, change.eval)) for change in effect.regressions],
        "better": [(change.eval, place.eval(run, change.eval)) for change in effect.improvements],
    }


def eval_mark(place: SuitePlace, report: SuiteReport, path: str) -> Mark:
    """Returns how an eval went in a run."""
    results = [row.result for row in report.results if row.result.path == path]
    passed, n = report.score.evals.get(path, (0, 0))
    if not results:
        kind = "missing"
    elif n == 0:
        kind = "inconclusive"
    else:
        kind = {0: "failed", n: "passed"}.get(passed, "mixed")
    text = MARKS.get(kind) or f"{passed}/{n}"
    when = report.run.created.strftime("%Y-%m-%d")
    outcome = f"{passed} of {n} passed" if kind == "mixed" else kind
    first = min((result.replicate for result in results), default=0)
    link = place.eval(report.run.id, path, first) if results else ""
    return Mark(kind, text, link, f"{path}: {outcome} in run {report.run.id}, {when}")


def score_row(report: SuiteReport, category: str) -> dict[str, Any]:
    """Returns the score of a run on a category, with its interval."""
    score = report.score.within(category)
    has_score = score.score is not None
    return {
        "score": score.score,
        "low": score.estimate.low if has_score else None,
        "high": score.estimate.high if has_score else None,
        "passed": score.passed,
        "failed": score.failed,
    }


def duration(report: SuiteReport, events: Sequence[Event], now: datetime) -> timedelta | None:
    """Returns how long a run was worked on; a posted run has no events but its first and last time.

    Args:
        report: the run.
        events: all of its events, oldest first.
        now: the end of a run that is in progress.
    """
    last = max((row.at for row in report.results), default=report.run.created)
    if not events:
        return last - report.run.created if report.results else None
    total, since = timedelta(), None
    for event in events:
        if event.kind == "started":
            since = since or event.at
        elif event.kind in STATES and event.kind != "waiting" and since is not None:
            total, since = total + (event.at - since), None
    if since is not None:
        total += max(timedelta(), (now if report.in_progress else last) - since)
    return total


class Pace(NamedTuple):
    """How fast a run in progress is, and how long the rest takes at that rate."""

    per_minute: float
    left: timedelta


def pace(report: SuiteReport, worked: timedelta | None) -> Pace | None:
    """Returns the pace of a run, or None before its first result."""
    done = len(report.results)
    if worked is None or not done or not worked.total_seconds():
        return None
    each = worked / done
    return Pace(timedelta(minutes=1) / each, each * max(0, report.run.targets - done))


def _eval_rows(
    place: SuitePlace,
    rows: Sequence[SuiteResult],
    report: RunReport | None,
    outcome: str | None,
) -> list[Mapping[str, Any]]:
    analyses = report.failures if report is not None else {}
    return [
        {
            **eval_row(row),
            "analysis": analyses.get(result_name(row.result)),
            "link": place.eval(row.run_id, row.result.path, row.result.replicate, outcome=outcome),
        }
        for row in rows
    ]
