"""Pages of suite runs in a real browser: scores, runs, evals, analyses; hostile text is text."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from browsed import PHONE, browsing, sideways
from judge_gym.client import Client
from judge_gym.records.outcomes import EvalSource, Failed, StepResult
from judge_gym.store import SuiteRun
from judge_gym.triage import RunInfo, make_finding, report_path, split_results, write_report
from judge_gym.web.failure_reports import failure_analyses
from made_runs import RESULTS, SLUG, SLUG_CODE, SLUG_GRADER, cases, judge_verdicts
from posted import BEGUN, MODEL, SUITE, VERSION, made_at, post, post_eval, post_run
from served import Served, served

pytestmark = pytest.mark.needs("chromium")

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}</pre>"
NAME = "<i onmouseover=alert(3)>\"'{{ 7 * 7 }} ?#%2F"
OLD = "an older report on this run"


def analysed(run: SuiteRun, folder: Path, date: str, classification: str) -> Path:
    """A report on the made-up run, as the analysis writes it."""
    head = RunInfo(run.key[:16], run.model, run.experiment, run.suite, run.version, "2026-03-01")
    found = [
        make_finding(one, judge_verdicts(one, {"sim:judge": [[classification]]})) for one in cases()
    ]
    path = folder / report_path(head, date)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write_report(head, split_results(RESULTS), found, date=date))
    return path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A lab with a known run, analysed, one of another model, and one of hostile texts."""
    folder = tmp_path_factory.mktemp("suites")
    with served(folder, run=False, public_reads=True) as opened:
        with Client(opened.url, opened.local) as client:
            run = post(client)
            post(client, model="openrouter:maker/model", experiment="no_guidelines")
            hostile(client)
            post_run(client, series="begun")
        analysed(opened.lab.suites.report(run).run, folder, "2026-03-02", "OVERLY_STRICT")
        analysed(opened.lab.suites.report(run).run, folder, "2026-03-03", "MODEL_FAULT")
        yield opened


def hostile(client: Client) -> None:
    """A run in which whatever can be a text is one that would like to be more."""
    name = NAME
    source = EvalSource("001-x", name, HOSTILE, {name: HOSTILE}, {name: HOSTILE}, HOSTILE)
    fields = {part: getattr(source, part) for part in source.__slots__}
    client.suites.save_tasks(NAME, "v" * 16, [fields])
    path = f"001-x/{name}"
    condition = {"extra": HOSTILE}
    for replicate in (1, 2):
        run = client.suites.save_run(
            NAME,
            "v" * 16,
            NAME,
            [path],
            experiment=NAME,
            condition=condition,
            series=NAME,
            replicates=replicate,
        )
    step = StepResult("tests", "failed", 1.0, HOSTILE, HOSTILE)
    result = replace(SLUG, category="001-x", name=name, outcome=Failed("tests", HOSTILE))
    for replicate in (0, 1):
        one = replace(result, steps=(step,), files={name: HOSTILE}, replicate=replicate)
        post_eval(client, run, one, made_at(replicate))


def of_run(run: int = 1) -> str:
    return f"/model/{quote(MODEL, safe='')}/run/{run}"


# --- what they show ------------------------------------------------------------------------------


def test_suites_lists_the_leaderboard_and_the_runs(page: Page, lab: Served) -> None:
    page.goto(f"{lab.url}/")
    page.get_by_role("link", name="Suites").click()
    expect(page.locator("nav a[aria-current]")).to_have_text("Suites")
    expect(page.get_by_role("heading", level=3).first).to_contain_text(SUITE)
    row = page.locator("table.board tr", has_text=MODEL)
    expect(row).to_contain_text("56%")  # 5 of 9
    expect(row).to_contain_text("27% to 81%")  # Wilson's interval for 5 of 9
    runs = [item.get_attribute("data-run") for item in page.locator("tr[data-run]").all()]
    assert runs == ["4", "3", "2", "1"], "the newest first"
    expect(page.locator("tr[data-run='4']")).to_contain_text("unfinished")
    expect(page.locator("tr[data-run='4']")).to_contain_text("no score")


def test_one_finds_the_way_from_a_model_to_a_failure_and_its_analysis(
    page: Page, lab: Served
) -> None:
    page.goto(f"{lab.url}/suites")
    page.locator("table.board").get_by_role("link", name=MODEL).click()
    expect(page).to_have_url(f"{lab.url}/model/{quote(MODEL, safe='')}")
    page.locator("tr[data-run='1']").get_by_role("link", name="1", exact=True).click()
    expect(page.locator(".figures")).to_contain_text("56%")
    expect(page.locator(".figures")).to_contain_text("11 of 11")
    listed = [row.get_attribute("data-eval") for row in page.locator("tr[data-eval]").all()]
    assert listed == sorted(result.path for result in RESULTS)
    shares = page.locator("table.categories tr", has_text="000-strings")
    expect(shares).to_contain_text("50%")
    row = page.locator(f"tr[data-eval='{SLUG.path}']")
    expect(row).to_contain_text("1 of 4 tests failed")
    row.get_by_role("link", name="MODEL_FAULT").click()
    expect(page.locator("#analysis")).to_contain_text("The lines decide it.")
    expect(page.locator("#analysis")).to_contain_text("_2026-03-03.md")
    expect(page.locator("table.steps")).to_contain_text("1.00")
    expect(page.locator("body")).to_contain_text("AssertionError: assert 'a--b' == 'a-b'")
    shown = [text.strip("\n") for text in page.locator("pre").all_text_contents()]
    assert SLUG_CODE.strip("\n") in shown and SLUG_GRADER.strip("\n") in shown
    page.get_by_role("link", name="run 1").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Run 1")


def test_what_passed_or_told_nothing_has_no_analysis(page: Page, lab: Served) -> None:
    page.goto(lab.url + of_run())
    expect(page.locator("td a", has_text="MODEL_FAULT")).to_have_count(4)
    lost = page.locator("tr[data-eval='002-files/003-download']")
    expect(lost).to_contain_text("infrastructure")
    lost.get_by_role("link").click()
    expect(page.locator("#analysis")).to_have_count(0)
    page.goto(lab.url + of_run(4))
    expect(page.locator("body")).not_to_contain_text("Analysed in")


def test_the_same_pages_stand_under_the_experiment(page: Page, lab: Served) -> None:
    page.goto(f"{lab.url}/experiment/no_guidelines")
    page.get_by_role("link", name="openrouter:maker/model").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("openrouter:maker/model")
    page.goto(f"{lab.url}/experiment/no_guidelines/run/2/{SLUG.path}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(SLUG.path)


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
def test_what_is_not_there_is_said(lab: Served, path: str) -> None:
    said = lab.ask("GET", path, headers={"Accept": "text/html"})
    assert said.status_code == 404
    assert "Not found" in said.text


# --- how they show it ----------------------------------------------------------------------------


def hostile_pages(lab: Served) -> list[str]:
    known = quote(NAME, safe="")
    eval = quote(NAME, safe="")
    run = f"/model/{known}/run/3"
    return [
        "/suites",
        f"/model/{known}",
        f"/experiment/{known}",
        run,
        f"{run}/001-x/{eval}",
        f"/experiment/{known}/run/3/001-x/{eval}?replicate=1",
    ]


def test_hostile_text_is_text(page: Page, lab: Served) -> None:
    """`browsing` fails on whatever the console complains of, such as a script that is refused."""
    for path in hostile_pages(lab):
        said = page.goto(lab.url + path)
        assert said is not None and said.status == 200, path
        expect(page.locator("main")).to_contain_text(NAME)
        assert page.locator("main script, main img, main i").count() == 0
        assert "49" not in page.locator("main").inner_text()
    expect(page.locator("main pre").first).to_have_text(HOSTILE)
    page.goto(f"{lab.url}/suites")
    page.locator("table.runs").get_by_role("link", name="3", exact=True).click()
    page.locator("tr[data-eval] a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(NAME)


@pytest.mark.parametrize(
    "look", [{"viewport": PHONE}, {"color_scheme": "dark"}], ids=["phone", "dark"]
)
def test_pages_fit_their_window_and_can_be_read(
    browser: Browser, lab: Served, look: dict[str, object]
) -> None:
    with browsing(browser, lab, **look) as page:
        for path in ["/suites", of_run(), f"{of_run()}/{SLUG.path}", *hostile_pages(lab)]:
            page.goto(lab.url + path, wait_until="load")
            assert sideways(page) <= 0, path
            ink, ground = page.evaluate(
                "[getComputedStyle(document.querySelector('pre, td')).color,"
                " getComputedStyle(document.body).backgroundColor]"
            )
            assert ink != ground


def test_a_stranger_reads_scores_and_nothing_else(browser: Browser, lab: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{lab.url}/suites")
    assert [one.inner_text() for one in page.locator("header nav a").all()] == ["Suites"]
    page.locator("table.board").get_by_role("link", name=MODEL).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(MODEL)
    page.goto(f"{lab.url}/usage")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    context.close()


# --- analyses ------------------------------------------------------------------------------------


def test_only_a_report_on_this_very_run_counts(tmp_path: Path) -> None:
    key = "0123456789abcdef" * 4
    run = SuiteRun(7, key, SUITE, VERSION, MODEL, "default", {}, "0", 1, (SLUG.path,), BEGUN)
    assert failure_analyses(tmp_path, run) == {}
    path = analysed(run, tmp_path, "2026-03-02", "MODEL_FAULT")
    found = failure_analyses(tmp_path, run)
    assert set(found) == {result.path for result in RESULTS if isinstance(result.outcome, Failed)}
    assert found[SLUG.path].classification == "MODEL_FAULT"
    assert found[SLUG.path].source == path.relative_to(tmp_path).as_posix()
    assert failure_analyses(tmp_path, replace(run, key=key[::-1])) == {}
    assert failure_analyses(tmp_path, replace(run, version="another")) == {}
    path.write_text(OLD)
    assert failure_analyses(tmp_path, run) == {}
