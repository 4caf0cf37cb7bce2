"""One eval of a suite run: why it failed, its files, and how they differ from the reference."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.errors import NotFoundError, unknown
from judge_gym.lab.suite_reports import SuiteReport
from judge_gym.records.responses import EvalDetail
from judge_gym.store import SuiteResult
from judge_gym.triage import result_name
from judge_gym.web.api.parameters import OpenLab
from judge_gym.web.diff import CONTEXT, FileDiff, compare_files
from judge_gym.web.failure_reports import find_report
from judge_gym.web.pages.filters import EMPTY_IS_NONE, Text
from judge_gym.web.pages.suite_paths import OutcomeFilter, Place, Replicate, RunOfPlace
from judge_gym.web.pages.suite_runs import comparable, eval_mark
from judge_gym.web.rendering import render

router = APIRouter()
Tab = Literal["steps", "output", "diff", "task", "answer", "grader", "analysis"]
TITLES: Mapping[Tab, str] = {
    "steps": "Steps",
    "output": "Output",
    "diff": "Diff",
    "task": "Task",
    "answer": "Reference answer",
    "grader": "Grader",
    "analysis": "Analysis",
}
FILES: Mapping[str, Literal["files", "answer", "grader"]] = {
    "output": "files",
    "answer": "answer",
    "grader": "grader",
}
"""The part of an eval that each tab with whole files shows."""
LONGEST = 150_000
"""Characters of a file that the page shows; the API has all of it."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The results before and after one, among those of an outcome."""

    outcome: str
    count: int
    place: int | None
    """The position of the result itself; None if it has another outcome."""
    before: SuiteResult | None
    after: SuiteResult | None


@router.get("/experiment/{name:path}/run/{run}/{category}/{eval}")
@router.get("/model/{name:path}/run/{run}/{category}/{eval}")
def one_eval(
    request: Request,
    lab: OpenLab,
    place: Place,
    report: RunOfPlace,
    category: str,
    eval: str,
    replicate: Replicate = 0,
    tab: Annotated[Tab | None, EMPTY_IS_NONE, Query()] = None,
    file: Text = None,
    context: Annotated[Literal["all"] | None, Query()] = None,
    outcome: OutcomeFilter = None,
) -> Response:
    """Shows an eval of a run; the query names the tab and the file."""
    run, key = report.run.id, (f"{category}/{eval}", replicate)
    row = next((r for r in report.results if (r.result.path, r.result.replicate) == key), None)
    if row is None:
        raise NotFoundError(f"run {run} has no result of {key[0]}, replicate {replicate}")
    failure_report = find_report(lab.folder, report.run)
    analysis = (
        failure_report.failures.get(result_name(row.result)) if failure_report is not None else None
    )
    detail = lab.suites.show_eval(row.id)
    open_tab: Tab = tab or "steps"
    past = comparable(lab, report)

    def link(result: SuiteResult, **query: Any) -> str:
        path, number = result.result.path, result.result.replicate
        return place.eval(run, path, number, **{"outcome": outcome, **query})

    return render(
        request,
        "suite_eval.html.j2",
        place=place,
        run=run,
        eval=detail,
        row=row,
        link=link,
        tab=open_tab,
        tabs={name: title for name, title in TITLES.items() if name != "analysis" or analysis},
        outcome=outcome,
        neighbours=neighbours(report, row, outcome or "failed"),
        replicates=[r for r in report.results if r.result.path == key[0]],
        past=[eval_mark(place, other, key[0]) for other in past],
        analysis=analysis,
        report=failure_report,
        longest=LONGEST,
        **_content(detail, open_tab, file, context),
    )


def _content(detail: EvalDetail, tab: Tab, file: str | None, context: str | None) -> dict[str, Any]:
    """Returns the files of a tab, and the one that is chosen."""
    if tab == "diff":
        around = None if context == "all" else CONTEXT
        diffs = compare_files(detail["answer"], detail["files"], context=around)
        _refuse_unknown(file, {diff.path: diff for diff in diffs})
        return {
            "diffs": [diff for diff in diffs if file in (None, diff.path)],
            "every": diffs,
            "file": file,
            "context": context,
        }
    if tab not in FILES:
        return {"files": {}, "file": None}
    files = detail[FILES[tab]]
    _refuse_unknown(file, files)
    return {"files": files, "file": file or next(iter(files), None)}


def _refuse_unknown(file: str | None, files: Mapping[str, str | FileDiff]) -> None:
    if file is not None and file not in files:
        raise NotFoundError(unknown("file", file, files), choices=files)


def neighbours(report: SuiteReport, row: SuiteResult, outcome: str) -> Neighbours:
    """Returns what is before and after a result among the results of an outcome."""
    positions = {result.id: index for index, result in enumerate(report.results)}
    matching = [
        candidate for candidate in report.results if candidate.result.outcome.kind == outcome
    ]
    before = [candidate for candidate in matching if positions[candidate.id] < positions[row.id]]
    after = [candidate for candidate in matching if positions[candidate.id] > positions[row.id]]
    index = len(before) + 1 if row in matching else None
    last = before[-1] if before else None
    return Neighbours(outcome, len(matching), index, last, after[0] if after else None)
