"""The pages on suite runs, read without a browser: scores, runs, evals and analyses."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from documents import parse, rows, text
from judge_gym.records.outcomes import Failed
from judge_gym.store import SuiteRun
from judge_gym.web.failure_reports import failure_analyses
from lab_server import ServedLab
from made_runs import RESULTS, SLUG, SLUG_CODE, SLUG_GRADER
from posted_suite_runs import BEGUN, MODEL, SUITE, VERSION
from suite_pages import HOSTILE, NAME, hostile_pages, of_run, suites_lab, write_analysis

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with suites_lab(tmp_path_factory.mktemp("suites")) as opened:
        yield opened


def page(lab: ServedLab, path: str, token: str | None = None) -> Any:
    answer = lab.ask("GET", path, token, headers=HTML)
    assert answer.status_code == 200, (path, answer.text[:500])
    return parse(answer.text)


def links(element: Any) -> dict[str, str]:
    """Returns where the links of an element lead, by their text."""
    return {text(link): str(link.get("href")) for link in element.iter("a")}


def test_suites_lists_the_leaderboard_and_the_runs(lab: ServedLab) -> None:
    shown = page(lab, "/suites")
    assert text(shown.find(".//nav/a[@aria-current]")) == "Suites"
    assert SUITE in text(shown.find(".//h3"))
    boards = [row for board in shown.findall(".//table[@class='board']") for row in rows(board)]
    [row] = [row for row in boards if row[0] == MODEL]
    assert row[1] == "56% 27% to 81%", "5 of 9, with Wilson's interval"
    runs = {str(row.get("data-run")): text(row) for row in shown.iterfind(".//tr[@data-run]")}
    assert list(runs) == ["4", "3", "2", "1"], "the newest first"
    assert "unfinished" in runs["4"] and "no score" in runs["4"]


def test_links_lead_from_a_model_to_a_failure_and_its_analysis(lab: ServedLab) -> None:
    board = page(lab, "/suites").find(".//table[@class='board']")
    model = page(lab, links(board)[MODEL])
    run = page(lab, links(model.find(".//tr[@data-run='1']"))["1"])
    figures = text(run.find(".//div[@class='figures']"))
    assert "56%" in figures and "11 of 11" in figures
    evals = {str(row.get("data-eval")): row for row in run.iterfind(".//tr[@data-eval]")}
    assert list(evals) == sorted(result.path for result in RESULTS)
    shares = {row[0]: row[3] for row in rows(run.find(".//table[@class='categories']"))}
    assert shares["000-strings"] == "50%"
    assert "1 of 4 tests failed" in text(evals[SLUG.path])
    found = page(lab, links(evals[SLUG.path])["MODEL_FAULT"].partition("#")[0])
    analysis = text(found.find(".//*[@id='analysis']"))
    assert "The lines decide it." in analysis and "_2026-03-03.md" in analysis
    [step] = [row for row in rows(found.find(".//table[@class='steps']")) if row[1] == "failed"]
    assert step[2] == "1.00"
    assert "AssertionError: assert 'a--b' == 'a-b'" in text(found)
    texts = ["".join(pre.itertext()).strip("\n") for pre in found.iter("pre")]
    assert SLUG_CODE.strip("\n") in texts and SLUG_GRADER.strip("\n") in texts
    assert "Run 1" in text(page(lab, links(found)["run 1"]).find(".//h1"))


def test_only_failed_evals_have_an_analysis(lab: ServedLab) -> None:
    run = page(lab, of_run())
    failed = [result for result in RESULTS if isinstance(result.outcome, Failed)]
    assert [text(link) for link in run.iterfind(".//td/a")].count("MODEL_FAULT") == len(failed) == 4
    inconclusive = run.find(".//tr[@data-eval='002-files/003-download']")
    assert "infrastructure" in text(inconclusive)
    [path] = links(inconclusive).values()
    assert page(lab, path).find(".//*[@id='analysis']") is None
    assert "Analysed in" in text(run) and "Analysed in" not in text(page(lab, of_run(4)))


def test_the_same_pages_are_found_by_condition(lab: ServedLab) -> None:
    group = page(lab, "/experiment/no_guidelines")
    model = page(lab, links(group)["openrouter:maker/model"])
    assert text(model.find(".//h1")) == "openrouter:maker/model"
    found = page(lab, f"/experiment/no_guidelines/run/2/{SLUG.path}")
    assert SLUG.path in text(found.find(".//h1"))
    assert "condition no_guidelines" in text(found.find(".//p[@class='crumbs']"))


@pytest.mark.parametrize(
    "path",
    [
        "/model/nobody",
        "/experiment/nothing",
        "/experiment/default/run/2",
        "/model/nobody/run/1",
        of_run(99),
        f"{of_run()}/000-strings/nothing",
        f"{of_run()}/{SLUG.path}?replicate=1",
    ],
)
def test_a_page_that_does_not_exist_is_not_found(lab: ServedLab, path: str) -> None:
    answer = lab.ask("GET", path, headers=HTML)
    assert answer.status_code == 404
    assert "Not found" in answer.text


def test_hostile_text_is_escaped(lab: ServedLab) -> None:
    for path in hostile_pages():
        shown = page(lab, path)
        main = shown.find(".//main")
        assert NAME in "".join(main.itertext())
        assert not [one for one in main.iter() if one.tag in ("script", "img", "i")]
    assert HOSTILE in ["".join(pre.itertext()).strip("\n") for pre in main.iter("pre")]
    run = page(lab, links(page(lab, "/suites").find(".//tr[@data-run='3']"))["3"])
    [path, *_] = links(run.find(".//tr[@data-eval]")).values()
    assert NAME in "".join(page(lab, path).find(".//h1").itertext())


def test_scores_are_public_and_nothing_else_is(lab: ServedLab) -> None:
    shown = page(lab, "/suites", token="")
    assert [text(link) for link in shown.findall(".//header/nav/a")] == ["Suites"]
    model = page(lab, links(shown.find(".//table[@class='board']"))[MODEL], token="")
    assert text(model.find(".//h1")) == MODEL
    refused = lab.ask("GET", "/usage", "", headers=HTML)
    assert refused.status_code == 401
    assert text(parse(refused.text).find(".//h1")) == "Log in"


def test_only_reports_on_the_same_run_and_version_are_used(tmp_path: Path) -> None:
    key = "0123456789abcdef" * 4
    run = SuiteRun(7, key, SUITE, VERSION, MODEL, "default", {}, "0", 1, (SLUG.path,), BEGUN)
    assert failure_analyses(tmp_path, run) == {}
    path = write_analysis(run, tmp_path, "2026-03-02", "MODEL_FAULT")
    found = failure_analyses(tmp_path, run)
    assert set(found) == {result.path for result in RESULTS if isinstance(result.outcome, Failed)}
    assert found[SLUG.path].classification == "MODEL_FAULT"
    assert found[SLUG.path].source == path.relative_to(tmp_path).as_posix()
    assert failure_analyses(tmp_path, replace(run, key=key[::-1])) == {}
    assert failure_analyses(tmp_path, replace(run, version="another")) == {}
    path.write_text("an older report on this run")
    assert failure_analyses(tmp_path, run) == {}
