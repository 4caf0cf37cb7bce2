"""The report on a study is made in the background, shown without scripts, kept, and taken away."""

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytest.importorskip("playwright")

from playwright.sync_api import Browser, expect

from browser_pages import PHONE, Visit
from lab_server import OURS, ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
STUDIES = {"told": ["sim:balanced", "sim:strict"], "silent": ["sim:cautious"]}
MADE = 180_000
"""Milliseconds that a report may take on a busy machine."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """A lab with a study of two judges that was run, and one that was not."""
    folder = tmp_path_factory.mktemp("reported")
    with serve_lab(folder, run=False) as opened:
        for name, judges in STUDIES.items():
            study = {
                "study": name,
                "samples": 2,
                "evidence": {"news": {"files": "news.jsonl", "window": {"country": "X"}}},
                "protocol": "contested-concepts",
                "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "news"}],
                "judges": judges,
                "design": OURS,
            }
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(study))
        opened.lab.runs.run(str(folder / "told.yaml"))
        opened.lab.runs.start(str(folder / "silent.yaml"))
        yield opened


def test_a_report_is_waited_for_shown_kept_and_downloaded(
    browser: Browser, lab: ServedLab, tmp_path: Path
) -> None:
    visit = Visit(browser, lab)
    page = visit.open("/report/told")
    expect(page.locator("main")).to_contain_text("being built")
    expect(page.locator("[data-step]")).to_contain_text("…")
    expect(page.locator("iframe")).to_be_visible(timeout=MADE)
    inside = page.frame_locator("iframe")
    expect(inside.locator("h1")).to_have_text("told")
    expect(inside.locator("svg").first).to_be_visible()
    expect(inside.locator(".banner").first).to_contain_text("All judges were simulated")
    assert inside.locator("body").evaluate("body => getComputedStyle(body).margin") == "0px"
    files = {}
    for name in ("report.md", "report.zip", "report.html?download=true"):
        with page.expect_download() as told:
            page.click(f"a[href='/report/told/{name}']")
        files[told.value.suggested_filename] = Path(told.value.path())
    assert set(files) == {"told-report.md", "told-report.zip", "told-report.html"}
    with zipfile.ZipFile(files["told-report.zip"]) as archive:
        names = archive.namelist()
        assert archive.read("report.html") == files["told-report.html"].read_bytes()
        assert archive.read("report.md") == files["told-report.md"].read_bytes()
    kinds = {Path(name).suffix for name in names}
    assert kinds == {".html", ".md", ".csv", ".svg", ".png"}
    page.set_viewport_size(PHONE)
    assert visit.fits()

    built = page.get_by_text("UTC.").text_content()
    page.reload()
    assert page.get_by_text("UTC.").text_content() == built, "it was kept"
    lab.lab.runs.start("told", samples=3)  # which adds an event, and so the data are others
    page.reload()
    expect(page.locator("main")).to_contain_text("The data have changed since")
    visit.close()


def test_no_script_runs_in_a_report_and_nobody_else_frames_it(lab: ServedLab) -> None:
    patience = 300
    while lab.ask("GET", "/report/told/report.html").status_code == 409 and patience:
        patience -= 1
        time.sleep(0.5)
    said = lab.ask("GET", "/report/told/report.html")
    policy = said.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src" not in policy
    assert "frame-ancestors 'self'" in policy and "sandbox allow-same-origin" in policy
    assert said.headers["x-frame-options"] == "SAMEORIGIN"
    shell = lab.ask("GET", "/report/told").headers["content-security-policy"]
    assert "script-src 'self'" in shell and "frame-ancestors 'none'" in shell


def test_a_study_without_samples_says_so(browser: Browser, lab: ServedLab) -> None:
    visit = Visit(browser, lab)
    page = visit.open("/report/silent")
    expect(page.locator(".empty")).to_contain_text("has no samples yet", timeout=MADE)
    assert lab.ask("GET", "/report/silent/report.md").status_code == 409
    visit.close()
