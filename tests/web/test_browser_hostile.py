"""Hostile text in names, evidence and answers runs nothing in a real browser."""

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect

from browser_pages import Visit
from hostile import PATHS, hostile_lab
from lab_server import ServedLab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with hostile_lab(tmp_path_factory.mktemp("hostile")) as opened:
        yield opened


@pytest.mark.parametrize("path", PATHS)
def test_what_is_hostile_is_shown_as_text(browser: Browser, lab: ServedLab, path: str) -> None:
    visit = Visit(browser, lab)
    page = visit.open(path)
    if path.startswith("/report"):
        expect(page.locator("iframe")).to_be_visible(timeout=180_000)
        expect(page.frame_locator("iframe").locator("svg").first).to_be_visible()
    if path.endswith("/runs"):
        expect(page.locator("#live")).not_to_contain_text("need JavaScript")
        page.locator("#log > summary").click()
        expect(page.locator("#log tbody tr").first).to_contain_text("</textarea>")
    if path.startswith("/usage"):
        expect(page.locator("main table").first).to_be_visible()
        expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.locator("[data-load]:not([data-loaded])")).to_have_count(0)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    page.wait_for_timeout(300)  # for what would have run by now
    refuse_harm(page)
    if PATHS[path]:
        assert any("<b id=evil>" in read(frame) for frame in page.frames), "it is there to be read"
    assert page.url.startswith(lab.url)
    visit.close()


def read(frame: object) -> str:
    """What a reader sees, also in fields."""
    return str(
        frame.evaluate(  # type: ignore[attr-defined]
            "() => document.body.innerText + ' ' + [...document.querySelectorAll("
            "'input, textarea, option')].map(one => one.value + one.text).join(' ')"
        )
    )


def refuse_harm(page: Page) -> None:
    for frame in page.frames:
        assert frame.evaluate("() => window.ran === undefined && top.ran === undefined")
        assert frame.evaluate("() => document.querySelectorAll('#evil, base').length") == 0
        links = frame.eval_on_selector_all("[href]", "all => all.map(one => one.href.toString())")
        assert not [link for link in links if str(link).lower().startswith("javascript:")]
        scripts = frame.eval_on_selector_all("script", "all => all.map(one => one.src)")
        assert all("/static/" in script for script in scripts)
