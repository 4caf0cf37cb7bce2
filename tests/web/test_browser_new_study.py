"""A study is put together in the browser, planned as it changes, started and watched to its end."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect

from browser_pages import PHONE, Visit
from judge_gym.axes import Design
from judge_gym.studies import read_study
from lab_server import ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """A lab with a frozen pool, whose server carries runs out."""
    with serve_lab(tmp_path_factory.mktemp("planned"), run=False, work=True) as opened:
        window = opened.lab.evidence.list_windows()[0]["window"]
        opened.lab.evidence.freeze_pool("january", window_id=window)
        yield opened


def text_of(page: Page) -> str:
    return page.locator("#yaml").input_value()


def choose(page: Page) -> None:
    """What the smallest study needs."""
    page.fill("[name='task.concept']", "fascism")
    page.check("[name=judge][value='sim:balanced']")
    page.select_option("[name='task.type']", "ecc")
    page.select_option("[name=protocol]", "contested-concepts")
    page.fill("[name=assistant]", "sim:editor")


def test_every_knob_of_the_design_is_in_the_form_with_its_levels_and_question(visit: Visit) -> None:
    page = visit.open("/new")
    shown = page.eval_on_selector_all(".knob", "all => all.map(one => one.dataset.path)")
    knobs = {path: knob for path, knob in Design.knobs().items() if path != "judge.model"}
    assert sorted(shown) == sorted(knobs)
    for path, knob in knobs.items():
        place = page.locator(f".knob[data-path='{path}']")
        assert knob.question in (place.text_content() or "")
        base = place.locator(f"[name='base:{path}']").input_value()
        assert base == ("" if knob.default is None else str(knob.default).lower()) or (
            base == str(knob.default)
        )
        if not knob.open:
            options = place.locator("option").all_text_contents()
            assert options == [str(level).lower() for level in knob.levels]


def test_what_is_ticked_is_planned_at_once(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    expect(page.locator("#experiments")).to_have_text("1")
    # Three texts: as many views, one rubric and its critique, and five verdicts and probes each.
    expect(page.locator("#calls")).to_have_text(str(3 + 2 + 3 * 5 * 2))
    page.check("[name='vary:verdict.method']")
    expect(page.locator("#experiments")).to_have_text("2")
    page.check("[name=judge][value='sim:strict']")
    expect(page.locator("#experiments")).to_have_text("4")
    expect(page.locator("#usd")).to_have_text("$0.00")
    page.uncheck("[name='vary:verdict.method']")
    expect(page.locator("#experiments")).to_have_text("2")
    assert page.locator("#start").is_enabled()


def test_the_file_says_what_the_form_says(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    page.fill("[name=study]", "by-form")
    page.fill("[name=samples]", "3")
    page.fill("[name='task.concept']", 'a "quoted": concept, # or not')
    page.fill("[name='task.dose']", "1.5")
    page.click("#more")
    page.locator("[name='task.type']").nth(1).select_option("control")
    page.locator("[name='task.concept']").nth(1).fill("yes")
    page.locator("[name='task.value']").nth(1).fill("0.85")
    page.locator("[name='task.source']").nth(1).fill("an index")
    page.select_option("[name=sweep]", "sample")
    page.fill("[name=points]", "4")
    page.select_option("[name=swap]", "all")
    page.uncheck("[name=probe]")
    page.fill("[name='budget.usd']", "2.5")
    page.select_option("[name='base:verdict.abstain']", "false")
    page.check("[name='vary:rubric.scale']")
    page.fill("[name='level:rubric.scale']", "4\n5\n7")
    slots = "prompt.slots.scorer.persona"
    page.locator("summary", has_text="prompt.slots.scorer").click()
    page.check(f"[name='vary:{slots}']")
    page.fill(f"[name='level:{slots}']", "a nurse\n5\ntrue")
    study = read_study(text_of(page), "")
    assert (study.study, study.samples, study.seed) == ("by-form", 3, 0)
    first, second = study.tasks
    assert (first.concept, first.dose) == ('a "quoted": concept, # or not', 1.5)
    assert (second.type, second.concept) == ("control", "yes")
    assert second.truth is not None and second.truth.value == 0.85
    assert yaml.safe_load(text_of(page))["sweep"] == {"sample": 4}
    assert (study.swap, study.probe, study.budget.usd) == ("all", False, 2.5)
    assert (study.protocol, study.assistant) == ("contested-concepts", "sim:editor")
    assert study.design == {"verdict.abstain": False}, "what the protocol says is not repeated"
    assert page.locator("[name='base:evidence.view']").input_value() == "neutralized"
    assert study.vary == {"rubric.scale": [4, 5, 7], slots: ["a nurse", "5", "true"]}


def test_without_a_protocol_a_study_needs_a_concept_and_a_judge(visit: Visit) -> None:
    page = visit.open("/new")
    page.fill("[name='task.concept']", "politeness")
    page.check("[name=judge][value='sim:balanced']")
    # One rubric without a critique, and five verdicts and probes of three raw texts.
    expect(page.locator("#calls")).to_have_text(str(1 + 3 * 5 * 2))
    assert not {"protocol", "assistant", "design"} & {*yaml.safe_load(text_of(page))}
    page.select_option("[name=protocol]", "contested-concepts")
    expect(page.locator("[name='base:evidence.view']")).to_have_value("neutralized")
    expect(page.locator("#refused")).to_contain_text("type of each task")
    page.select_option("[name=protocol]", "")
    expect(page.locator("[name='base:evidence.view']")).to_have_value("raw")


def test_an_error_stands_beside_what_it_concerns(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    page.fill("[name='base:rubric.scale']", "99")
    fault = page.locator(".knob[data-path='rubric.scale'] .error")
    expect(fault).to_contain_text("rubric.scale cannot be 99; it takes an integer from 2 to 26")
    expect(page.locator("#start")).to_be_disabled()
    page.fill("[name='base:rubric.scale']", "5")
    expect(page.locator("#experiments")).to_have_text("1")
    expect(fault).to_have_text("")
    page.fill("[name='task.concept']", "")
    expect(page.locator("[data-part=tasks] > .error")).to_contain_text("concept is not given")
    page.fill("[name='task.concept']", "fascism")
    page.fill("[name='base:evidence.editor']", "sim:balanced")
    beside = page.locator(".knob[data-path='evidence.editor'] .error")
    expect(beside).to_contain_text("is a judge of this study")


def test_the_address_brings_the_form_back(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    page.check("[name='vary:verdict.method']")
    page.uncheck("[name=probe]")
    page.click("#more")
    page.locator("[name='task.concept']").nth(1).fill("backsliding")
    said = text_of(page)
    page.reload()
    assert text_of(page) == said
    expect(page.locator("[name='level:verdict.method']").first).to_be_visible()


def test_the_text_can_be_changed_by_hand_and_saved(visit: Visit, lab: ServedLab) -> None:
    page = visit.open("/new")
    choose(page)
    expect(page.locator("#experiments")).to_have_text("1")
    by_hand = text_of(page) + "vary: {verdict.method: [single, subset]}\n"
    page.fill("#yaml", by_hand)
    expect(page.locator("#experiments")).to_have_text("2")
    expect(page.locator("[name=study]")).to_be_disabled()
    with page.expect_download() as told:
        page.click("#save")
    assert told.value.suggested_filename == "new-study.yaml"
    assert Path(told.value.path()).read_text() == by_hand
    page.fill("#yaml", "study: by-hand\njudges: [")
    expect(page.locator("#refused")).to_contain_text("line 2: invalid YAML")
    page.reload()
    assert text_of(page) == "study: by-hand\njudges: ["
    expect(page.locator("#refused")).to_contain_text("line 2: invalid YAML")
    page.click("#back")
    assert text_of(page).startswith("study: new-study\n")


def test_a_study_is_started_from_the_form_and_watched_to_its_end(
    visit: Visit, lab: ServedLab
) -> None:
    page = visit.open("/new")
    choose(page)
    page.fill("[name=study]", "watched")
    page.check("[name='vary:verdict.method']")
    expect(page.locator("#start")).to_have_text("Start: 65 calls")
    page.click("#start")
    page.wait_for_url("**/studies/watched/runs")
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(2)
    expect(page.locator("#statuses")).to_have_text("2 complete", timeout=90_000)
    expect(page.locator("#live")).to_contain_text("Idle.")
    for row in rows.all():
        expect(row.locator(".pill")).to_have_text("complete")
        expect(row.locator(".stages")).to_contain_text("score 15/15")
    samples = lab.lab.experiments.samples("watched")
    assert len(samples) == 30
    scored = int((samples["status"] == "scored").sum())
    done = page.locator("#done").text_content()
    assert (
        int(str(done))
        == 2 * (3 + 1 + 15) + scored
        == int(str(page.locator("#targets").text_content()))
    )
    calls = sum(row["calls"] for row in lab.lab.reports.usage("watched"))
    expect(page.locator("#calls")).to_have_text(str(calls))
    log = page.locator("#log tbody tr")
    expect(log.first).to_contain_text("ended")
    expect(log.last).to_contain_text("started")
    page.reload()  # what the server writes is what the script wrote
    expect(page.locator("#done")).to_have_text(str(done))
    expect(page.locator("#log tbody tr").first).to_contain_text("ended")

    again = visit.open("/new?from=watched")
    assert "study: watched" in text_of(again)
    expect(again.locator("#calls")).to_have_text("0")
    expect(again.locator("#known")).to_contain_text(re.compile("answers are already in the ledger"))


def test_the_form_is_used_by_keyboard_and_on_a_phone(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    page.focus("[name='vary:verdict.output']")
    page.keyboard.press("Space")
    expect(page.locator("#experiments")).to_have_text("2")
    page.set_viewport_size(PHONE)
    assert visit.fits()


def test_who_may_only_read_is_told_so(browser: Browser, lab: ServedLab) -> None:
    reading = Visit(browser, lab, lab.read)
    page = reading.open("/new")
    expect(page.locator("aside")).to_contain_text("Your token may only read")
    assert page.locator("#start").count() == 0
    reading.close()
