"""The report on a study, shown on a page and as files to download."""

import re
from typing import Annotated, Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from judge_gym.errors import ConflictError
from judge_gym.web.api.parameters import Name, OpenLab, from_app
from judge_gym.web.middleware import HEADERS, Json
from judge_gym.web.rendering import render
from judge_gym.web.reports import ReportBuilder

router = APIRouter()
Builder = Annotated[ReportBuilder, from_app("reports")]
CSP = "Content-Security-Policy"
FRAMING = {CSP: f"{HEADERS[CSP]}; frame-src 'self'"}
"""Lets the page show the report in a frame."""
FRAMED = {
    CSP: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-same-origin allow-top-navigation-by-user-activation",
    "X-Frame-Options": "SAMEORIGIN",
}
"""The report has its own style; no script can run in it."""
TYPES = {
    "report.html": "text/html; charset=utf-8",
    "report.md": "text/markdown; charset=utf-8",
    "report.zip": "application/zip",
}


@router.get("/report/{study}")
def report(request: Request, lab: OpenLab, reports: Builder, study: Name) -> Response:
    """Shows the report, or a page that waits for it."""
    lab.experiments.show_study(study)
    page = render(request, "report.html.j2", study=study, state=reports.request(study))
    page.headers.update(FRAMING)
    return page


@router.get("/report/{study}/progress")
def progress(lab: OpenLab, reports: Builder, study: Name) -> Response:
    """Returns how far the report is: its step, and whether page and files can be shown."""
    lab.experiments.show_study(study)
    state = reports.request(study)
    report = state.report
    return Json(
        {
            "building": state.building,
            "step": state.step,
            "built": report.at if report else None,
            "complete": report is not None and report.complete,
        }
    )


@router.get("/report/{study}/{file}")
def report_file(
    lab: OpenLab,
    reports: Builder,
    study: Name,
    file: Literal["report.html", "report.md", "report.zip"],
    download: bool = False,
) -> Response:
    """Returns a file of the last report that was built."""
    lab.experiments.show_study(study)
    built = reports.request(study).report
    if built is None or built.error:
        raise ConflictError(
            built.error if built else f"the report on {study} is being built; try again in a moment"
        )
    if file == "report.zip" and not built.complete:
        raise ConflictError(f"the files of the report on {study} are being written; try again soon")
    path = reports.archive(built) if file == "report.zip" else built.folder / file
    if file == "report.html" and not download:
        page = linked(path.read_text(encoding="utf-8"))
        return Response(page, media_type=TYPES[file], headers=FRAMED)
    filename = f"{study}-{file}"
    return FileResponse(path, media_type=TYPES[file], filename=filename, headers=FRAMED)


ROW = re.compile(r'(<tr data-experiment="([^"]*)"[^>]*><td[^>]*>)(.*?)(</td>)')
QUOTED = re.compile(r'<strong data-call="(\d+)">(.*?)</strong>')


def linked(page: str) -> str:
    """Links the rows of a report's tables to their experiments, and its quotes to the answers."""
    page = ROW.sub(r'\1<a target="_top" href="/experiments/\2">\3</a>\4', page)
    return QUOTED.sub(r'<a target="_top" href="/calls/\1">\2</a>', page)
