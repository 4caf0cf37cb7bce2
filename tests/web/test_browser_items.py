"""Items and findings by hand: search while typing, a drawer by keyboard, sorted columns."""

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect
from test_browser_layout import run_replies

from browser_pages import open_path
from lab_server import ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
ITEMS = "/studies/replies/items"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("items"), run=False) as opened:
        run_replies(opened)
        yield opened


def test_items_are_searched_while_typing_and_the_address_keeps_the_search(
    lab: ServedLab, page: Page
) -> None:
    open_path(page, lab, ITEMS)
    titles = page.locator("#items tbody th")
    expect(titles).to_have_count(24)
    page.get_by_role("searchbox").press_sequentially("calendar", delay=20)
    expect(titles).to_have_text(["Calendar sync"])
    page.wait_for_url("**search=calendar**")
    page.reload()
    expect(titles).to_have_text(["Calendar sync"])
    page.get_by_role("link", name="Remove the filter").click()
    expect(titles).to_have_count(24)


def test_the_drawer_opens_walks_and_closes_by_keyboard(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, ITEMS)
    links = page.locator("#items a[data-item]")
    first, second = links.nth(0).inner_text(), links.nth(1).inner_text()
    links.nth(0).focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="Item")
    expect(drawer.get_by_role("heading", level=2)).to_have_text(first)
    expect(page.get_by_role("link", name="Close", exact=True)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(drawer.get_by_role("heading", level=2)).to_have_text(second)
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(links.nth(0)).to_be_focused()
    assert "item=" not in page.url


def test_all_columns_of_the_judge_table_are_shown_and_sorted_in_place(
    lab: ServedLab, page: Page
) -> None:
    open_path(page, lab, "/studies/replies")
    table = page.locator("table.judges")
    few = table.locator("thead th").count()
    page.get_by_role("link", name="All columns").click()
    expect(table.locator("thead th").nth(few)).to_be_attached()
    page.get_by_role("link", name="Consistency").click()
    sorted_by = table.locator("th[aria-sort]")
    expect(sorted_by).to_have_text("Consistency")
    place = sorted_by.evaluate("head => head.cellIndex")
    cells = table.locator(f"tbody td:nth-child({place + 1})").all_inner_texts()
    shares = [int(text.partition(" ")[0]) for text in cells]
    assert len(shares) > 1 and shares == sorted(shares, reverse=True)
    page.wait_for_url("**columns=all&sort=consistency")
    page.reload()
    expect(sorted_by).to_have_text("Consistency")


def test_a_number_of_the_confusion_table_is_reached_by_keyboard(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, "/studies/replies")
    cell = page.locator("table.confusion a").first
    count = int(cell.inner_text())
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#items tbody tr")).to_have_count(count)
