"""The pages on suite runs, read without a browser: scores, runs, evals and analyses."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from documents import parse, rows, text
from judge_gym.records.actors import machine_user
from judge_gym.records.outcomes import Failed
from judge_gym.store import SuiteRun
from judge_gym.web.failure_reports import find_report
from judge_gym.web.pages.suite_runs import pace
from lab_server import ServedLab, serve_lab
from made_runs import RESULTS, SLUG, SLUG_ANSWER, SLUG_CODE, SLUG_GRADER, SOURCES
from posted_suite_runs import BEGUN, MODEL, SUITE, VERSION
from suite_folders import known_by, write_suite
from suite_pages import NAME, hostile_pages, of_run, suites_lab, write_analysis

PAUSED = f"Paused by {machine_user()} over HTTP"

HTML = {"Accept": "text/html"}
PASSED = "000-strings/003-reverse"


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


def report_link(element: Any) -> str:
    """Returns where the link to the newer of the two reports leads."""
    [link] = [link for name, link in links(element).items() if name.endswith("_2026-03-03.md")]
    return link


def test_suites_lists_the_leaderboard_and_the_runs(lab: ServedLab) -> None:
    shown = page(lab, "/suites")
    assert text(shown.find(".//nav/a[@aria-current]")) == "Suites"
    assert SUITE in text(shown.find(".//h3"))
    boards = [row for board in shown.findall(".//table[@class='board']") for row in rows(board)]
    [row] = [row for row in boards if row[0] == MODEL]
    assert row[1] == "56 % [21, 86]", "5 of 9, with Clopper and Pearson's interval"
    runs = {str(row.get("data-run")): text(row) for row in shown.iterfind(".//tr[@data-run]")}
    assert list(runs) == ["4", "3", "2", "1"], "the newest first"
    assert "unfinished" in runs["4"] and "no score" in runs["4"]


def test_links_lead_from_a_model_to_a_failure_and_its_analysis(lab: ServedLab) -> None:
    board = page(lab, "/suites").find(".//table[@class='board']")
    model = page(lab, links(board)[MODEL])
    run = page(lab, links(model.find(".//tr[@data-run='1']"))["1"])
    figures = text(run.find(".//div[@class='figures']"))
    assert "56 %" in figures and "11 of 11" in figures and "10.0 sduration" in figures
    evals = {str(row.get("data-eval")): row for row in run.iterfind(".//tr[@data-eval]")}
    assert list(evals) == sorted(result.path for result in RESULTS)
    shares = {row[0]: row[1] for row in rows(run.find(".//table[@class='categories']"))}
    assert shares["000-strings"].startswith("50 %")
    assert "1 of 4 tests failed" in text(evals[SLUG.path])
    found = page(lab, links(evals[SLUG.path])["MODEL_FAULT"])
    assert text(found.find(".//nav[@class='tabs']/a[@aria-current]")) == "Analysis"
    analysis = found.find(".//*[@id='analysis']")
    assert "The lines decide it." in text(analysis) and "**" not in text(analysis)
    assert "Class: MODEL_FAULT" in [text(item)[:18] for item in analysis.iter("li")]
    report = page(lab, report_link(found))
    assert text(report.find(".//h1")).startswith("Analysis of run")
    assert links(report)[SLUG.path] == f"{of_run()}/{SLUG.path}"
    assert "Run 1" in text(page(lab, links(found)["run 1"]).find(".//h1"))


def test_the_tab_and_the_file_of_an_eval_have_an_address(lab: ServedLab) -> None:
    place = f"{of_run()}/{SLUG.path}"
    steps = page(lab, place)
    [step] = [row for row in rows(steps.find(".//table[@class='steps']")) if row[1] == "failed"]
    assert step[2] == "1.00"
    assert "AssertionError: assert 'a--b' == 'a-b'" in text(steps)
    tabs = links(steps.find(".//nav[@class='tabs']"))
    assert tabs["Output"] == f"{place}?tab=output#tabs"
    files = {"output": SLUG_CODE, "answer": SLUG_ANSWER, "grader": SLUG_GRADER}
    for tab, body in files.items():
        shown = page(lab, f"{place}?tab={tab}")
        code = [row[1] for row in code_rows(shown)]
        assert code == body.splitlines()
        for path, link in links(shown.find(".//nav[@aria-label='Files']")).items():
            assert code_rows(page(lab, link.partition("#")[0])) == code_rows(shown), path
    assert SOURCES[SLUG.path].task.split()[0] in text(page(lab, f"{place}?tab=task"))
    assert lab.ask("GET", f"{place}?tab=nothing", headers=HTML).status_code == 422
    missing = lab.ask("GET", f"{place}?tab=output&file=nothing.py")
    assert (missing.status_code, missing.json()["error"]["choices"]) == (404, [*SLUG.files])


def code_rows(element: Any) -> list[list[str]]:
    """Returns the lines of code on a page, with their numbers and signs."""
    return [
        ["".join(cell.itertext()) for cell in row.iter("td")]
        for table in element.iterfind(".//table[@class='code']")
        for row in table.iter("tr")
    ]


def test_the_diff_shows_what_differs_from_the_reference_answer(lab: ServedLab) -> None:
    shown = page(lab, f"{of_run()}/{SLUG.path}?tab=diff")
    assert code_rows(shown) == [
        ["1", "1", "", "def slugify(text: str) -> str:"],
        ["2", "", "−", "    return '-'.join(text.lower().split())"],
        ["", "2", "+", "    return text.lower().replace(' ', '-')"],
    ]
    assert "different, +1 −1" in text(shown.find(".//section[@class='diff']/h2"))


def test_links_walk_over_the_failed_evals_of_a_run(lab: ServedLab) -> None:
    failed = sorted(result.path for result in RESULTS if isinstance(result.outcome, Failed))
    shown = page(lab, f"{of_run()}/{failed[0]}?tab=diff")
    assert shown.find(".//a[@rel='prev']") is None
    walked = [failed[0]]
    while (step := shown.find(".//a[@rel='next']")) is not None and len(walked) < len(RESULTS):
        shown = page(lab, step.get("href"))
        walked.append(text(shown.find(".//h1")).split()[0])
        assert text(shown.find(".//nav[@class='tabs']/a[@aria-current]")) == "Diff"
    assert walked == failed
    assert f"failed {len(failed)} of {len(failed)}" in text(shown)
    assert shown.find(".//a[@rel='prev']").get("href") == f"{of_run()}/{failed[-2]}?tab=diff"


def test_the_filter_of_a_run_is_kept_by_links(lab: ServedLab) -> None:
    run = page(lab, f"{of_run()}?outcome=passed")
    [first, *others] = run.findall(".//tr[@data-eval]")
    assert len(others) == 4
    [link] = links(first).values()
    shown = page(lab, link)
    assert "passed 1 of 5" in text(shown)
    assert links(shown)["run 1"] == f"{of_run()}?outcome=passed"
    assert shown.find(".//a[@rel='next']").get("href").endswith("outcome=passed&tab=steps")


def test_a_category_has_its_evals_past_runs_and_scores_over_time(lab: ServedLab) -> None:
    run = page(lab, of_run())
    place = links(run.find(".//table[@class='categories']"))["000-strings"]
    shown = page(lab, place)
    assert text(shown.find(".//h1")) == "000-strings"
    inside = [result.path for result in RESULTS if result.category == "000-strings"]
    assert [row.get("data-eval") for row in shown.iterfind(".//tr[@data-eval]")] == sorted(inside)
    past = {row[0]: row[1:] for row in rows(shown.find(".//table[@class='past']"))}
    assert past[SLUG.name] == ["✗"]
    later = page(lab, f"{of_run(4)}/000-strings")
    past = {row[0]: row[1:] for row in rows(later.find(".//table[@class='past']"))}
    assert past[SLUG.name] == ["✗", "·"], "the second run has not begun"
    [score] = rows(shown.find(".//table[@class='history']"))
    assert score[1:3] == ["default", "1"] and score[3].startswith("50 %")
    image = lab.ask("GET", str(shown.find(".//figure//img").get("src")), "")
    assert image.headers["content-type"] == "image/svg+xml"
    assert "000-strings" in image.text and "currentColor" not in image.text


def test_a_run_over_a_part_of_its_suite_is_never_shown_as_complete(lab: ServedLab) -> None:
    evals, suites = [SLUG.path, PASSED], lab.lab.suites
    number = suites.save_run(SUITE, VERSION, MODEL, evals, series="part")
    outcomes = ({"kind": "passed"}, {"kind": "failed", "step": "tests", "reason": "1 of 2"})
    for path, outcome in zip(evals, outcomes, strict=True):
        category, name = path.split("/")
        suites.save_eval(number, category, name, outcome, BEGUN)
    for path in ("/suites", of_run(number), f"/model/{quote(MODEL, safe='')}"):
        spans = page(lab, path).iter("span")
        pills = [text(span) for span in spans if span.get("class", "").startswith("pill")]
        assert "2 of 11 evals" in pills, path
    run = page(lab, of_run(number))
    assert "not on the leaderboard" in text(run)
    assert suites.report(number).to_json()["suite_evals"] == 11
    since = f"no clear change: 0 points -100 to +100 · worse: {PASSED} · better: {SLUG.path}"
    assert since in text(run), "compared with the run over all evals"
    assert "Run again with fresh answers" not in links(run), "its suite is not here"


def test_only_failed_evals_have_an_analysis(lab: ServedLab) -> None:
    run = page(lab, of_run())
    failed = [result for result in RESULTS if isinstance(result.outcome, Failed)]
    assert [text(link) for link in run.iterfind(".//td/a")].count("MODEL_FAULT") == len(failed) == 4
    inconclusive = run.find(".//tr[@data-eval='002-files/003-download']")
    assert "infrastructure" in text(inconclusive)
    [path] = links(inconclusive).values()
    assert page(lab, path).find(".//*[@id='analysis']") is None
    assert "4 MODEL_FAULT" in text(run)
    assert report_link(run) == f"{of_run()}/report"
    assert lab.ask("GET", f"{of_run(4)}/report", headers=HTML).status_code == 404


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
        "/suites?version=nothing",
        "/suites/new?suite=nothing",
        of_run(99),
        f"{of_run()}/nothing",
        f"{of_run()}/000-strings/nothing",
        f"{of_run()}/{SLUG.path}?replicate=1",
    ],
)
def test_a_page_that_does_not_exist_is_not_found(lab: ServedLab, path: str) -> None:
    answer = lab.ask("GET", path, headers=HTML)
    assert answer.status_code == 404
    assert "There is nothing here" in answer.text


def foreign(main: Any) -> list[Any]:
    """Returns the elements of a page that its texts tried to become."""
    drawn = {id(image) for image in main.iterfind(".//figure[@class='history']//img")}
    return [
        found
        for found in main.iter()
        if found.tag in ("script", "img", "i") and id(found) not in drawn
    ]


def test_hostile_text_is_escaped(lab: ServedLab) -> None:
    for path in hostile_pages():
        shown = page(lab, path)
        main = shown.find(".//main")
        assert NAME in "".join(main.itertext())
        assert foreign(main) == []
    for tab in ("steps", "output", "diff", "task", "answer", "grader"):
        main = page(lab, f"{path}&tab={tab}").find(".//main")
        assert foreign(main) == [], tab
        assert "<script>alert(1)</script>" in "".join(main.itertext()), tab
    run = page(lab, links(page(lab, "/suites").find(".//tr[@data-run='3']"))["3"])
    [path, *_] = links(run.find(".//tr[@data-eval]")).values()
    assert NAME in "".join(page(lab, path).find(".//h1").itertext())


def test_scores_are_public_and_nothing_else_is(lab: ServedLab) -> None:
    shown = page(lab, "/suites", token="")
    assert [text(link) for link in shown.findall(".//header//nav/a")] == ["Suites"]
    model = page(lab, links(shown.find(".//table[@class='board']"))[MODEL], token="")
    assert text(model.find(".//h1")) == MODEL
    refused = lab.ask("GET", "/usage", "", headers=HTML)
    assert refused.status_code == 401
    assert text(parse(refused.text).find(".//h1")) == "Log in"


def test_home_shows_suite_runs_and_is_public_where_scores_are(lab: ServedLab) -> None:
    home = page(lab, "/")
    runs = [row.get("data-run") for row in home.iterfind(".//tr[@data-run]")]
    assert runs[-4:] == list("4321")
    assert "No experiments yet" not in text(home)
    public = page(lab, "/", token="")
    assert text(public.find(".//h1")) == "Suites" and public.find(".//table[@class='board']")
    assert "New study" not in text(public), "and nothing else is public"


def test_every_address_of_a_run_works(lab: ServedLab) -> None:
    model, eval = quote(MODEL, safe=""), SLUG.path
    both = f"/model/{model}/experiment/default"
    for place in (f"/model/{model}", "/experiment/default", both):
        assert page(lab, place, token="").find(f".//a[@href='{place}/run/1']") is not None
        for path in ("", f"/{SLUG.category}", f"/{eval}", f"/{eval}?tab=diff", "/report"):
            shown = page(lab, f"{place}/run/1{path}", token="")
            [crumb] = shown.iterfind(".//p[@class='crumbs']")
            assert place in {link.get("href") for link in crumb.iterfind("a")}
    assert page(lab, f"{both}/run/1").find(f".//a[@href='{both}/run/1/{eval}']") is not None
    for path in ("experiment/no_guidelines/run/1", "experiment/no_guidelines"):
        assert lab.ask("GET", f"/model/{model}/{path}").status_code == 404


def buttons(element: Any) -> list[str]:
    """Returns the texts of the buttons that control a run."""
    return [text(button) for button in element.iterfind(".//button[@data-post]")]


def test_a_run_is_started_paused_resumed_and_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = f"sim:{known_by(write_suite(Path('tiny'), 2), logic=1, syntax=0, missing=0)}"
    with serve_lab(tmp_path, run=False, public_reads=True) as lab:
        form = page(lab, "/suites/new?suite=tiny")
        assert [text(label) for label in form.iterfind(".//label[@class='tick']")] == [
            "001-values 2"
        ]
        started = lab.post("/api/suites/start", suite="tiny", model=model)
        place = f"/model/{quote(model, safe='')}/run/{started['run']}"
        shown = page(lab, place)
        assert text(shown.find(".//h1")) == "Run 1 running" and "0 of 2 results" in text(shown)
        assert buttons(shown) == ["Pause", "Cancel"]
        assert lab.post("/api/runs/pause", target="suite:1") == {"paused": ["suite:1"]}
        assert buttons(page(lab, place)) == ["Resume", "Cancel"]
        assert buttons(page(lab, place, lab.read)) == [], "a reader controls nothing"
        assert lab.ask("GET", "/suites/new", lab.read).status_code == 403
        assert PAUSED in text(page(lab, place))

        lab.lab.suites.resume(1)
        shown = page(lab, place)
        assert text(shown.find(".//h1")) == "Run 1 complete" and buttons(shown) == []
        kinds = [row[1] for row in rows(shown.find(".//table[@class='log']"))]
        assert kinds[0] == "ended all that was asked is done"
        assert kinds[-2:] == [
            f"paused {PAUSED}",
            f"started queued for a worker by {machine_user()} over HTTP",
        ]
        public = text(page(lab, place, "").find(".//table[@class='log']"))
        assert "paused" in public and machine_user() not in public, "who acts is not public"
        again = lab.ask("POST", "/api/suites/start", json={"suite": "tiny", "model": model})
        assert again.status_code == 409 and "another series" in again.text
        form = page(lab, links(shown)["Run again with fresh answers"])
        field = form.find(".//input[@name='series']")
        assert field.get("value") == "1", "the first that was not used"
        form = page(lab, links(shown)["Run only what failed"])
        assert "did not pass in run 1" in text(form)

        failed = page(lab, f"{place}/001-values/001-value")
        [link] = [link for link in links(failed).values() if link.startswith("/calls/")]
        assert "VALUE = 1000" in text(page(lab, link))
        assert lab.ask("GET", "/calls/999", headers=HTML).status_code == 404
        told = followed(lab, "suite:1")
        assert told.count("event: event") == len(kinds) and '"status":"complete"' in told.replace(
            " ", ""
        )
        assert lab.ask("GET", "/api/events?target=suite:9").status_code == 404


def followed(lab: ServedLab, target: str) -> str:
    """Returns what the server streams about a target that has ended."""
    told = ""
    headers = {"Authorization": f"Bearer {lab.read}"}
    with lab.http.stream("GET", f"/api/events?target={target}", headers=headers) as stream:
        for part in stream.iter_text():
            told += part
            if "event: end" in told:
                break
    return told


def test_only_reports_on_the_same_run_and_version_are_used(tmp_path: Path) -> None:
    key = "0123456789abcdef" * 4
    run = SuiteRun(7, key, SUITE, VERSION, MODEL, "default", {}, "0", {SLUG.path: 1}, BEGUN)
    assert find_report(tmp_path, run) is None
    path = write_analysis(run, tmp_path, "2026-03-02", "MODEL_FAULT")
    found = find_report(tmp_path, run)
    assert found is not None and found.source == path.relative_to(tmp_path).as_posix()
    failed = {result.path for result in RESULTS if isinstance(result.outcome, Failed)}
    assert set(found.failures) == failed
    assert found.classes() == [("MODEL_FAULT", len(failed))]
    assert find_report(tmp_path, replace(run, key=key[::-1])) is None
    assert find_report(tmp_path, replace(run, version="another")) is None
    path.write_text("an older report on this run")
    assert find_report(tmp_path, run) is None


def test_the_pace_of_a_run_follows_from_its_results_and_its_time() -> None:
    run = SimpleNamespace(targets=6)
    report: Any = SimpleNamespace(run=run, results=[object()] * 4)
    found = pace(report, timedelta(minutes=2))
    assert found is not None
    assert (found.per_minute, found.left) == (2.0, timedelta(minutes=1))
    assert pace(report, None) is None
    report.results = []
    assert pace(report, timedelta(minutes=2)) is None
