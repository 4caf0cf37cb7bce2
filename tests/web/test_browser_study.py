"""A study's page: what it waits for, how it is steered, what happened, at any size."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote
from zlib import crc32

import pytest
import yaml

pytest.importorskip("playwright")

from playwright.sync_api import Browser, expect

from browser_pages import PHONE, Visit
from judge_gym.lab import Lab
from judge_gym.records.actors import machine_user
from lab_server import OURS, ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
FAILING = "sim:strict?fail=0.5"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """A lab that nobody works on until a test has somebody do it."""
    with serve_lab(tmp_path_factory.mktemp("steered"), run=False) as opened:
        window = opened.lab.evidence.list_windows()[0]["window"]
        opened.lab.evidence.freeze_pool("january", window_id=window)
        yield opened


def study(name: str, **changes: Any) -> str:
    whole: dict[str, Any] = {
        "study": name,
        "seed": crc32(name.encode()),  # else they would be one experiment
        "samples": 2,
        "evidence": {"january": {"pool": "january"}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "january"}],
        "judges": ["sim:balanced"],
        "design": OURS,
    }
    return yaml.safe_dump({**whole, **changes}, sort_keys=False)


def work(lab: Lab) -> None:
    """Have a worker do all there is."""
    env = {**os.environ, "JUDGE_GYM_DATABASE_URL": f"sqlite:///{lab.store.database.file}"}
    command = [sys.executable, "-m", "judge_gym", "worker", "--until-idle"]
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=120)


def statuses(lab: ServedLab, name: str) -> set[str]:
    return {row["status"] for row in lab.lab.list_experiments(study=name)}


def test_what_is_ordered_waits_is_paused_resumed_and_carried_out_before_ones_eyes(
    visit: Visit, lab: ServedLab
) -> None:
    lab.post("/api/runs", study=study("steered"))
    page = visit.open("/studies/steered/runs")
    expect(page.locator(".notice")).to_contain_text("No worker is running")
    page.click("[data-verb=pause]")
    expect(page.locator("#toast")).to_have_text("Paused.")
    expect(page.locator("#rows .pill")).to_have_text("paused")
    page.click("#log summary")
    expect(page.locator("#log tbody tr").first).to_contain_text(
        f"Paused by {machine_user()} in the browser"
    )
    assert statuses(lab, "steered") == {"paused"}
    expect(page.locator("#state h2")).to_have_text("Paused at 0 %")
    expect(page.locator("[data-verb=pause]")).to_have_count(0)
    page.click("[data-verb=resume]")
    expect(page.locator("#rows .pill")).to_have_text("pending")
    expect(page.locator(".notice")).to_contain_text("No worker is running")
    work(lab.lab)
    expect(page.locator("#rows .pill")).to_have_text("complete")
    expect(page.locator(".notice")).to_have_count(0)
    expect(page.locator("#state .outcomes")).to_have_attribute(
        "aria-label", re.compile(" 0 failed, 0 to do$")
    )
    expect(page.locator("#state h2")).to_have_text("Complete")
    expect(page.locator("[data-verb]")).to_have_count(0)


def test_a_study_is_cancelled_only_after_a_question(browser: Browser, lab: ServedLab) -> None:
    lab.post("/api/runs", study=study("given-up"))
    visit = Visit(browser, lab)
    page = visit.open("/studies/given-up/runs")
    page.click("[data-verb=cancel]")  # the question is declined
    [asked] = visit.faults
    assert (
        asked
        == "dialog: Cancel all unfinished runs of given-up? Answers that were paid for are kept."
    )
    assert "cancelled" not in statuses(lab, "given-up")
    visit.faults.clear()
    page.remove_listener("dialog", visit._dismiss)
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("[data-verb=cancel]")
    expect(page.locator("#rows .pill")).to_have_text("cancelled")
    assert statuses(lab, "given-up") == {"cancelled"}
    visit.close()


def test_budget_and_limits_are_changed_while_it_goes_on(visit: Visit, lab: ServedLab) -> None:
    lab.post("/api/runs", study=study("thrifty", budget={"usd": 5, "calls": 1000}))
    page = visit.open("/studies/thrifty/runs")
    page.click("text=Budget and limits")
    expect(page.locator("[name='budget.usd']")).to_have_value("5")
    expect(page.locator("#cost")).to_have_text("$0")
    page.fill("[name='budget.calls']", "")
    page.fill("[name='budget.minutes']", "30")
    page.fill("[name='limits.rpm']", "120")
    page.click("#budget button")
    expect(page.locator("#toast")).to_have_text("Changed.")
    budget = lab.lab.experiments.show_study("thrifty")["budget"]
    assert {name: budget.get(name) for name in ("usd", "calls", "minutes")} == {
        "usd": 5,
        "calls": None,
        "minutes": 30,
    }
    [event, *_] = lab.lab.store.events.of_study("thrifty", 1)
    budget = {"usd": 5.0, "minutes": 30.0, "run": {}}
    assert event[0].detail == {"limits": {"rpm": 120}, "budget": budget}
    page.fill("[name='budget.usd']", "-1")
    page.click("#budget button")
    expect(page.locator("#budget .error")).to_contain_text("budget.usd")
    page.fill("[name='budget.usd']", "much")
    page.click("#budget button")
    expect(page.locator("#budget .error")).to_have_text("usd must be a number, not much")


def test_failures_are_shown_linked_and_asked_again(visit: Visit, lab: ServedLab) -> None:
    lab.post("/api/runs", study=study("flawed", judges=["sim:balanced", FAILING], samples=4))
    work(lab.lab)
    [failed] = [row for row in lab.lab.list_experiments(study="flawed") if row["judge"] == FAILING]
    count = sum(failed["runs"][-1]["failed"].values())
    assert count > 0
    page = visit.open("/studies/flawed/runs")
    row = page.locator(f"tr[data-tag='{failed['tag']}']")
    expect(row.locator("[data-failed]")).to_have_text(str(count))
    expect(page.locator("#failed")).to_have_text(str(count))
    link = row.locator("[data-failed]").get_attribute("href") or ""
    assert unquote(link) == f"/experiments/{failed['tag']}?status=provider_error"
    assert "?fail" not in link.removesuffix("?status=provider_error")
    expect(page.locator("h1 ~ [data-status], .head [data-status]")).to_have_text("failed")
    expect(page.locator(".notice")).to_contain_text("calls failed: sim:strict?fail=0.5 did not")
    page.click("text=Ask the failed calls again")
    expect(page.locator("#state h2")).to_contain_text("Waiting at")


def test_experiments_come_in_pages_and_the_ticked_are_compared(
    visit: Visit, lab: ServedLab
) -> None:
    levels = [f"a judge of kind {number}" for number in range(30)]
    lab.post("/api/runs", study=study("many", vary={"prompt.slots.scorer.persona": levels}))
    page = visit.open("/studies/many/runs")
    expect(page.locator("#rows tbody tr")).to_have_count(25)
    runs = [row["runs"][-1] for row in lab.lab.list_experiments(study="many")]
    verdicts = sum(run["targets"]["score"] for run in runs)  # of all pages
    expect(page.locator("#state .key")).to_contain_text(f"{verdicts:,} to do")
    first = page.eval_on_selector_all("#rows tr[data-tag]", "all => all.map(o => o.dataset.tag)")
    for number in (0, 3):
        page.locator("#rows [name=tag]").nth(number).check()
    page.route("**/compare?**", lambda route: route.fulfill(body="compared"))
    page.click("text=Compare selected")
    page.wait_for_url("**/compare?**")
    assert unquote(page.url).endswith(f"/compare?tag={first[0]}&tag={first[3]}".replace(" ", "+"))
    page = visit.open("/studies/many/runs")
    page.get_by_role("link", name="More experiments").press("Enter")  # rows may still grow
    expect(page.locator("#rows tbody tr")).to_have_count(5)
    rest = page.eval_on_selector_all("#rows tr[data-tag]", "all => all.map(o => o.dataset.tag)")
    assert [*first, *rest] == sorted(row["tag"] for row in lab.lab.list_experiments(study="many"))
    page.click("#log summary")
    expect(page.locator("#log tbody tr")).to_have_count(30)


def test_the_page_fits_a_phone_and_leaves_buttons_to_who_may_write(
    browser: Browser, lab: ServedLab
) -> None:
    lab.post("/api/runs", study=study("read-only"))
    reading = Visit(browser, lab, lab.read)
    page = reading.open("/studies/read-only/runs")
    assert page.locator("[data-verb]").count() == 0
    page.set_viewport_size(PHONE)
    assert reading.fits()
    reading.close()
