"""Takes the pictures of the lab for README and docs, on the study of README's first commands.

Run `.venv/bin/python scripts/pictures.py`; it needs the extra `test` and the program chromium.
"""

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from judge_gym.cli.own_study import own_study
from judge_gym.lab import Lab
from judge_gym.recorded import read_file
from judge_gym.web import serve

IMAGES = Path(__file__).parent.parent / "docs" / "images"
STUDY = "replies"
TAG = f"{STUDY}/quality/replies"
PAGES = {
    "findings": f"/studies/{STUDY}",
    "home": "/",
    "items": f"/studies/{STUDY}/items",
    "compare": f"/compare?tag={quote(TAG + '/sim:balanced')}&tag={quote(TAG + '/sim:strict')}",
}
"""The page of each picture; that of a sample is found in the lab."""
WIDTH, HEIGHT = 1180, 760


def main() -> None:
    """Runs the example in a lab of its own and takes a picture of each page."""
    with TemporaryDirectory() as name, as_file(files("judge_gym.demo")) as demo:
        folder = Path(name)
        for file in ("replies.csv", "helpfulness.json"):
            shutil.copy(demo / file, folder / file)
        reading = read_file(folder / "replies.csv", judged=False)
        study = own_study(reading, "quality", Path("helpfulness.json"), []).write(folder)
        with Lab.open(f"sqlite:///{folder / 'lab.db'}") as lab:
            lab.runs.run(study)
            print(lab.reports.judges(STUDY)["sentence"])
            samples = lab.experiments.list_samples(f"{TAG}/sim:balanced")
            pages = {**PAGES, "sample": f"/samples/{samples[0]['sample']}"}
            with serve(lab, "127.0.0.1", 0, work=False) as address, sync_playwright() as play:
                browser = play.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
                page.goto(f"{address.url}/?token={address.token}")
                for picture, path in pages.items():
                    page.goto(address.url + path, wait_until="networkidle")
                    page.screenshot(path=IMAGES / f"{picture}.png")
                browser.close()


if __name__ == "__main__":
    main()
