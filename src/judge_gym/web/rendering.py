"""Pages as text: one environment for all templates, and what every page has."""

import json
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> "Environment":
    """The templates; whatever stands in a value is shown as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("judge_gym.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["version"] = metadata.version("judge-gym")
    made.filters.update(number=number, usd=usd, percent=percent, cell=cell, slug=slug)
    return made


def shown(request: Request, template: str, /, *, status: int = 200, **values: Any) -> Response:
    """A page for whoever asks."""
    caller = request.state.caller
    page = environment().get_template(template)
    text = page.render(caller=caller, path=request.url.path, **values)
    return HTMLResponse(text, status)


def error_page(scope: Scope, refusal: Response) -> Response:
    """A refusal as its reader likes it: a page for a browser, JSON for programs."""
    accepts = Headers(scope=scope).get("accept", "")
    if scope["path"].startswith("/api") or "text/html" not in accepts:
        return refusal
    error = json.loads(bytes(refusal.body))["error"]
    page = environment().get_template("error.html.j2")
    text = page.render(caller=None, path=scope["path"], error=error, status=refusal.status_code)
    kept = {name: refusal.headers[name] for name in ("retry-after",) if name in refusal.headers}
    return HTMLResponse(text, refusal.status_code, kept)


def number(value: float | None, digits: int = 2) -> str:
    """A number for people; a dash where there is none."""
    if value is None or value != value:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def usd(value: float | None) -> str:
    """An amount; a dash where the price is not known.

    >>> usd(0.0123), usd(12.5)
    ('$0.0123', '$12.50')
    """
    if value is None or value != value:
        return "–"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def percent(value: float | None) -> str:
    """A share of 1."""
    return "–" if value is None or value != value else f"{value:.0%}"


def cell(value: Any) -> str:
    """A cell of a report's table."""
    from judge_gym.analysis.report import page  # heavy, and loaded where there is a table

    return page.shown(value)


def slug(title: str) -> str:
    """The title of a figure as its name in an address."""
    from judge_gym.analysis.report import page

    return page.slug(title)
