"""A sample's page: what the judge saw and wrote, and how its verdict was read."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser_pages import experiment_path
from lab_server import ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("sample")) as opened:
        yield opened


def test_next_and_previous_stay_within_what_was_asked(lab: ServedLab, page: Page) -> None:
    rows = lab.lab.list_experiment_samples("pilot")
    item = rows[0]["evidence"]
    meant = {row["sample"] for row in rows if row["evidence"] == item}
    page.goto(f"{lab.url}{experiment_path('pilot')}?evidence={item}")
    ids = [int(one.inner_text()) for one in page.locator("#sample-table td:first-child").all()]
    assert set(ids) == meant
    page.locator("#sample-table td:first-child a").first.click()
    walked = []
    for number, id in enumerate(ids):
        page.wait_for_url(f"**/samples/{id}?*evidence={item}*")
        walked.append(id)
        expect(page.locator('a[rel="next"]')).to_have_count(int(number < len(ids) - 1))
        if number < len(ids) - 1:
            page.locator('a[rel="next"]').click()
    assert walked == ids
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(f"**/samples/{ids[-2]}?*")
    page.get_by_role("link", name="All matching samples").click()
    page.wait_for_url(f"**{experiment_path('pilot')}?evidence={item}#samples")
