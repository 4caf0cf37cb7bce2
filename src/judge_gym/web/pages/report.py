"""The report on a study, as it is read and as it is taken away."""

from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from judge_gym.errors import ConflictError
from judge_gym.web.api.answers import Name, OpenLab
from judge_gym.web.middleware import HEADERS
from judge_gym.web.rendering import shown
from judge_gym.web.reports import Made, Reports

router = APIRouter()
CSP = "Content-Security-Policy"
FRAMING = {CSP: f"{HEADERS[CSP]}; frame-src 'self'"}
"""The page may show the report within itself."""
FRAMED = {
    CSP: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}
"""The report brings its own style, and no script runs in it whatever it holds."""
TYPES = {
    "report.html": "text/html; charset=utf-8",
    "report.md": "text/markdown; charset=utf-8",
    "report.zip": "application/zip",
}


@router.get("/report/{study}")
def report(request: Request, lab: OpenLab, study: Name) -> Response:
    """The report, or a page that waits for it."""
    lab.find_study(study)
    reports: Reports = request.app.state.reports
    made = shown(request, "report.html.j2", study=study, standing=reports.ask(study))
    made.headers.update(FRAMING)
    return made


@router.get("/report/{study}/{file}")
def report_file(
    request: Request,
    lab: OpenLab,
    study: Name,
    file: Literal["report.html", "report.md", "report.zip"],
    download: bool = False,
) -> Response:
    """A file of the report that was made last."""
    lab.find_study(study)
    reports: Reports = request.app.state.reports
    made: Made | None = reports.ask(study).made
    if made is None or made.fault:
        raise ConflictError(
            made.fault if made else f"the report on {study} is being made; come back in a moment"
        )
    path = reports.archive(made) if file == "report.zip" else made.folder / file
    attached = download or file != "report.html"
    named = f"{study}-{file}" if attached else None
    return FileResponse(path, media_type=TYPES[file], filename=named, headers=FRAMED)
