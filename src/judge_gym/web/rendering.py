"""Renders pages: one Jinja environment for all templates, with the filters that they share."""

import json
from datetime import timedelta
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from judge_gym.records import numbers
from judge_gym.records.forest import Axis, row_svg
from judge_gym.records.judge_table import answer
from judge_gym.records.numbers import FORMATS, difference_with_interval, with_interval
from judge_gym.web.markdown import markdown, rich_text
from judge_gym.web.navigation import navigation, operators

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from judge_gym.lab import Lab
    from judge_gym.records.judge_table import Quantity, Unit

TERMS = {
    "ecc": "Essentially contested concept: a concept whose meaning people dispute, such as "
    "democracy. Judges write their own rubrics for it.",
    "control": "A concept that is less contested, judged for comparison.",
    "benchmark": "Items with known answers, judged under a given rubric.",
    "dose": "How contested the concept is meant to be; used in the analysis, never shown to a "
    "judge.",
    "digest": "A hash of the task and the design; experiments with the same digest share answers.",
    "series": "A name for one set of random draws. A new series asks everything again, to measure "
    "test-retest reliability.",
    "draw": "Which of several rubrics that the author wrote for the same concept.",
    "swap": "A judge scores under a rubric that another judge wrote, which separates the rubric's "
    "influence from the judge's.",
    "probe": "The judge's own estimate of how likely a majority of three experts would agree with "
    "its verdict.",
    "standing": "best: clearly ahead of all others; tied: not clearly different from the best; "
    "worse: clearly behind; unknown: too few items to tell.",
    "score": "Judges assign a stage of the rubric to each item.",
    "rubric": "Judges write the stages and criteria, and a critic rates them.",
    "evidence": "An editor prepares the neutral views of the texts, if the design asks for them.",
    "pignistic": "A probability for each stage: every verdict is split evenly over the stages that "
    "it names.",
    "belief": "Share of verdicts that name this stage and no other.",
    "plausibility": "Share of verdicts that name this stage, alone or with others.",
    "knob": "One choice about how a judge is asked, such as the order of the rubric's stages.",
    "ledger": "The record of every call to a model; recorded answers are never paid for again.",
    "seed": "The number from which shuffled labels and orders are derived, so that a study can be "
    "repeated exactly.",
    "sweep": "Which combinations of the varied knobs become experiments.",
    "pool": "A frozen, ordered set of texts that studies judge.",
    "disagreement": "How often two verdicts of different setups differ: 0 if all agree, 1 if each "
    "setup says something else.",
    "consistency": "How often two repeats of the same question get the same verdict.",
    "position bias": "Of the decided verdicts on pairs, the share for the response shown first "
    "minus the share for the other; 0 is unbiased.",
    "unreadable": "Answers in which no verdict could be read.",
    "cluster": "Items that depend on each other, such as texts of one outlet.",
    "view": "A rewritten version of the text, such as one without loaded language.",
    "rpm": "Requests per minute.",
    "tpm": "Tokens per minute.",
    "concurrency": "Calls in flight at once.",
}
"""What terms mean that a newcomer cannot know; pages show the text on hover."""


@cache
def environment() -> "Environment":
    """Returns the templates' environment, which escapes every value."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader("judge_gym.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(version=metadata.version("judge-gym"), terms=TERMS, usd=usd, number=number)
    env.globals.update(ends=ends)
    env.globals.update(navigation=navigation, operators=operators)
    env.filters.update(number=number, usd=usd, percent=percent, cell=cell, slug=slug, term=term)
    env.filters.update(duration=duration, markdown=markdown, rich_text=rich_text, signed=signed)
    env.filters.update(quantity=quantity, difference=difference_with_interval, initial=initial)
    env.filters.update(forest=forest, axis=axis)
    env.filters.update(estimate=estimate, interval=interval, plain=plain, answer=answer)
    return env


def render(request: Request, template: str, /, *, status: int = 200, **values: Any) -> Response:
    """Returns a page for the request's caller."""
    page = environment().get_template(template)
    lab: Lab = request.app.state.lab
    common = {"path": request.url.path, "study_state": lab.pages.study_state}
    return HTMLResponse(page.render(caller=request.state.caller, **common, **values), status)


def error_page(scope: Scope, error: Response) -> Response:
    """Returns an error as a page if the client asks for one, else unchanged as JSON."""
    headers = Headers(scope=scope)
    if scope["path"].startswith("/api") or "text/html" not in headers.get("accept", ""):
        return error
    content = json.loads(bytes(error.body))["error"]
    if "remedy" in content:
        content["message"] += f"; run '{content['remedy']['command']}'"
    in_part = "hx-request" in headers  # a part of a page that htmx asked for
    page = environment().get_template("_error.html.j2" if in_part else "error.html.j2")
    caller = scope.get("state", {}).get("caller")  # known callers keep the navigation
    text = page.render(caller=caller, path=scope["path"], error=content, status=error.status_code)
    kept = {name: error.headers[name] for name in ("retry-after",) if name in error.headers}
    return HTMLResponse(text, error.status_code, kept)


def term(name: str, label: str = "") -> "str | Markup":
    """Returns a term with its explanation as a hover title; unknown terms stay plain text."""
    from markupsafe import Markup

    if name not in TERMS:
        return label or name
    return Markup('<abbr title="{}">{}</abbr>').format(TERMS[name], label or name)


def number(value: float | None, digits: int = 2) -> str:
    """Returns a number with thousands separators, or a dash if it is undefined."""
    if value is None or value != value:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def signed(value: float, digits: int = 0) -> str:
    """Returns a difference with its sign; 0 has none.

    >>> signed(3.6), signed(-0.04, 2), signed(-0.001, 2)
    ('+4', '-0.04', '0.00')
    """
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def quantity(value: "Quantity | None", unit: "Unit") -> "str | Markup":
    """Returns an estimate and its interval; hovering says why there is none, unknown is a dash."""
    from markupsafe import Markup

    if value is None:
        return "–"
    estimate, bracket, interval = with_interval(value, FORMATS[unit]).partition(" [")
    if bracket:
        return Markup('{} <span class="soft">[{}</span>').format(estimate, interval)
    if value.get("withheld"):
        title = f"No interval: {value['withheld']}"
        return Markup('<span title="{}">{}</span>').format(title, estimate)
    return estimate


def estimate(value: "Quantity | None", unit: "Unit") -> str:
    """Returns an estimate without its interval, or a dash if it is unknown."""
    return "–" if value is None else FORMATS[unit](value["value"])


def interval(value: "Quantity", unit: "Unit") -> str:
    """Returns the interval of an estimate in brackets."""
    return f"[{plain(value, unit).partition(' [')[2]}"


def plain(value: "Quantity", unit: "Unit") -> str:
    """Returns an estimate with its interval, without markup."""
    return with_interval(value, FORMATS[unit])


def forest(axis: Axis, value: "Quantity | None", **options: Any) -> "Markup":
    """Returns a row of a forest plot on an axis, with the options of `row_svg`."""
    from markupsafe import Markup

    return Markup(row_svg(axis, value, **options))


def axis(scale: Axis, **options: Any) -> "Markup":
    """Returns the numbers of a forest plot's axis, for the head of its table."""
    from markupsafe import Markup

    return Markup(scale.svg(**options))


def ends(low: float, high: float) -> str:
    """Returns the ends of an interval of a share, as all intervals are written.

    >>> ends(0.55, 0.981)
    '[55, 98]'
    """
    return f"[{round(100 * low)}, {round(100 * high)}]"


def initial(text: str) -> str:
    """Returns a text that begins with a capital letter; the rest stays as it is.

    >>> initial("finds “Pass”")
    'Finds “Pass”'
    """
    return text[:1].upper() + text[1:]


def usd(value: float | None) -> str:
    """Returns an amount in US dollars, or a dash if the price is unknown.

    >>> usd(0.0123), usd(1.5), usd(None)
    ('$0.012', '$1.50', '–')
    """
    return "–" if value is None or value != value else numbers.dollars(value)


def duration(value: timedelta | None) -> str:
    """Returns a duration in its two largest units, or a dash if it is unknown.

    >>> duration(timedelta(seconds=7.5)), duration(timedelta(seconds=192)), duration(None)
    ('7.5 s', '3 min 12 s', '–')
    """
    if value is None:
        return "–"
    seconds = value.total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours, days = round(seconds) // 60, round(seconds) // 3600, round(seconds) // 86400
    if days:
        return f"{days} d {hours % 24} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {round(seconds) % 60} s"


def percent(value: float | None) -> str:
    """Returns a proportion as a percentage, or a dash if it is undefined."""
    return "–" if value is None or value != value else numbers.percent(value)


def cell(value: Any) -> str:
    """Returns a value as the tables of reports show it."""
    from judge_gym.analysis.report import page  # heavy, so loaded only where a table is shown

    return page.shown(value)


def slug(title: str) -> str:
    """Returns a figure's title as it is written in a URL."""
    from judge_gym.analysis.report import page

    return page.slug(title)
