"""The report of a study that was run on simulated judges, as a page and as text."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from conftest import Scripted, study_file
from engines import replace_engine
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.report import Report, build_report
from judge_gym.cli import main
from judge_gym.engine import Engine
from judge_gym.errors import DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from judged import Chances, judged
from panel_frames import samples, verdicts

Write = Callable[..., Path]
VOID = {"meta", "link", "img", "br", "hr", "input"}
NO_USAGE = pd.DataFrame()
GIVEN = {
    "kind": "ordinal",
    "stages": [{"label": cue, "criteria": [f'Called "{cue}"']} for cue in ("upheld", "banned")],
}


class Page(HTMLParser):
    """A page taken apart: its elements, its words, and its tables by heading."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._open: list[str] = []
        self._heading = ""
        self.feed(html)
        self.close()
        assert not self._open, "every element that is opened is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "h3":
            self._heading = ""
        if tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        if tag in ("td", "th"):
            self.tables[self._heading][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        here = self._open[-1] if self._open else ""
        if here != "style":
            self.words.append(data)
        if here == "h3":
            self._heading += data
        if here in ("td", "th"):
            self.tables[self._heading][-1][-1] += data

    def column(self, table: str, name: str) -> list[str]:
        head, *rows = self.tables[table]
        return [row[head.index(name)] for row in rows]


def run(lab: Lab, study: Path) -> Report:
    return lab.reports.build(lab.runs.run(study).study)


def url(lab: Lab) -> str:
    return f"sqlite:///{lab.store.database.file}"


class Ran(NamedTuple):
    """A study that was run, and what came of it: for tests that only look."""

    url: str
    samples: pd.DataFrame
    usage: pd.DataFrame
    report: Report
    html: str


def ran(folder: Path, **changes: Any) -> Ran:
    with Lab.open(f"sqlite:///{folder / 'lab.db'}") as lab:
        report = run(lab, study_file(folder, **changes))
        usage = pd.DataFrame(lab.reports.usage("small"))
        return Ran(url(lab), lab.experiments.samples("small"), usage, report, report.html())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two judges on three items, each under its own rubric."""
    return ran(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The same, under each other's rubric too."""
    return ran(tmp_path_factory.mktemp("swapped"), swap="all")


def text_of(database: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `judge-gym report` prints."""
    with pytest.raises(SystemExit) as end:
        main(["--db", database, "report", "small", *words])
    assert end.value.code == 0
    return capsys.readouterr().out


# --- what it says --------------------------------------------------------------------------------


def test_a_report_has_the_facts_of_the_run(lab: Lab, write_study: Write) -> None:
    tasks = [
        {"type": "ecc", "concept": concept, "evidence": "here"} for concept in ("fascism", "trust")
    ]
    report = run(lab, write_study(tasks=tasks, swap="all", vary={"rubric.scale": [4, 5]}))
    frame = lab.experiments.samples("small")
    # 2 tasks x 2 judges x 2 scales; each cell 3 items x 2 samples, under its own and one rival's.
    assert report.facts["experiments"] == "8"
    assert report.facts["judges"] == "sim:balanced, sim:strict"
    assert report.facts["tasks"] == "fascism (ecc, Valdoria), trust (ecc, Valdoria)"
    assert report.facts["varied"] == "rubric.scale"
    assert report.facts["evidence items"] == "3"
    assert report.facts["samples"] == "96 (48 under another's rubric)"
    scored = int((frame["status"] == "scored").sum())
    assert report.facts["scored"] == f"{scored / 96:.1%}"
    assert report.facts["probes"] == str(scored)
    # 3 views; 8 rubrics, each criticised; 96 verdicts; a probe for each that was scored.
    assert report.facts["calls paid"] == str(3 + 8 + 8 + 96 + scored)
    assert report.facts["cost"] == "0.0000 USD"
    page = Page(report.html())
    assert all(value in page.words for value in report.facts.values())


def test_its_tables_are_on_the_page(plain: Ran) -> None:
    page, frame = Page(plain.html), plain.samples
    assert page.tables.keys() == {table.title for table in plain.report.tables}
    assert {"Statuses", "Expected stage", "Polarization", "Cost"} <= page.tables.keys()
    assert page.column("Statuses", JUDGE) == ["sim:balanced", "sim:strict"]
    assert page.column("Statuses", "n") == ["6", "6"]
    ended = frame.groupby(JUDGE)["status"].apply(lambda s: float((s == "scored").mean()))
    assert page.column("Statuses", "scored") == [f"{share:.1%}" for share in ended]
    assert page.column("Polarization", "judges") == ["2"]
    calls = dict(zip(page.column("Cost", "stage"), page.column("Cost", "calls"), strict=False))
    assert calls["neutralizer"] == "3" and calls["critic"] == "2"


def test_every_chart_is_drawn(swapped: Ran) -> None:
    drawn = [chart.title for chart in swapped.report.charts]
    assert {"Distribution of verdicts", "Item by item", "Own and rivals' rubrics"} <= set(drawn)
    assert len(drawn) == len(set(drawn)) == swapped.html.count("<svg ")


def test_a_report_is_the_same_each_time(swapped: Ran) -> None:
    with Lab.open(swapped.url) as lab:
        assert lab.reports.build("small").html() == swapped.html


def test_a_verdict_that_two_experiments_share_counts_once(lab: Lab, write_study: Write) -> None:
    # Scores do not depend on the probe's context, so two of the three points share theirs.
    vary = {"verdict.method": ["single", "subset"], "probe.context": ["fresh", "same"]}
    judges = ["sim:judge?abstain=0.75", "sim:strict?abstain=0.75"]
    report = run(lab, write_study(vary=vary, sweep="ablate", judges=judges, samples=4))
    frame = lab.experiments.samples("small")
    once = frame.drop_duplicates("call_id")
    rate, naive = (f"{(f['status'] == 'scored').mean():.1%}" for f in (once, frame))
    assert len(frame) == 72 and len(once) == 48 and rate != naive, "the case tells them apart"
    assert report.facts["scored"] == rate


def test_items_that_share_a_title_stay_apart(lab: Lab, write_study: Write, tmp_path: Path) -> None:
    texts = ("It was published in full and upheld.", "It was banned and its staff detained.")
    lines = [json.dumps({"title": "News of the day", "text": text}) for text in texts]
    (tmp_path / "twins.jsonl").write_text("\n".join(lines))
    pool = {"here": {"files": "twins.jsonl", "window": {"country": "Valdoria"}}}
    report = run(lab, write_study(evidence=pool, judges=["sim:judge?abstain=0"]))
    page = Page(report.html())
    cells = [a for _, a in page.elements if a.get("aria-roledescription") == "rect mark"]
    assert len(cells) == 2


def test_a_report_on_one_tag_covers_that_experiment_alone(plain: Ran) -> None:
    with Lab.open(plain.url) as lab:
        report = lab.reports.build("small/fascism/here/sim:strict")
    assert report.facts["experiments"] == "1" and report.facts["judges"] == "sim:strict"
    assert report.facts["samples"].startswith("6 ")


def test_warnings_are_on_the_page(plain: Ran) -> None:
    warned = replace(plain.report, warnings=("1 of 3 & more",))
    assert "1 of 3 & more" in Page(warned.html()).words
    given = build_report("one", judged({"a": [1.0, 0, 0, 0]}), NO_USAGE, warnings=("a, b",))
    assert given.warnings == ("a, b",)


# --- simulated or not ----------------------------------------------------------------------------


def test_a_report_says_at_both_ends_that_judges_were_simulated(
    plain: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    report, html = plain.report, plain.html
    assert "simulated" in report.banner
    first, last = html.find(report.banner), html.rfind(report.banner)
    assert -1 < first < html.index("<dl>") < html.rindex("</table>") < last
    printed = text_of(plain.url, capsys)
    assert printed.startswith(report.banner) and printed.rstrip().endswith(report.banner)
    assert json.loads(text_of(plain.url, capsys, "--json"))["banner"] == report.banner


def test_a_report_without_any_answer_still_says_so(lab: Lab, write_study: Write) -> None:
    judges = ["sim:judge?fail=1", "sim:strict?fail=1"]
    assert "simulated" in run(lab, write_study(judges=judges)).banner


def test_what_a_model_reports_decides_whether_it_was_simulated(
    plain: Ran,
) -> None:
    frame = plain.samples
    strict = frame[JUDGE] == "sim:strict"
    hosted = frame.assign(**{JUDGE: "openai:gpt-4.1", "reported_model": "gpt-4.1-2025-04-14"})
    report = build_report("small", hosted.assign(rubric_author="openai:gpt-4.1"), NO_USAGE)
    assert report.banner == ""
    assert "imulated" not in report.html()
    # A judge behind another name whose responses come from a simulated model is simulated.
    posing = hosted.assign(reported_model="sim:strict")
    assert "All judges were simulated" in build_report("small", posing, NO_USAGE).banner
    mixed = frame.assign(reported_model=frame["reported_model"].where(strict, "gpt-4.1"))
    banner = build_report("small", mixed, NO_USAGE).banner
    assert "Some judges were simulated" in banner
    assert "sim:strict" in banner and "gpt-4.1" not in banner


# --- what is undefined ---------------------------------------------------------------------------


def test_what_is_undefined_is_a_dash(
    lab: Lab, write_study: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.jsonl").write_text('{"text": "A judge was dismissed and a paper was banned."}')
    pool = {"here": {"files": "one.jsonl", "window": {"country": "Valdoria"}}}
    report = run(lab, write_study(evidence=pool, judges=["sim:judge?abstain=0"]))
    page = Page(report.html())
    assert "Polarization" not in page.tables, "one judge cannot be polarized"
    assert page.column("Expected stage", "low") == page.column("Expected stage", "high") == ["–"]
    assert page.column("Expected stage", "items") == ["1"]
    assert "nan" not in " ".join(page.words).lower().split()
    tables = json.loads(text_of(url(lab), capsys, "--json"))["tables"]
    assert tables["Expected stage"][0]["low"] is None


def test_an_unknown_cost_is_not_shown_as_nothing(plain: Ran) -> None:
    report = build_report("small", plain.samples, plain.usage.assign(usd=None))
    assert "0.0000" not in report.facts["cost"]
    assert set(Page(report.html()).column("Cost", "usd")) == {"–"}


def test_abstentions_that_say_nothing_open_belief_and_plausibility_by_their_share() -> None:
    """Item 1: one of four verdicts abstains; item 2: none; an unreadable one is no abstention."""
    lost = {JUDGE: "a", "evidence": 1, "status": "refused"}
    told = [
        ("a", 1, "1"),
        ("a", 1, "1 2"),
        ("a", 1, "3"),
        ("a", 1, ""),
        ("a", 2, "1"),
        ("b", 1, "4"),
    ]
    rows = [{JUDGE: judge, "evidence": item, "stages": chosen} for judge, item, chosen in told]
    report = build_report("open", samples(*rows, lost), NO_USAGE)
    [table] = (table.frame for table in report.tables if table.title == "Belief and plausibility")
    first = table[(table[JUDGE] == "a") & (table["stage"] == 1)].iloc[0]
    assert first["belief"] == pytest.approx((1 / 3 + 1) / 2)
    assert first["plausibility"] == pytest.approx((2 / 3 + 1) / 2)
    assert first["open belief"] == pytest.approx((3 / 4 * 1 / 3 + 1) / 2)
    assert first["open plausibility"] == pytest.approx((3 / 4 * 2 / 3 + 1 / 4 + 1) / 2)


def test_a_stage_that_leads_only_by_leaving_abstentions_out_is_said() -> None:
    """Without abstentions two of three are for stage 1; with what they leave open, it is even."""
    rows = [("a", 1, "1"), ("a", 1, ""), ("b", 1, "2"), ("b", 1, "2"), ("c", 1, "1"), ("c", 1, "")]
    report = build_report("moved", verdicts(*rows, n_stages=2), NO_USAGE)
    title = "Sensitivity to the aggregation rule"
    [table] = (table.frame for table in report.tables if table.title == title)
    moved = table.set_index("rule")["moved by abstentions"]
    # Left out: two of three are for 1. Taken for verdicts on all stages: .9 each for 1 and 2.
    assert moved.isna()["average"]
    assert moved["dempster"] == 1


@pytest.mark.parametrize(
    ("judges", "status"),
    [
        (["sim:judge?abstain=1", "sim:strict?abstain=1"], "abstained"),
        (["sim:judge?refuse=1", "sim:strict?refuse=1"], "refused"),
        (["sim:judge?garble=1", "sim:strict?garble=1"], "parse_failed"),
        (["sim:judge?fail=1", "sim:strict?fail=1"], "provider_error"),
    ],
)
def test_a_study_without_a_single_score_still_reports(
    lab: Lab, write_study: Write, tmp_path: Path, judges: list[str], status: str
) -> None:
    (tmp_path / "vague.jsonl").write_text('{"text": "The committee met on Tuesday."}')
    pool = {"here": {"files": "vague.jsonl", "window": {"country": "Valdoria"}}}
    report = run(lab, write_study(evidence=pool, judges=judges))
    assert set(lab.experiments.samples("small")["status"]) == {status}
    assert report.facts["scored"] == "0.0%" and report.facts["probes"] == "0"
    page = Page(report.html())
    assert page.column("Statuses", status) == ["100.0%", "100.0%"]
    assert not {"Expected stage", "Polarization", "Effects of the axes"} & page.tables.keys()
    # In the picture, and over it on a narrow screen.
    assert page.words.count("100.0% of verdicts carry no score") == 2


def test_a_study_without_samples_is_refused(lab: Lab, write_study: Write) -> None:
    lab.runs.run(write_study(), workflows=["rubric"])
    with pytest.raises(DesignError, match="small has no samples yet; run it first"):
        lab.reports.build("small")


def test_an_unknown_study_is_refused(lab: Lab) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        lab.reports.build("nowhere")


# --- rubrics -------------------------------------------------------------------------------------


def given_rubric(write_study: Write, folder: Path, kind: str) -> Path:
    (folder / "rubric.json").write_text(json.dumps({**GIVEN, "kind": kind}))
    tasks = [{"type": "benchmark", "concept": "c", "evidence": "here", "rubric": "rubric.json"}]
    return write_study(study="given", tasks=tasks, design=None)


def test_options_without_order_have_no_expected_stage(
    lab: Lab, write_study: Write, tmp_path: Path
) -> None:
    report = run(lab, given_rubric(write_study, tmp_path, "nominal"))
    page = Page(report.html())
    assert "Expected stage" not in page.tables and "Item by item" not in page.words
    assert page.column("Polarization", "items") == ["3"], "P needs no order"


def test_polarization_says_that_each_judge_used_its_own_rubric_only_where_it_did(
    plain: Ran, lab: Lab, write_study: Write, tmp_path: Path
) -> None:
    def note(report: Report) -> str:
        return next(table.note for table in report.tables if table.title == "Polarization")

    third = {"rubric.author": "sim:hasty", "evidence.view": "raw", "rubric.critic": "sim:critic"}
    assert "own rubric" in note(plain.report)
    assert "own rubric" not in note(run(lab, given_rubric(write_study, tmp_path, "ordinal")))
    assert "own rubric" not in note(run(lab, write_study(study="third", design=third)))


# --- the page ------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else(swapped: Ran) -> None:
    html, page = swapped.html, Page(swapped.html)
    fetching = {"script", "link", "img", "iframe", "object", "embed", "image", "use", "base"}
    assert not fetching & {tag for tag, _ in page.elements}
    assert not [a for _, a in page.elements if {"src", "xlink:href", "srcset"} & a.keys()]
    links = [str(a["href"]) for _, a in page.elements if "href" in a]
    assert links and all(link.startswith("#") for link in links), "to places on the page"
    assert "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(['\"]?([^)]*)", html))
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"\w+://[^\s\"'<>)]+", html)) <= namespaces
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)), "figures do not share names"


def test_what_a_study_names_is_escaped(
    lab: Lab, write_study: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    title, concept, country = (
        "<script>alert('title')</script>",
        "<b onclick=alert(1)>power</b>",
        "<img src=x onerror=alert(2)>",
    )
    item = {"title": title, "text": "A judge was dismissed and a paper was banned."}
    (tmp_path / "bad.jsonl").write_text(json.dumps(item))
    study = write_study(
        evidence={"here": {"files": "bad.jsonl", "window": {"country": country}}},
        tasks=[{"type": "ecc", "concept": concept, "evidence": "here"}],
        swap="all",
    )
    html = run(lab, study).html()
    page = Page(html)
    assert not {"script", "img", "b"} & {tag for tag, _ in page.elements}
    assert not [name for _, a in page.elements for name in a if name.startswith("on")]
    assert f"{concept} (ecc, {country})" in page.words, "it is shown as it was written"
    assert escape(concept, quote=False) in html
    assert concept in text_of(url(lab), capsys)


@pytest.mark.parametrize("concept", ["[red]power[/red]", "power [/closed]"])
def test_what_a_study_names_is_no_markup_on_a_terminal(
    lab: Lab, write_study: Write, capsys: pytest.CaptureFixture[str], concept: str
) -> None:
    run(lab, write_study(tasks=[{"type": "ecc", "concept": concept, "evidence": "here"}]))
    assert concept in text_of(url(lab), capsys)


MEASURE = """<!doctype html><title>-</title>
<iframe id="page" width="{width}" height="844" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const page = document.getElementById("page").contentDocument;
  const inside = (box, frame) => box.left >= frame.left - 2 && box.right <= frame.right + 2
    && box.top >= frame.top - 2 && box.bottom <= frame.bottom + 2;
  const figures = [...page.querySelectorAll("figure svg")].map(svg => {{
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("[aria-roledescription][d]")]
      .map(mark => mark.getBoundingClientRect());
    return {{
      area: frame.width * frame.height,
      marks: boxes.filter(box => box.width * box.height > 0).length,
      cut: [...svg.querySelectorAll("text")]
        .filter(text => !inside(text.getBoundingClientRect(), frame)).map(t => t.textContent),
    }};
  }});
  document.title = JSON.stringify({{
    window: page.defaultView.innerWidth, page: page.documentElement.scrollWidth,
    banners: [...page.querySelectorAll(".banner")].filter(b => b.offsetHeight > 10).length,
    figures,
  }});
}};
</script>"""
CHROMIUM = (
    "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync --hide-scrollbars "
    "--window-size=1400,1000"
).split()


def measured(html: str, width: int, folder: Path) -> dict[str, Any]:
    """What a browser of this width makes of a page."""
    wrapper = folder / "wrapper.html"
    wrapper.write_text(MEASURE.format(width=width, page=escape(html)), encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [*CHROMIUM, profile, "--dump-dom", wrapper.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found is not None
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    return seen


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two tasks, one of a long name, two methods, and swaps."""
    tasks = [
        {"type": "ecc", "concept": concept, "evidence": "here"}
        for concept in ("democratic backsliding of the central administration", "fascism")
    ]
    vary = {"verdict.method": ["single", "subset"]}
    return ran(tmp_path_factory.mktemp("whole"), tasks=tasks, vary=vary, swap="all")


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_a_phone_and_a_desk_and_its_figures_are_drawn(
    whole: Ran, tmp_path: Path, width: int
) -> None:
    seen = measured(whole.html, width, tmp_path)
    assert seen["window"] == width, "the page is laid out at the width that is tested"
    assert seen["page"] <= width, "nothing runs over the side"
    assert seen["banners"] == 2
    assert len(seen["figures"]) >= 10
    for figure in seen["figures"]:
        assert figure["area"] > 10_000 and figure["marks"] >= 2
        assert figure["cut"] == [], "no word stands outside its figure"


def test_what_a_swap_changes_is_shown_beside_the_judges_own_rubric(
    lab: Lab, write_study: Write
) -> None:
    report = run(lab, write_study(swap="all", samples=4))
    [shown] = [t.frame for t in report.tables if t.title == "Expected stage by whose rubric"]
    frame = lab.experiments.samples("small")
    for row in shown.to_dict("records"):
        mine = frame[frame[JUDGE] == row[JUDGE]]
        part = mine[mine["is_swap"] == (row["rubric used"] == "another's")]
        scored = part[part["status"] == "scored"]
        stage = (scored["stages"].astype(int) - 1) / (scored["n_stages"] - 1)
        assert row["mean"] == pytest.approx(stage.groupby(scored["evidence"]).mean().mean())
    assert len(shown) == 4


# --- views ---------------------------------------------------------------------------------------


def checked(
    editor: str, *, ratio: float = 0.5, long: bool = False, numbers: str = "", names: str = ""
) -> dict[str, Any]:
    """A view as the store gives it."""
    checks = {
        "words": 10,
        "length_ratio": ratio,
        "too_long": long,
        "numbers": numbers.split(),
        "names": names.split(),
    }
    return {"editor": editor, "status": "scored", "checks": checks}


def failed(editor: str, status: str) -> dict[str, Any]:
    return {"editor": editor, "status": status, "checks": None}


def test_views_are_counted_by_editor_with_the_reasons_to_look(plain: Ran) -> None:
    views = [
        checked("sim:a", ratio=0.2),
        checked("sim:b", ratio=1.5, long=True),
        checked("sim:a", ratio=0.4, numbers="7 8", names="Oslo"),
        checked("sim:a", ratio=0.9, long=True, numbers="7"),
        failed("sim:a", "refused"),
        failed("sim:c", "truncated"),
    ]
    report = build_report("small", plain.samples, NO_USAGE, views=views)
    [head, *rows] = Page(report.html()).tables["Views"]
    assert head == [
        "editor", "views", "failed", "flagged", "too long", "numbers", "names", "length ratio",
    ]  # fmt: skip
    assert rows == [
        ["sim:a", "4", "1", "2", "1", "2", "1", "0.5"],
        ["sim:b", "1", "0", "1", "1", "0", "0", "1.5"],
        ["sim:c", "1", "1", "0", "0", "0", "0", "–"],
    ]


class Editor(Scripted):
    """Simulated models, but an editor that adds to one text and leaves another out."""

    async def complete(self, request: Request) -> Completion:
        last = request.messages[-1].content
        if "clinical summary" in last and "regulator" in last:
            return Completion("No.", "refusal", request.model, 1, 1, 0.0)
        if "clinical summary" in last and "budget" in last:
            text = "The budget of 99 crowns was adopted in Oslo."
            return Completion(text, "stop", request.model, 1, 1, 0.0)
        return await SimulatedModel(request.model).complete(request)


def test_the_views_that_judges_read_are_in_the_report_once_whatever_experiments_share_them(
    lab: Lab, write_study: Write
) -> None:
    replace_engine(lab, Engine(lab.store, Editor(lambda request: "")))
    study = write_study(vary={"verdict.method": ["single", "subset"]}, tolerance=1.0)
    page = Page(run(lab, study).html())
    [row] = page.tables["Views"][1:]
    assert row[:-1] == ["sim:editor", "3", "1", "1", "0", "1", "1"]


def test_without_views_there_is_no_table_of_them(lab: Lab, write_study: Write) -> None:
    raw = {"evidence.view": "raw", "rubric.critic": "sim:critic"}
    assert "Views" not in Page(run(lab, write_study(design=raw)).html()).tables


# --- pairs ---------------------------------------------------------------------------------------

TABLE = "Pairs with a known better response"
SIDES = ("The first response is better", "The second response is better", "Neither is better")
# For each pair its truth, and what is decided when it is shown as given and in reverse.
DECIDED: list[tuple[int | None, int | None, int | None]] = [
    (1, 1, 1),  # right in both orders
    (1, 1, 2),  # the one shown first, both times
    (2, 3, 2),  # a tie, then right
    (1, None, 1),  # unreadable, then right
    (None, 1, 1),  # nobody knows
]


def decide(request: Request) -> str:
    """The verdict on a pair that the table above says, in the words of what is shown."""
    text = request.messages[-1].content
    number = int(re.findall(r"Case (\d)\?", text)[0])
    flipped = text.index(f"one of {number}") > text.index(f"other of {number}")
    chosen = DECIDED[number][1 + flipped]
    if chosen is None:
        return "I cannot say."
    side = chosen if chosen == 3 or not flipped else 3 - chosen
    label = re.findall(rf'Option (\S+): "{SIDES[side - 1]}"', text)[0]
    return f"VERDICT: {label}"


@pytest.fixture
def pairs(write_study: Write, tmp_path: Path) -> Write:
    """Writes a study of five pairs for one judge."""

    def write(**changes: Any) -> Path:
        rows = [
            {"title": f"P{n}", "text": f"Case {n}?", "responses": [f"one of {n}", f"other of {n}"]}
            | ({"truth": truth} if truth else {})
            for n, (truth, _, _) in enumerate(DECIDED)
        ]
        stages = [{"label": side, "criteria": ["by its answer"]} for side in SIDES]
        options = {"kind": "nominal", "stages": stages}
        (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (tmp_path / "options.json").write_text(json.dumps(options))
        task = {"type": "benchmark", "concept": "winner", "evidence": "cases"}
        usual = {
            "samples": 1,
            "evidence": {"cases": {"files": "pairs.jsonl"}},
            "tasks": [{**task, "rubric": "options.json"}],
            "judges": ["sim:strict"],
            "design": None,
            "probe": False,
        }
        return write_study(**{**usual, **changes})

    return write


def test_pairs_are_scored_by_the_published_rule(lab: Lab, pairs: Write) -> None:
    """Three of four are right; Wilson's interval for that is 0.301 to 0.954.

    Of seven decisions on pairs with a truth, four name the response shown first (twice that of
    the second pair), two the second and one is a tie: (4 - 2) / 7.
    """
    replace_engine(lab, Engine(lab.store, Scripted(decide)))
    report = run(lab, pairs())
    [head, row] = Page(report.html()).tables[TABLE]
    assert dict(zip(head, row, strict=True)) == {
        "task": "winner (benchmark, cases)",
        "variant": "base",
        JUDGE: "sim:strict",
        "n": "4",
        "accuracy": "0.75",
        "low": "0.301",
        "high": "0.954",
        "both_correct": "0.25",
        "inconsistent": "0.75",
        "nulls": "1",
        "position_bias": "0.286",
    }


@pytest.mark.parametrize(
    ("order", "accuracy", "nulls"), [("given", "0.5", "1"), ("swapped", "0.75", "0")]
)
def test_what_needs_both_orders_is_a_dash_where_there_is_one(
    lab: Lab, pairs: Write, order: str, accuracy: str, nulls: str
) -> None:
    replace_engine(lab, Engine(lab.store, Scripted(decide)))
    page = Page(run(lab, pairs(design={"presentation.pair_order": order})).html())
    assert page.column(TABLE, "accuracy") == [accuracy]
    assert page.column(TABLE, "nulls") == [nulls]
    for name in ("both_correct", "inconsistent", "position_bias"):
        assert page.column(TABLE, name) == ["–"]


def test_orders_that_vary_have_a_row_each(lab: Lab, pairs: Write) -> None:
    replace_engine(lab, Engine(lab.store, Scripted(decide)))
    page = Page(run(lab, pairs(vary={"presentation.pair_order": ["both", "given"]})).html())
    rows = zip(page.column(TABLE, "variant"), page.column(TABLE, "accuracy"), strict=True)
    assert dict(rows) == {
        "presentation.pair_order=both": "0.75",
        "presentation.pair_order=given": "0.5",
    }


def test_replicates_of_a_pair_are_one_item(lab: Lab, pairs: Write) -> None:
    replace_engine(lab, Engine(lab.store, Scripted(decide)))
    page = Page(run(lab, pairs(samples=3)).html())
    assert page.column(TABLE, "n") == ["4"] and page.column(TABLE, "nulls") == ["3"]
    assert page.column(TABLE, "accuracy") == ["0.75"]


def test_a_page_of_pairs_shows_no_scale_and_no_second_accuracy(lab: Lab, pairs: Write) -> None:
    replace_engine(lab, Engine(lab.store, Scripted(decide)))
    report = run(lab, pairs())
    page = Page(report.html())
    assert not {"Expected stage", "Known answers", "Views", "Swap sensitivity"} & (
        page.tables.keys()
    )
    assert page.column("Statuses", "n") == ["10"]
    assert page.column("Statuses", "parse_failed") == ["10.0%"]
    assert report.facts["evidence items"] == "5" and report.facts["samples"].startswith("10 ")
    assert "nan" not in " ".join(page.words).lower().split()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_of_pairs_and_views_fits_a_phone_and_a_desk(
    lab: Lab, pairs: Write, tmp_path: Path, width: int
) -> None:
    replace_engine(lab, Engine(lab.store, Scripted(decide)))
    path = pairs(vary={"presentation.pair_order": ["both", "given", "swapped"]}, samples=2)
    lab.runs.run(path)
    views = [checked("openrouter:a-provider/an-editor-of-a-long-name", numbers="7")]
    report = build_report("small", lab.experiments.samples("small"), NO_USAGE, views=views)
    assert {TABLE, "Views"} <= {table.title for table in report.tables}
    seen = measured(report.html(), width, tmp_path)
    assert seen["window"] == width and seen["page"] <= width
    assert len(seen["figures"]) == len(report.charts) > 0
    for figure in seen["figures"]:
        assert figure["marks"] >= 2 and figure["cut"] == []


def test_pairs_without_a_known_truth_are_not_scored(lab: Lab, pairs: Write, tmp_path: Path) -> None:
    path = pairs()
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    bare = [{key: value for key, value in row.items() if key != "truth"} for row in rows]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, bare)))
    assert TABLE not in Page(run(lab, path).html()).tables


def test_pairs_and_texts_in_one_study_are_scored_each_in_its_own_table(
    lab: Lab, pairs: Write, tmp_path: Path
) -> None:
    (tmp_path / "given.json").write_text(json.dumps(GIVEN))
    lines = [{"text": "It was upheld.", "truth": 1}, {"text": "It was banned.", "truth": "upheld"}]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    tasks = [
        {"type": "benchmark", "concept": "winner", "evidence": "cases", "rubric": "options.json"},
        {"type": "benchmark", "concept": "tone", "evidence": "texts", "rubric": "given.json"},
    ]
    evidence = {"cases": {"files": "pairs.jsonl"}, "texts": {"files": "texts.jsonl"}}

    def both(request: Request) -> str:
        text = request.messages[-1].content
        if "Case" in text:
            return decide(request)
        [label] = re.findall(r'Stage (\S+): "upheld"', text)
        return f"VERDICT: {label}"

    replace_engine(lab, Engine(lab.store, Scripted(both)))
    page = Page(run(lab, pairs(tasks=tasks, evidence=evidence)).html())
    assert page.column(TABLE, "task") == ["winner (benchmark, cases)"]
    assert page.column("Known answers", "task") == ["tone (benchmark, texts)"]
    assert page.column("Known answers", "mean") == ["1"]
    assert page.column("Expected stage", "task") == ["tone (benchmark, texts)"]


def test_without_pairs_there_is_no_table_of_them(plain: Ran) -> None:
    assert TABLE not in Page(plain.html).tables


# --- views by wording ----------------------------------------------------------------------------


def test_views_of_one_editor_under_two_wordings_are_counted_each(
    lab: Lab, write_study: Write
) -> None:
    vary = {"prompt.slots.neutralizer.persona": ["a clerk", "a court reporter"]}
    page = Page(run(lab, write_study(vary=vary, judges=["sim:strict"])).html())
    assert page.column("Cost", "calls")[page.column("Cost", "stage").index("neutralizer")] == "6"
    assert page.column("Views", "views") == ["6"]


# --- verdicts of any kind ------------------------------------------------------------------------

EVEN: Chances = [0.25, 0.25, 0.25, 0.25]
SHY: Chances = {"2": 0.5, "abstain": 0.5}
PANEL: dict[str, Chances] = {"a": EVEN, "b": [0.7, 0.3, 0, 0], "c": {"1 2": 0.6, "3": 0.4}}


def varied(concept: str = "", **levels: Any) -> pd.DataFrame:
    """The panel, with knobs at these levels."""
    return judged(PANEL, concept=concept, **{"verdict.output": "suffix"} | levels)


ODD: dict[str, pd.DataFrame] = {
    "one judge": judged({"a": EVEN}),
    "one item": judged(PANEL, items=1),
    "one replicate": judged(PANEL, replicates=1),
    "one of everything": judged({"a": EVEN}, items=1, replicates=1),
    "no common item": pd.concat([judged({"a": EVEN}), judged({"b": EVEN}, first=50)]),
    "nobody scores": judged({"a": {"abstain": 1.0}, "b": {"abstain": 1.0}}),
    "one judge never scores": judged({**PANEL, "d": {"abstain": 1.0}}),
    "all alike and certain": judged({"a": [0, 1, 0, 0], "b": [0, 1, 0, 0]}),
    "many abstain": judged({"a": SHY, "b": SHY}, probe=0.9),
    "two stages": judged({"a": [0.5, 0.5], "b": [0.9, 0.1]}, n_stages=2),
    "26 stages": judged({"a": [1 / 26] * 26, "b": {"1 26": 0.5, "13": 0.5}}, n_stages=26),
    "two scales": pd.concat(
        [
            judged(PANEL),
            judged({"a": [1.0, 0, 0], "b": [0.5, 0, 0.5]}, n_stages=3, first=20, rubric=2),
        ]
    ),
    "options without order": judged(PANEL, rubric_kind="nominal", truth=2, probe=0.5),
    "probes alone": judged({"a": EVEN}, probe=0.5),
    "certain probes": judged(PANEL, probe=1.0),
    "a truth that is a label": judged(PANEL, truth="mild"),
    "a knob in one task only": pd.concat(
        [varied("x"), varied("x", **{"verdict.output": "json"}), varied("y")]
    ),
    "two series": pd.concat([judged(PANEL, series="1"), judged(PANEL, series="2", seed=3)]),
    "swaps alone": judged(PANEL, is_swap=True, rubric_author="z", probe=0.4),
    "a control alone": judged(PANEL, task_type="control", reference=0.4, dose=0),
}


@pytest.mark.parametrize("frame", [pytest.param(frame, id=name) for name, frame in ODD.items()])
def test_a_report_is_made_of_whatever_was_judged(frame: pd.DataFrame) -> None:
    report = build_report("odd", frame, NO_USAGE)
    page = Page(report.html())
    assert page.column("Statuses", "n"), "how answers ended is always there"
    assert not {"nan", "inf", "nat"} & set(" ".join(page.words).lower().split())
    assert all(section.lead for section in report.sections)
    assert report.markdown().startswith("# odd\n")


def test_what_a_verdict_costs_stands_against_how_often_it_is_right() -> None:
    chances: dict[str, Chances] = {"cheap": [0.5, 0.5, 0, 0], "dear": [0.1, 0.9, 0, 0]}
    price = {"cheap": 0.001, "dear": 0.02}
    frame = judged(chances, items=30, truth=2)
    report = build_report("priced", frame.assign(usd=frame[JUDGE].map(price)), None)
    [chart] = [one.chart for one in report.charts if one.title == "Cost against accuracy"]
    [rows] = chart.to_dict()["datasets"].values()
    right = (frame["stages"] == "2").groupby(frame[JUDGE]).mean()
    for row in rows:
        assert row["usd"] == pytest.approx(price[row[JUDGE]])
        assert row["accuracy"] == pytest.approx(right[row[JUDGE]])
    assert {row[JUDGE] for row in rows} == set(price)
    free = build_report("unpriced", frame, None)
    assert "Cost against accuracy" not in {one.title for one in free.charts}


# --- what a report says of itself ----------------------------------------------------------------


def lead(report: Report, title: str) -> str:
    return next(part.lead for part in report.sections if part.title == title)


def limits_of(frame: pd.DataFrame) -> list[str]:
    report = build_report("limits", frame, None)
    return next(
        [str(limit) for limit in table.frame["limit"]]
        for table in report.tables
        if table.title == "Limits"
    )


def own_rubrics(draws: int) -> pd.DataFrame:
    """The panel under rubrics that each judge wrote, several times."""
    parts = []
    for draw in range(draws):
        part = judged(PANEL)
        named = part[JUDGE] + str(draw)
        parts.append(part.assign(rubric_author=part[JUDGE], rubric_draw=draw, rubric=named))
    return pd.concat(parts)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (judged({"a": EVEN}), "one judge: "),
        (judged(PANEL, replicates=1), "one verdict a cell: "),
        (judged(PANEL, items=1), "1 evidence item: "),
        (judged({"a": {"abstain": 1.0}, "b": {"abstain": 1.0}}), "no verdict is scored: "),
        (
            judged({"a": {"2": 0.1, "abstain": 0.9}, "b": {"2": 0.1, "abstain": 0.9}}),
            "% of the verdicts abstain or cannot be read: ",
        ),
        (judged({"a": EVEN}, probe=0.8), "a: fewer than three verdicts of others"),
        (
            own_rubrics(draws=5),
            "judge and rubric cannot be told apart; of ",
        ),
    ],
)
def test_limits_come_from_the_data(frame: pd.DataFrame, says: str) -> None:
    assert any(says in limit for limit in limits_of(frame))
    assert not any(says in limit for limit in limits_of(judged(PANEL, items=14)))


def test_one_verdict_a_cell_is_not_compared_with_chance() -> None:
    report = build_report("one", judged(PANEL, replicates=1), None)
    assert "chance" not in lead(report, "How far judges lie apart")
    [found] = [table.frame for table in report.tables if table.title == "Polarization"]
    assert found["p"].notna().all()
    assert found[["null", "above", "low", "high", "p_value"]].isna().all(axis=None)
    [k] = [table.frame for table in report.tables if table.title == "Conflict"]
    assert k["k"].notna().all() and k[["own", "excess"]].isna().all(axis=None)


def swapped_panel(gap: float) -> pd.DataFrame:
    """Two judges under own, rival and third party's rubrics, surer by a gap under their own."""
    rows = [
        {
            **{JUDGE: judge, "evidence": item, "replicate": replicate, "stages": "1"},
            **{"rubric_author": author, "rubric": author, "is_swap": author != judge},
            # Items pull either way, so that without a gap there is none.
            "probe": 0.5 + (gap + 0.1 * (-1) ** item if author == judge else 0.0),
        }
        for judge in "ab"
        for author in "abz"
        for item in range(12)
        for replicate in range(4)
    ]
    return samples(*rows)


@pytest.mark.parametrize(
    ("gap", "says"), [(0.3, "Judges state more agreement"), (0.0, "not told from 0")]
)
def test_the_headline_of_a_swap_is_that_of_its_test(gap: float, says: str) -> None:
    report = build_report("swaps", swapped_panel(gap), None)
    assert says in lead(report, "Whose rubric")
    [tested] = [table.frame for table in report.tables if table.title == "Hypotheses"]
    row = tested[tested["hypothesis"].str.startswith("H3")].iloc[0]
    assert row["value"] == pytest.approx(gap, abs=1e-9)
    assert (row["low"] > 0) == (gap > 0)
    assert f"{row['value']:+.2f}" in lead(report, "Whose rubric")


def test_a_third_partys_rubric_is_no_rivals() -> None:
    report = build_report("swaps", swapped_panel(0.3), None)
    [chart] = [one.chart for one in report.charts if one.title == "Stated expert agreement"]
    told = " ".join(chart.to_dict()["title"]["text"])
    assert "0.50 under a rival's" in told and "0.50 under a third party's" in told


def test_nine_metrics_say_under_whose_rubric() -> None:
    def note(frame: pd.DataFrame) -> str:
        report = build_report("metrics", frame, None)
        return next(table.note for table in report.tables if table.title == "Nine metrics")

    assert "under the judges' own rubrics" in note(swapped_panel(0.1))
    assert "own rubrics" not in note(judged(PANEL, rubric_author="z"))
