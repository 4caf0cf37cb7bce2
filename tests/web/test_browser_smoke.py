"""One walk through the dashboard in a real browser; the other browser tests are slow."""

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect

from browser_pages import PHONE, open_path, overflow_width
from lab_server import ServedLab, serve_lab

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("smoke")) as opened:
        yield opened


def test_a_visitor_goes_from_home_to_a_result_a_sample_and_a_comparison(
    lab: ServedLab, page: Page
) -> None:
    open_path(page, lab, "/")
    expect(page.locator("[data-cost-all]")).to_have_text("$0")  # loaded by the script
    expect(page.locator("[data-failed-all]")).to_have_text("0")  # by live events
    page.get_by_role("link", name="experiments", exact=True).click()
    page.get_by_role("link", name="pilot", exact=True).first.click()
    expect(page.get_by_role("region", name="Stages")).to_be_visible()  # loaded after the page
    expect(page.locator("figure img").first).to_have_js_property("complete", True)
    page.locator("#sample-table a").first.click()
    expect(page.locator("#answer mark")).to_have_count(1)
    open_path(page, lab, "/experiments")
    for tag in ("pilot", "pilot/strict"):
        page.get_by_label(f"Compare {tag}", exact=True).check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("not told apart")
    page.set_viewport_size(PHONE)
    assert overflow_width(page) <= 0
