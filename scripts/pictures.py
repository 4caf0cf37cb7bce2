"""Draws the pictures of README: pages of the lab, a terminal, and price against quality.

Run `.venv/bin/python scripts/pictures.py PATH`, where PATH is the folder of LLMBar's subsets, which
are not part of this project; without PATH, the picture of prices stays as it is. It needs the extra
`test` and the program chromium. Pages and terminal show README's first commands. What a reader sees
in both colour schemes is drawn in both, at twice its size. `pictures.json` says what the pictures
show, so that a test finds those that are older than README.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

import pandas as pd
from genai_prices import Usage, calc_price
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.text import Text

from judge_gym.analysis import figures
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.report import ReportInput
from judge_gym.analysis.report.judges import price_and_quality
from judge_gym.analysis.verdicts import Dataset
from judge_gym.cli import display
from judge_gym.cli.own_study import own_study
from judge_gym.lab import Lab
from judge_gym.recorded import as_samples, read_file
from judge_gym.recorded.importers import llmbar
from judge_gym.records import palette
from judge_gym.web import serve

IMAGES: Final = Path(__file__).parent.parent / "docs" / "images"
STUDY: Final = "replies"
PAGES: Final = {"findings": f"/studies/{STUDY}", "items": f"/studies/{STUDY}/items"}
"""The page of each picture."""
SIZE: Final = (1280, 820)
SCALE: Final = 2
SCHEMES: Final = {"light": palette.LIGHT, "dark": palette.DARK}

PRICED: Final = {
    "GPT-4": "gpt-4",
    "ChatGPT": "gpt-3.5-turbo",
    "ChatGPT-0301": "gpt-3.5-turbo-0301",
}
"""LLMBar's judges that have a list price, with the model that is sold."""
STRATEGIES: Final = {
    "Vanilla_NoRules": "plain prompt",
    "Vanilla": "rules",
    "CoT": "reasoning",
}
"""Strategies of one call, whose price follows from the recorded texts, in words."""
CHARACTERS_PER_TOKEN: Final = 4
PRICE_TITLE: Final = "Recorded verdicts of real models on LLMBar: what agreement with people costs"
PRICE_NOTE: Final = (
    "419 pairs, each in both orders. Prices: OpenAI's list prices of the recorded texts, at four "
    "characters a token, without the instructions of the prompt."
)

SECONDS: Final = 8.0
"""How long the terminal plays before it begins again."""
TYPED, RAN = 1.2, 4.6
"""When the command is typed, and when it has ended."""
COLUMNS: Final = 104
CHARACTER, LINE, PADDING, BAR = 8.4, 19, 18, 34
"""The width of a character, the height of a line, and the room around them, in pixels."""


def main() -> None:
    """Draws all pictures, and writes what they show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?", help="the folder of LLMBar's subsets")
    llmbar_folder = parser.parse_args().path
    content: dict[str, str] = json.loads((IMAGES / "pictures.json").read_text(encoding="utf-8"))
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        if llmbar_folder is not None:
            content["price"] = draw_prices(browser, llmbar_folder)
        content["sentence"] = draw_study(browser)
        browser.close()
    (IMAGES / "pictures.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


# --- pages and terminal --------------------------------------------------------------------------


def draw_study(browser: Browser) -> str:
    """Runs README's example in a lab of its own, draws its pages and its terminal.

    Returns the sentence of its findings.
    """
    with TemporaryDirectory() as name, as_file(files("judge_gym.demo")) as demo:
        folder = Path(name)
        for file in ("replies.csv", "helpfulness.json"):
            shutil.copy(demo / file, folder / file)
        reading = read_file(folder / "replies.csv", judged=False)
        study = own_study(reading, "quality", Path("helpfulness.json"), []).write(folder)
        url = f"sqlite:///{folder / 'lab.db'}"
        with Lab.open(url) as lab:
            progress = run_and_watch(lab, study)
            sentence = lab.reports.judges(STUDY)["sentence"]
            with serve(lab, "127.0.0.1", 0, work=False) as address:
                for scheme in SCHEMES:
                    draw_pages(browser, address, scheme)
        shown = printed("--db", url, "judges", STUDY)
    frames = [*typed_frames(), *progress_frames(progress), (RAN, [*command(), *shown])]
    (IMAGES / "terminal.svg").write_text(terminal_svg(frames), encoding="utf-8")
    return sentence


def draw_pages(browser: Browser, address: Any, scheme: Any) -> None:
    """Takes a picture of each page in a colour scheme, signed in to the lab."""
    width, height = SIZE
    page = browser.new_page(
        viewport={"width": width, "height": height}, device_scale_factor=SCALE, color_scheme=scheme
    )
    page.goto(f"{address.url}/?token={quote(address.token)}")
    for picture, path in PAGES.items():
        page.goto(address.url + path, wait_until="networkidle")
        page.screenshot(path=IMAGES / f"{picture}-{scheme}.png", animations="disabled")
    page.close()


Frame = tuple[float, Sequence[Text]]
"""When a frame of the terminal begins, and its lines."""


def run_and_watch(lab: Lab, study: Path) -> list[list[Text]]:
    """Runs a study; returns what a terminal showed of its progress, in order."""
    shown: list[list[Text]] = []
    ended = threading.Event()
    watched: list[Any] = []

    def look() -> None:
        while not ended.wait(0.05):
            runs = list(watched[0].values() if hasattr(watched[0], "values") else watched[0])
            if bar := display._bar(*display._steps(runs)):
                lines = display._progress_lines(runs, time.monotonic())
                shown.append([*Text.assemble(*bar, lines).split("\n")])

    thread = threading.Thread(target=look)

    def watch(runs: Any) -> None:
        watched[:] = [runs]
        if not thread.is_alive():
            thread.start()

    lab.runs.run(study, watch=watch)
    ended.set()
    thread.join()
    return shown


def command(letters: int | None = None) -> list[Text]:
    """Returns the lines of the prompt, with the first letters of the command."""
    typed = "judge-gym run replies.yaml"[:letters]
    return [Text.assemble(("$ ", "green"), (typed, "bold"))]


def typed_frames() -> Iterator[Frame]:
    """Yields the frames in which the command is typed."""
    steps = range(0, 27, 3)
    for number, letters in enumerate(steps):
        yield TYPED * number / len(steps), command(letters)


def progress_frames(shown: Sequence[list[Text]]) -> Iterator[Frame]:
    """Yields the frames in which the study runs, at most a dozen."""
    chosen = shown[:: max(1, len(shown) // 12)]
    for number, lines in enumerate(chosen):
        yield TYPED + (RAN - TYPED) * number / len(chosen), [*command(), *lines]


def printed(*words: str) -> list[Text]:
    """Returns what a command of judge-gym prints on a terminal, down to the end of its table."""
    program = shutil.which("judge-gym", path=str(Path(sys.executable).parent))
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    environment = {**os.environ, **terminal}
    done = subprocess.run(
        [str(program), *words], env=environment, capture_output=True, text=True, check=True
    )
    lines = Text.from_ansi(done.stdout).split("\n", allow_blank=True)
    end = next((at for at, line in enumerate(lines) if line.plain.startswith("Decides")), None)
    return list(lines[:end])


INKS: Final = {
    "green": palette.DARK["good"],
    "yellow": palette.DARK["warn"],
    "red": palette.DARK["bad"],
    "cyan": palette.DARK["busy"],
}


def terminal_svg(frames: Sequence[Frame]) -> str:
    """Draws a terminal that shows one frame after another; the last one where nothing moves."""
    width = round(2 * PADDING + COLUMNS * CHARACTER)
    height = BAR + PADDING + LINE * max(len(lines) for _, lines in frames)
    ground, ink, soft = (palette.DARK[name] for name in ("page", "ink", "soft"))
    dots = "".join(f'<circle cx="{PADDING + 18 * n}" cy="17" r="5.5"/>' for n in range(3))
    ends = [start for start, _ in frames[1:]] + [SECONDS]
    groups = "".join(
        frame_svg(lines, start, end, is_last=end == SECONDS)
        for (start, lines), end in zip(frames, ends, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-size="14" fill="{ink}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">\n'
        "<title>judge-gym run replies.yaml: the progress of a run, and which judge to use</title>\n"
        f'<rect width="{width}" height="{height}" rx="10" fill="{ground}"/>\n'
        f'<g fill="{soft}" opacity=".5">{dots}</g>\n{groups}</svg>\n'
    )


def frame_svg(lines: Sequence[Text], start: float, end: float, *, is_last: bool) -> str:
    """Draws the lines of a frame, which are visible from its start to its end."""
    times, values = [0.0, start / SECONDS, end / SECONDS], ["0", "1", "0"]
    if start == 0:
        times, values = times[1:], values[1:]
    if is_last:
        times, values = times[:-1], values[:-1]
    animation = (
        f'<animate attributeName="opacity" calcMode="discrete" dur="{SECONDS:g}s" '
        f'repeatCount="indefinite" values="{";".join(values)}" '
        f'keyTimes="{";".join(f"{at:.4f}".rstrip("0").rstrip(".") for at in times)}"/>'
    )
    texts = "".join(line_svg(line, BAR + LINE * number + 14) for number, line in enumerate(lines))
    return f'<g opacity="{int(is_last)}">{animation}{texts}</g>\n'


def line_svg(line: Text, y: float) -> str:
    """Draws a line, a text for each of its styles, as wide as its characters whatever the font."""
    parts, column = [], 0
    for segment in line.render(Console(width=COLUMNS)):
        text, style = segment.text.rstrip("\n"), segment.style
        if text.strip():
            attributes = ""
            if style is not None and style.color is not None:
                attributes += f' fill="{INKS.get(style.color.name, palette.DARK["ink"])}"'
            attributes += ' font-weight="600"' if style is not None and style.bold else ""
            attributes += ' opacity=".6"' if style is not None and style.dim else ""
            parts.append(
                f'<text xml:space="preserve" x="{PADDING + column * CHARACTER:.1f}" y="{y:g}" '
                f'textLength="{len(text) * CHARACTER:.1f}"{attributes}>{escape(text)}</text>'
            )
        column += len(text)
    return "".join(parts)


# --- prices --------------------------------------------------------------------------------------


def draw_prices(browser: Browser, folder: Path) -> str:
    """Draws price against quality of LLMBar's recorded judges; returns what it shows."""
    [recording] = llmbar.read(folder)
    verdicts = recording.verdicts
    priced = verdicts["judge"].isin(list(PRICED)) & verdicts[llmbar.STRATEGY].isin(list(STRATEGIES))
    verdicts = verdicts[priced].merge(recording.items[["item", "text", "response_a", "response_b"]])
    question = verdicts["text"] + verdicts["response_a"] + verdicts["response_b"]
    verdicts = verdicts.assign(
        usd=[
            price(*row) for row in zip(verdicts["judge"], question, verdicts["answer"], strict=True)
        ]
    )
    samples, _ = as_samples(replace(recording, verdicts=verdicts))
    frame = tidy(samples, source="LLMBar")
    table = judge_table(frame, None)
    section = price_and_quality(ReportInput(Dataset(frame), judges=table))
    assert section is not None
    [chart] = section.charts
    names = chart.frame["setup"].str.split(", strategy ", expand=True)
    data: pd.DataFrame = chart.frame.assign(setup=names[0] + ", " + names[1].map(STRATEGIES))
    drawn = chart.kind(data, PRICE_TITLE)
    picture = figures.svg(drawn)
    for scheme, colours in SCHEMES.items():
        draw_figure(browser, picture, colours, IMAGES / f"price-{scheme}.png")
    return chart.kind.finding(data)


def price(judge: str, question: str, answer: str) -> float:
    """Returns the list price of a call in US dollars, by the lengths of its texts."""
    usage = Usage(
        input_tokens=len(question) // CHARACTERS_PER_TOKEN,
        output_tokens=max(1, len(answer) // CHARACTERS_PER_TOKEN),
    )
    return float(calc_price(usage, PRICED[judge], provider_id="openai").total_price)


def draw_figure(browser: Browser, picture: str, colours: Any, path: Path) -> None:
    """Takes a picture of a figure on a card, in the colours of a scheme."""
    page = browser.new_page(viewport={"width": 900, "height": 600}, device_scale_factor=SCALE)
    font = (palette.FONTS / "inter.woff2").as_uri()
    style = (
        f"@font-face {{ font-family: Inter; src: url({font}); font-weight: 400 700; }} "
        f"body {{ margin: 0; background: {colours['card']}; }} "
        f"div {{ width: fit-content; padding: 12px; color: {colours['ink']}; font: 12px Inter; }} "
        f"p {{ margin: 0 8px 4px; max-width: 660px; color: {colours['soft']}; }}"
    )
    html = f"<style>{style}</style><div>{picture}<p>{escape(PRICE_NOTE)}</p></div>"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "figure.html"
        file.write_text(html, encoding="utf-8")
        page.goto(file.as_uri(), wait_until="networkidle")
        page.locator("div").screenshot(path=path)
    page.close()


if __name__ == "__main__":
    main()
