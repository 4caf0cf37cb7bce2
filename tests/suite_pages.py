"""A served lab with suite runs whose results are known: analysed, unfinished, and hostile."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from judge_gym.client import Client
from judge_gym.records.outcomes import EvalSource, Failed, StepResult
from judge_gym.store import SuiteRun
from judge_gym.triage import RunInfo, make_finding, report_path, split_results, write_report
from lab_server import ServedLab, serve_lab
from made_runs import RESULTS, SLUG, cases, judge_verdicts
from posted_suite_runs import MODEL, made_at, post, post_eval, post_run

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}</pre>"
NAME = "<i onmouseover=alert(3)>\"'{{ 7 * 7 }} ?#%2F"


@contextmanager
def suites_lab(folder: Path) -> Iterator[ServedLab]:
    """Serves a lab with an analysed run, one of another model, a hostile and an unfinished one."""
    with serve_lab(folder, run=False, public_reads=True) as opened:
        with Client(opened.url, opened.local) as client:
            run = post(client)
            post(client, model="openrouter:maker/model", condition="no_guidelines")
            _post_hostile(client)
            post_run(client, series="begun")
        for date, classification in (
            ("2026-03-02", "OVERLY_STRICT"),
            ("2026-03-03", "MODEL_FAULT"),
        ):
            write_analysis(opened.lab.suites.report(run).run, folder, date, classification)
        yield opened


def write_analysis(run: SuiteRun, folder: Path, date: str, classification: str) -> Path:
    """Writes a report on the made-up run as `judge-gym analyze` does, and returns its path."""
    head = RunInfo(run.key[:16], run.model, run.condition, run.suite, run.version, "2026-03-01")
    found = [
        make_finding(case, judge_verdicts(case, {"sim:judge": [[classification]]}))
        for case in cases()
    ]
    path = folder / report_path(head, date)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write_report(head, split_results(RESULTS), found, date=date))
    return path


def _post_hostile(client: Client) -> None:
    """Posts a run whose every name and text tries to become markup."""
    source = EvalSource("001-x", NAME, HOSTILE, {NAME: HOSTILE}, {NAME: HOSTILE}, HOSTILE)
    fields = {part: getattr(source, part) for part in source.__slots__}
    client.suites.save_tasks(NAME, "v" * 16, [fields])
    evals, settings = [f"001-x/{NAME}"], {"extra": HOSTILE}
    for replicates in (1, 2):
        run = client.suites.save_run(
            NAME,
            "v" * 16,
            NAME,
            evals,
            condition=NAME,
            settings=settings,
            series=NAME,
            replicates=replicates,
        )
    step = StepResult("tests", "failed", 1.0, HOSTILE, HOSTILE)
    result = replace(SLUG, category="001-x", name=NAME, outcome=Failed("tests", HOSTILE))
    for replicate in (0, 1):
        posted = replace(result, steps=(step,), files={NAME: HOSTILE}, replicate=replicate)
        post_eval(client, run, posted, made_at(replicate))


def of_run(run: int = 1) -> str:
    """Returns the path of a run of the known model."""
    return f"/model/{quote(MODEL, safe='')}/run/{run}"


def hostile_pages() -> list[str]:
    """Returns the paths that show the hostile run."""
    name = quote(NAME, safe="")
    run = f"/model/{name}/run/3"
    return [
        "/suites",
        f"/model/{name}",
        f"/experiment/{name}",
        run,
        f"{run}/001-x",
        f"{run}/001-x/{name}",
        f"/experiment/{name}/run/3/001-x/{name}?replicate=1",
    ]
