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
    """The study file, once the server has answered to the last change."""
    expect(page.locator("#form[data-pending]")).to_have_count(0)
    return page.locator("#yaml").input_value()


TABLE = """text,title,truth,ann,bo,note
"Thank you, that was ""quick"".",thanks,polite,polite,polite,"a, b"
"No idea,
read the manual.",manual,rude,rude,polite,
"""


def go(page: Page, step: str) -> None:
    """Opens a step of the form."""
    page.locator(f".steps a[data-step={step}]").click()
    expect(page.locator(f".step[data-step={step}]")).to_be_visible()


def choose(page: Page) -> None:
    """Fills in what the smallest study needs: a pool, a question and a judge."""
    page.check("[name=source][value=pool]")
    go(page, "question")
    page.fill("[name='task.concept']", "politeness")
    go(page, "judges")
    page.check("[name=judge][value='sim:balanced']")


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


def test_an_untouched_form_shows_what_is_needed_and_no_error(visit: Visit) -> None:
    page = visit.open("/new")
    expect(page.locator("#reason")).to_have_text("Still needed: texts, a question, a judge.")
    expect(page.locator("#texts")).to_be_focused()
    expect(page.locator("#start")).to_be_disabled()
    assert [error for error in page.locator(".error").all_inner_texts() if error] == []
    page.fill("#texts", "one text\n\n  another \n")
    expect(page.locator("#reason")).to_have_text("Still needed: a question, a judge.")
    expect(page.locator(".steps a[data-step=evidence]")).to_have_text("Items (complete)")


def test_what_is_chosen_is_planned_at_once(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    # One rubric and three verdicts on each of three texts.
    expect(page.locator("#calls")).to_have_text(str(1 + 3 * 3))
    expect(page.locator("#experiments")).to_have_text("1")
    go(page, "vary")
    page.locator("summary", has_text="verdict").click()
    page.check("[name='vary:verdict.method']")
    expect(page.locator("#experiments")).to_have_text("2")
    expect(page.locator("#usd")).to_have_text("$0")
    page.check("[name=probe]")
    expect(page.locator("#calls")).to_have_text(str(1 + 2 * (3 * 3 * 2)))
    assert page.locator("#start").is_enabled()


def test_a_pasted_table_becomes_items_with_labels_and_answers(visit: Visit) -> None:
    page = visit.open("/new")
    page.fill("#texts", TABLE)
    expect(page.locator("#texts-read")).to_have_text(
        "Read: 2 texts, 2 with a known answer, labels of ann, bo."
    )
    roles = {name: page.locator(f"[data-column='{name}']") for name in ("text", "ann", "note")}
    for name, role in {"text": "text", "ann": "person", "note": ""}.items():
        expect(roles[name]).to_have_value(role)
    expect(page.locator("#columns tbody tr").first).to_contain_text('Thank you, that was "quick".')
    expect(page.locator("#reason")).to_contain_text("a look at the columns of the table")
    page.check("[name=accept]")
    expect(page.locator("#reason")).to_have_text("Still needed: a question, a judge.")
    go(page, "question")
    expect(page.locator("[name='task.stages']")).to_have_value("polite\nrude")
    page.fill("[name='task.stages']", "rude\npolite: thanks")
    page.fill("[name='task.concept']", "politeness")
    go(page, "judges")
    page.check("[name=judge][value='sim:balanced']")
    expect(page.locator("#calls")).to_have_text(str(2 * 3))
    study = read_study(text_of(page), "")
    spec = study.evidence["texts"]
    assert spec.labels == ["ann", "bo"]
    assert spec.items == [
        {
            "text": 'Thank you, that was "quick".',
            "title": "thanks",
            "truth": "polite",
            "ann": "polite",
            "bo": "polite",
        },
        {
            "text": "No idea,\nread the manual.",
            "title": "manual",
            "truth": "rude",
            "ann": "rude",
            "bo": "polite",
        },
    ]
    assert study.tasks[0].rubric == ["rude", "polite: thanks"]
    expect(page.locator("[name=study]")).to_have_value("politeness")
    go(page, "evidence")
    page.fill("#texts", "text\ttitle\nonly\ta\tb\n")
    expect(page.locator("#texts-read")).to_contain_text("line 2 (3) has more cells")


def test_people_s_labels_are_never_shown_to_judges_whatever_the_columns_are_called(
    visit: Visit,
) -> None:
    page = visit.open("/new")
    page.fill(
        "#texts",
        "ticket,reply,mia,opened\n"
        'T-1,"Thank you for writing, we will help.",good,2026-01-02\n'
        'T-2,"No idea, read the manual yourself.",bad,2026-01-03\n',
    )
    expect(page.locator("#texts-read")).to_have_text("Read: 2 texts, labels of mia.")
    page.locator("[data-column=ticket]").select_option("")
    page.locator("[data-column=mia]").select_option("person")
    expect(page.locator("#reason")).to_have_text("Still needed: a question, a judge.")
    go(page, "question")
    page.fill("[name='task.concept']", "tone")
    spec = read_study(text_of(page).replace("judges: []", "judges: [sim:balanced]"), "").evidence[
        "texts"
    ]
    assert spec.labels == ["mia"]
    assert spec.items is not None
    assert [item["text"] for item in spec.items] == [  # type: ignore[index]  # a map
        "Thank you for writing, we will help.",
        "No idea, read the manual yourself.",
    ]
    page.reload()
    expect(page.locator("[data-column=ticket]")).to_have_value("")


def test_texts_that_may_be_a_table_are_asked_about(visit: Visit) -> None:
    page = visit.open("/new")
    page.fill("#texts", "Thank you, that was quick.\nNo idea, read the manual.\n")
    expect(page.locator("#texts-read")).to_have_text("Read: 2 texts.")
    page.fill("#texts", "Yes please,thank you\nNo thanks,bye then\n")
    expect(page.locator("#layout")).to_be_visible()
    page.select_option("[name=layout]", "lines")
    expect(page.locator("#texts-read")).to_have_text("Read: 2 texts.")
    page.fill("#texts", "id,text,label\n1,Thank you for that.,good\n2,No idea at all.,bad\n")
    expect(page.locator("#texts-read")).to_have_text("Read: 2 texts, labels of label.")


def test_pasted_pairs_are_judged_in_both_orders(visit: Visit) -> None:
    page = visit.open("/new")
    page.fill("#texts", "text;response_a;response_b;truth\n2+2?;four;five;first\n")
    expect(page.locator("#texts-read")).to_have_text("Read: 1 pair, 1 with a known answer.")
    go(page, "question")
    page.fill("[name='task.concept']", "the better answer")
    go(page, "judges")
    page.check("[name=judge][value='sim:balanced']")
    expect(page.locator("#calls")).to_have_text(str(2 * 3))
    items = read_study(text_of(page), "").evidence["texts"].items
    pair = {"title": "line 2", "text": "2+2?", "responses": ["four", "five"]}
    assert items == [{**pair, "truth": "first"}]


def test_the_file_says_what_the_form_says(visit: Visit) -> None:
    page = visit.open("/new")
    page.check("[name=preset][value=contested]")
    choose(page)
    page.fill("[name=samples]", "3")
    expect(page.locator("[name=assistant]")).to_have_value("sim:assistant")
    page.fill("[name=assistant]", "sim:editor")
    go(page, "question")
    page.fill("[name='task.concept']", 'a "quoted": concept, # or not')
    page.locator("summary", has_text="More about this question").click()
    page.fill("[name='task.dose']", "1.5")
    page.click("#more")
    second = page.locator(".task").nth(1)
    second.locator("summary").click()
    second.locator("[name='task.type']").select_option("control")
    second.locator("[name='task.concept']").fill("yes")
    second.locator("[name='task.value']").fill("0.85")
    second.locator("[name='task.source']").fill("an index")
    go(page, "vary")
    page.select_option("[name=sweep]", "sample")
    page.fill("[name=points]", "4")
    page.uncheck("[name=probe]")
    for group in ("verdict", "rubric", "prompt.slots.scorer"):
        page.locator("summary", has=page.locator(f"b:text-is('{group}')")).click()
    page.select_option("[name='base:verdict.abstain']", "false")
    page.check("[name='vary:rubric.scale']")
    page.fill("[name='level:rubric.scale']", "4\n5\n7")
    slots = "prompt.slots.scorer.persona"
    page.check(f"[name='vary:{slots}']")
    page.fill(f"[name='level:{slots}']", "a nurse\n5\ntrue")
    go(page, "review")
    page.fill("[name=study]", "by-form")
    page.fill("[name='budget.usd']", "2.5")
    study = read_study(text_of(page), "")
    assert (study.study, study.samples, study.seed) == ("by-form", 3, 0)
    assert (study.tasks[0].concept, study.tasks[0].dose) == ('a "quoted": concept, # or not', 1.5)
    assert (study.tasks[1].type, study.tasks[1].concept) == ("control", "yes")
    assert study.tasks[1].truth is not None and study.tasks[1].truth.value == 0.85
    assert yaml.safe_load(text_of(page))["sweep"] == {"sample": 4}
    assert (study.swap, study.probe, study.budget.usd) == ("all", False, 2.5)
    assert (study.protocol, study.assistant) == ("contested-concepts", "sim:editor")
    assert study.design == {"verdict.abstain": False}, "what the protocol says is not repeated"
    assert page.locator("[name='base:evidence.view']").input_value() == "neutralized"
    assert study.vary == {"rubric.scale": [4, 5, 7], slots: ["a nurse", "5", "true"]}


def test_a_missing_key_disables_start_with_the_reason(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    expect(page.locator("#start")).to_be_enabled()
    openai = page.locator("[data-provider=openai]")
    openai.locator("summary").click()
    openai.locator("[name=judge]").first.check()
    expect(page.locator("#reason")).to_contain_text("OPENAI_API_KEY is not set")
    expect(page.locator("#calls")).not_to_have_text("–")
    expect(page.locator("#start")).to_be_disabled()
    page.uncheck("[name=judge][value='sim:balanced']")
    go(page, "evidence")
    page.check("[name=preset][value=contested]")
    expect(page.locator("[name=assistant]")).to_have_value(re.compile("^openai:"))


def test_an_error_stands_beside_what_it_concerns(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    go(page, "vary")
    page.locator("summary", has=page.locator("b:text-is('rubric')")).click()
    page.fill("[name='base:rubric.scale']", "99")
    error = page.locator(".step[data-step=vary] .error")
    expect(error).to_contain_text("rubric.scale cannot be 99; it takes an integer from 2 to 26")
    expect(page.locator("#refused")).to_contain_text("(in step vary)")
    expect(page.locator("#start")).to_be_disabled()
    page.fill("[name='base:rubric.scale']", "5")
    expect(page.locator("#experiments")).to_have_text("1")
    expect(error).to_have_text("")


def test_nothing_typed_is_lost_by_going_back_or_leaving(visit: Visit) -> None:
    page = visit.open("/new")
    page.fill("#texts", TABLE)
    page.locator("[data-column=bo]").select_option("")
    expect(page.locator("#texts-read")).to_contain_text("labels of ann.")
    go(page, "question")
    page.fill("[name='task.concept']", "politeness")
    page.click("#more")
    page.locator("[name='task.concept']").nth(1).fill("warmth")
    go(page, "judges")
    page.check("[name=judge][value='sim:balanced']")
    page.go_back()
    expect(page.locator(".step[data-step=question]")).to_be_visible()
    before = text_of(page)
    assert "warmth" in before and "labels: [ann]" in before
    page.goto(f"{visit.lab.url}/usage")
    page.go_back()
    expect(page.locator("#yaml")).to_have_value(before)
    page.click("#clear")
    expect(page.locator("#reason")).to_have_text("Still needed: texts, a question, a judge.")


def test_the_text_can_be_changed_by_hand_and_saved(visit: Visit, lab: ServedLab) -> None:
    page = visit.open("/new")
    choose(page)
    expect(page.locator("#experiments")).to_have_text("1")
    page.locator("#yaml-card summary").click()
    by_hand = text_of(page) + "vary: {verdict.method: [single, subset]}\n"
    page.fill("#yaml", by_hand)
    expect(page.locator("#experiments")).to_have_text("2")
    expect(page.locator("[name=study]")).to_be_disabled()
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "politeness.yaml"
    assert Path(download.value.path()).read_text() == by_hand
    page.fill("#yaml", "study: by-hand\njudges: [")
    expect(page.locator("#refused")).to_contain_text("line 2: invalid YAML")
    page.reload()
    assert text_of(page) == "study: by-hand\njudges: ["
    expect(page.locator("#refused")).to_contain_text("line 2: invalid YAML")
    page.click("#back")
    assert text_of(page).startswith("study: politeness\n")


def test_a_study_is_started_from_the_form_and_watched_to_its_end(
    visit: Visit, lab: ServedLab
) -> None:
    page = visit.open("/new?vary:verdict.method=true&probe=true&samples=5&study=watched")
    choose(page)
    expect(page.locator("#start")).to_have_text("Start: 61 calls, $0")
    page.click("#start")
    page.wait_for_url("**/studies/watched/runs")
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(2)
    expect(page.locator("#state h2")).to_have_text("Complete", timeout=90_000)
    for row in rows.all():
        expect(row.locator(".pill")).to_have_text("complete")
    samples = lab.lab.experiments.samples("watched")
    assert len(samples) == 30
    scored = int((samples["status"] == "scored").sum())
    bar = page.locator("#state .outcomes")
    expect(bar).to_have_attribute("aria-label", re.compile(f"^{scored} scored, .* 0 to do$"))
    calls = sum(row["calls"] for row in lab.lab.reports.usage("watched"))
    expect(page.locator("#calls")).to_have_text(str(calls))
    page.click("#log summary")
    expect(page.locator("#log tbody tr").first).to_contain_text("ended")
    expect(page.locator("#log tbody tr").last).to_contain_text("started")

    again = visit.open("/new?from=watched")
    assert "study: watched" in text_of(again)
    expect(again.locator("#calls")).to_have_text("0")
    expect(again.locator("#known")).to_contain_text(re.compile("answers are already in the ledger"))


def test_the_form_is_used_by_keyboard_and_on_a_phone(visit: Visit) -> None:
    page = visit.open("/new")
    choose(page)
    page.locator(".step[data-step=judges] a", has_text="Next").press("Enter")
    expect(page.locator("#vary-title")).to_be_focused()
    page.locator("summary", has=page.locator("b:text-is('verdict')")).press("Enter")
    page.focus("[name='vary:verdict.output']")
    page.keyboard.press("Space")
    expect(page.locator("#experiments")).to_have_text("2")
    page.set_viewport_size(PHONE)
    assert visit.fits()


def test_who_may_only_read_is_told_so(browser: Browser, lab: ServedLab) -> None:
    reading = Visit(browser, lab, lab.read)
    page = reading.open("/new")
    expect(page.locator("aside")).to_contain_text("Your token may only read")
    page.check("[name=source][value=pool]")
    expect(page.locator("#summary")).to_contain_text("january")
    assert page.locator("#start").count() == 0
    reading.close()
