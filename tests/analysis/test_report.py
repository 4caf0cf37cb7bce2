"""The report of a study that was run on simulated judges, as a page and as text."""

import itertools
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from conftest import OnlySections, Scripted, study_file
from engines import replace_engine
from judge_gym.analysis import figures
from judge_gym.analysis import report as reports
from judge_gym.analysis.frames import CELL, JUDGE, tidy
from judge_gym.analysis.judges.pairs import pair_table
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.report import (
    Report,
    ReportInput,
    Section,
    Table,
    build_report,
    confounded,
    disagreement,
    findings,
    quoted_calls,
    verdicts,
    with_quotes,
)
from judge_gym.analysis.report.biases import biases
from judge_gym.analysis.report.digest import SIZE, as_json, digest
from judge_gym.analysis.report.findings import cost, rubrics_and_evidence
from judge_gym.analysis.report.judges import knob_effects, price_and_quality, which_judge
from judge_gym.analysis.report.page import Disagreement, Question, scored_share
from judge_gym.analysis.report.quotes import most_disputed_items
from judge_gym.analysis.verdicts import Dataset
from judge_gym.cli import display, main
from judge_gym.cli.report_display import print_summary
from judge_gym.engine import Engine
from judge_gym.errors import DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from judge_gym.web.pages.report import linked
from panel_frames import samples, swapped_panel
from stores import blank
from verdict_frames import Chances, draw_verdicts

Write = Callable[..., Path]
VOID = {"meta", "link", "img", "br", "hr", "input"}
NO_USAGE = pd.DataFrame()
GIVEN = {
    "kind": "ordinal",
    "stages": [{"label": cue, "criteria": [f'Called "{cue}"']} for cue in ("upheld", "banned")],
}


class Page(HTMLParser):
    """A page taken apart: its elements, its words, and its tables by their names."""

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
        if dict(attrs).get("class") == "scroll":
            self._heading = dict(attrs)["aria-label"] or ""
        if tag == "table" and dict(attrs).get("class") == "confusion":
            self._heading = "confusion"  # it stands beside the table of judges
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
        if here in ("td", "th"):
            self.tables[self._heading][-1][-1] += data

    def column(self, table: str, name: str) -> list[str]:
        """The cells of a column, without rows that are the title of a group."""
        head, *rows = self.tables[table]
        return [row[head.index(name)].strip() for row in rows if len(row) > 1]


def run(lab: Lab, study: Path) -> Report:
    return lab.reports.build(lab.runs.run(study).study)


def url(lab: Lab) -> str:
    return f"sqlite:///{lab.store.database.file}"


class Ran(NamedTuple):
    """A finished study with its report, for tests that only read."""

    url: str
    samples: pd.DataFrame
    usage: pd.DataFrame
    report: Report
    html: str


def ran(folder: Path, **changes: Any) -> Ran:
    with Lab.open(blank(folder / "lab.db")) as lab:
        report = run(lab, study_file(folder, **changes))
        usage = pd.DataFrame(lab.reports.usage("small"))
        return Ran(url(lab), lab.experiments.samples("small"), usage, report, report.html())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two judges on three items, each under its own rubric."""
    return ran(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two tasks, one with a long name, two methods, and swaps."""
    tasks = [
        {"type": "ecc", "concept": concept, "evidence": "here"}
        for concept in ("democratic backsliding of the central administration", "fascism")
    ]
    vary = {"verdict.method": ["single", "subset"]}
    return ran(tmp_path_factory.mktemp("whole"), tasks=tasks, vary=vary, swap="all")


def text_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints."""
    with pytest.raises(SystemExit) as end:
        main([*words])
    assert end.value.code == 0
    return capsys.readouterr().out


def given(frame: pd.DataFrame, **more: Any) -> ReportInput:
    """The input of single sections."""
    return ReportInput(Dataset(tidy(frame)), **more)


def table(section: Section | Report | None, title: str) -> pd.DataFrame:
    assert section is not None
    [frame] = [one.frame for one in section.tables if one.title == title]
    return frame


# --- content -------------------------------------------------------------------------------------


def test_a_report_has_the_facts_of_the_run(whole: Ran) -> None:
    facts, frame = whole.report.facts, whole.samples
    # 2 tasks x 2 judges x 2 methods; each cell 3 items x 2 samples, under own and rival's rubric.
    assert facts["experiments"] == "8"
    assert facts["judges"] == "sim:balanced, sim:strict"
    assert facts["tasks"] == (
        "democratic backsliding of the central administration (ecc, Valdoria), "
        "fascism (ecc, Valdoria)"
    )
    assert facts["varied"] == "verdict.method"
    assert facts["evidence items"] == "3"
    assert facts["samples"] == "96 (48 under another author's rubric)"
    assert facts["scored"] == f"{100 * (frame['status'] == 'scored').mean():.0f} %"
    # Equal verdicts of both methods share a probe.
    probes = frame.loc[frame["status"] == "scored", "probe_call_id"].nunique()
    assert facts["probes"] == str(probes)
    # 3 views; 4 rubrics, each criticised; 96 verdicts; probes.
    assert facts["calls paid"] == str(3 + 4 + 4 + 96 + probes)
    assert facts["cost"] == "$0"
    page = Page(whole.html)
    assert all(value in page.words for value in facts.values())


def test_a_summary_on_its_own_prints_what_the_whole_report_does(
    whole: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    with Lab.open(whole.url) as lab:
        brief = lab.reports.build("small", summary_only=True)
    assert [question.title for question in brief.questions] == [reports.EXPECTED]
    printed = []
    for report in (brief, whole.report):
        print_summary(report)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_its_tables_are_on_the_page_each_under_a_question_that_it_answers(plain: Ran) -> None:
    page = Page(plain.html)
    assert page.tables.keys() == {table.title for table in plain.report.tables}
    assert {"Judges", "Differences between judges", "Cost"} <= page.tables.keys()
    judges = {str(name).removeprefix("sim:") for name in plain.samples[JUDGE].unique()}
    assert {*page.column("Judges", "setup")} == judges
    calls = dict(zip(page.column("Cost", "stage"), page.column("Cost", "calls"), strict=False))
    assert calls["neutralizer"] == "3" and calls["critic"] == "2"
    assert "Swap sensitivity" not in page.tables, "there are no swaps"
    words = plain.html
    for question in plain.report.questions:
        for section in question.sections:
            for one in section.tables:
                above = words.index(f"<h2>{escape(question.title)}</h2>")
                assert above < words.index(f'aria-label="{escape(one.title)}"')


PROTOCOL_WORDS = ("belief", "entrench", "polari", "dempster", "plausib", "hypothes", "validity")


def test_an_ordinary_page_has_at_most_twelve_tables_and_nothing_of_the_protocol() -> None:
    chances: dict[str, Chances] = {
        "a": [0.6, 0.4],
        "b": [0.4, 0.6],
        "c": {"1": 0.8, "abstain": 0.2},
    }
    parts = [
        draw_verdicts(chances, items=30, n_stages=2, truth=2).assign(**{"verdict.output": output})
        for output in ("suffix", "json")
    ]
    frame = pd.concat(parts, ignore_index=True).assign(protocol="", usd=0.01)
    raters = [("", item, rater, 1 + item % 2) for item in range(30) for rater in "uvw"]
    people = pd.DataFrame(raters, columns=["tag", "evidence", "rater", "stage"])
    usage = pd.DataFrame(
        [("scorer", "a", 90, 10, 10, 0.9, False)],
        columns=["stage", "model", "calls", "input_tokens", "output_tokens", "usd", "imported"],
    )
    report = build_report("x", frame, usage, people=people)
    titles = [one.title for one in report.tables]
    assert 8 <= len(titles) <= 12 and len({*titles}) == len(titles)
    text = " ".join([*Page(report.html()).words, report.markdown()]).lower()
    shown = text.split("about the data")[0]
    assert not [word for word in PROTOCOL_WORDS if word in shown and word != "hypothes"]


def test_further_tables_are_computed_for_those_who_ask_for_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def more(given: ReportInput) -> Section | None:
        asked.append("more")
        return Section("More", "", (Table("Raw counts", "", pd.DataFrame({"n": [3]})),))

    def page(given: ReportInput) -> Section | None:
        return Section(
            "First", "", (Table("Samples", "", pd.DataFrame({"n": [len(given.frame)]})),)
        )

    monkeypatch.setattr(reports, "QUESTIONS", {"Why?": (page,)})
    monkeypatch.setattr(reports, "APPENDIX", {"Raw counts": more, "Empty": lambda given: None})
    report = build_report("listed", draw_verdicts({"a": [1.0, 0, 0, 0]}), None)
    report.html(), report.markdown(), digest(report), as_json(report)
    assert asked == [], "neither the page nor its numbers pay for it"
    assert report.further_tables == ("Raw counts", "Empty")
    assert report.table("raw")["n"].tolist() == [3] and report.table("raw counts")[
        "n"
    ].tolist() == [3]
    assert report.table("empty").empty
    assert asked == ["more"], "it is computed once"
    names = [name for name, _ in report.files()]
    assert "tables/raw-counts.csv" in names and "tables/samples.csv" in names
    assert "tables/empty.csv" not in names


def test_what_programs_read_has_numbers_and_null(tmp_path: Path) -> None:
    frame = known_answers_of({"good": 27, "poor": 9})
    report = build_report("x", frame, None)
    whole = json.loads(json.dumps(as_json(report), allow_nan=False))
    assert whole["sentence"] == report.summary.sentence
    assert whole["choice"]["setup"] == "good"
    assert whole["choice"]["quality"]["n"] == 30
    [best, worse] = whole["differences"]
    assert (best["setup"], best["difference"]) == ("good", None)
    assert worse["standing"] == "worse"
    assert worse["difference"]["value"] == pytest.approx(-18 / 30)
    tables = {table["title"]: table for table in whole["tables"]}
    assert tables.keys() == {table.title for table in report.tables}
    assert {table["question"] for table in tables.values()} <= {q.title for q in report.questions}
    rows = {row["setup"]: row for row in tables["Judges"]["rows"]}
    assert rows["good"]["exact"] == pytest.approx(0.9) and rows["poor"]["exact_n"] == 30


def test_a_digest_fits_and_names_the_choice_and_the_differences() -> None:
    frame = known_answers_of({f"judge-{n}-of-a-provider": 30 - n for n in range(12)})
    brief = digest(build_report("x", frame, None))
    assert len(json.dumps(brief)) <= SIZE
    assert brief["choice"]["setup"] == "judge-0-of-a-provider"
    columns, first = brief["judges"]["columns"], brief["judges"]["rows"][0]
    row = dict(zip(columns, first, strict=True))
    assert row["setup"] == "judge-0-of-a-provider" and row["exact"] == 1.0
    assert brief["judges"]["of"] == 12


def test_every_chart_is_drawn_once(whole: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    titles = [chart.title for chart in whole.report.charts]
    assert {"Stated expert agreement", "Own and rivals' rubrics"} <= set(titles)
    assert len(titles) == len(set(titles))
    closed = [question for question in whole.report.questions if question.folded]
    only_files = sum(len(part.charts) for question in closed for part in question.sections)
    assert 0 < only_files == len(titles) - whole.html.count("<figure ")
    rendered: list[Any] = []

    def svg(chart: Any) -> str:
        rendered.append(chart)
        return "<svg></svg>"

    monkeypatch.setattr(figures, "svg", svg)
    [chart] = [
        replace(one) for one in whole.report.charts if one.title == "Stated expert agreement"
    ]
    questions = (Question("One", (Section("One", "", charts=(chart,)),)),)
    one = replace(whole.report, questions=questions, appendix=None)
    assert {"figures/stated-expert-agreement.svg", "report.html"} <= {
        name for name, _ in one.files()
    }
    assert len(rendered) == 1, "for the page and for its file"


def test_a_report_is_the_same_each_time(plain: Ran) -> None:
    with Lab.open(plain.url) as lab:
        assert lab.reports.build("small").html() == plain.html


def test_sections_with_data_are_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def second(given: ReportInput) -> Section | None:
        return Section("Second", f"{len(given.frame)} samples")

    def first(given: ReportInput) -> Section | None:
        return Section("First", "", (Table("Samples", "", given.frame),))

    def empty(given: ReportInput) -> Section | None:
        return None

    monkeypatch.setattr(reports, "QUESTIONS", {"Why?": (first, empty), "How?": (second,)})
    report = build_report("listed", draw_verdicts({"a": [1.0, 0, 0, 0]}), None)
    assert [question.title for question in report.questions] == ["Why?", "How?"]
    assert [section.title for section in report.sections] == ["First", "Second"]
    assert report.sections[1].lead == "60 samples"


def test_a_verdict_that_two_experiments_share_counts_once() -> None:
    rows = [("1", 1), ("1", 2), ("", 3), ("2", 4), ("2", 4), ("2", 4)]
    frame = samples(
        *({"stages": s, "call_id": n, "tag": str(k)} for k, (s, n) in enumerate(rows)),
    )
    assert scored_share(frame) == pytest.approx(3 / 4)


def test_items_that_share_a_title_stay_apart() -> None:
    rows = [{"evidence": item, "stages": str(item), "evidence_title": "News"} for item in (1, 2)]
    section = verdicts.chosen_stages(given(samples(*rows)))
    assert section is not None
    [chart] = [one.chart for one in section.charts if one.title == "Item by item"]
    [cells] = chart.to_dict()["datasets"].values()
    assert {cell["item"] for cell in cells} == {"News (1)", "News (2)"}


@pytest.fixture(scope="module")
def unreadable_judge() -> ReportInput:
    """Twelve items by a judge, and by one that gave two readable verdicts, under two methods."""
    rows = [
        {
            JUDGE: judge,
            "evidence": item,
            "evidence_title": f"item {item}",
            "verdict.method": method,
            "stages": "123"[item % 3] if judge == "b" else {0: "1", 1: "4"}.get(item, ""),
        }
        for judge, method, item in itertools.product("ab", ("single", "subset"), range(12))
    ]
    for row in rows:
        if row[JUDGE] == "a" and (row["verdict.method"] == "single") != (row["evidence"] == 1):
            row["stages"] = ""
        row["status"] = "scored" if row["stages"] else "parse_failed"
    return given(samples(*rows))


def test_effects_on_the_judges_that_could_be_read_are_in_the_lead(
    unreadable_judge: ReportInput,
) -> None:
    effects = table(verdicts.axis_effects(unreadable_judge), "Effects of the axes")
    stages = effects.query("endpoint == 'stage'")
    assert stages["value"].notna().tolist() == [judge == "b" for judge in stages["judge"]]
    section = verdicts.choices_and_verdicts(unreadable_judge)
    assert section is not None
    assert section.lead == "The only contrast has no clear effect (q < 0.05)."


def test_the_grid_of_items_shows_the_first_variant_whoever_scored_first(
    unreadable_judge: ReportInput,
) -> None:
    section = verdicts.chosen_stages(unreadable_judge)
    assert section is not None
    [chart] = [one for one in section.charts if one.title == "Item by item"]
    finding = chart.kind.finding(chart.frame)
    assert finding == "Judges disagree most on “item 1”: 0.33 (b) to 1.00 (a)"
    assert "verdict.method=single" in json.dumps(chart.chart.to_dict())


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ("1", "a for label A on all, 0.67 above an equal share ["),
        ("12", "a against label C on all, 0.33 below an equal share ["),
    ],
)
def test_the_lead_on_preferences_says_on_how_many_items_and_in_which_direction(
    stages: str, expected: str
) -> None:
    shown = itertools.cycle(("B=2 A=1 C=3", "A=1 C=3 B=2", "C=3 B=2 A=1"))
    rows = [
        {"evidence": item, "stages": stages[item % len(stages)], "display": next(shown)}
        for item in range(6)
    ]
    section = verdicts.display_biases(given(samples(*rows, n_stages=3)))
    assert section is not None and expected in section.lead
    assert "], items: 6; the largest of" in section.lead


def test_a_report_on_one_tag_covers_that_experiment_alone(
    plain: Ran, only_sections: OnlySections
) -> None:
    only_sections()
    with Lab.open(plain.url) as lab:
        report = lab.reports.build("small/fascism/here/sim:strict")
    assert report.facts["experiments"] == "1" and report.facts["judges"] == "sim:strict"
    assert report.facts["samples"] == "6"


def test_warnings_are_on_the_page(plain: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    warned = replace(plain.report, warnings=("1 of 3 & more",), questions=())
    assert "1 of 3 & more" in Page(warned.html()).words
    monkeypatch.setattr(reports, "QUESTIONS", {})
    built = build_report("one", draw_verdicts({"a": [1.0, 0, 0, 0]}), NO_USAGE, warnings=("a, b",))
    assert built.warnings == ("a, b",)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_report_is_printed_on_one_screen(
    plain: Ran, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    display.console.cache_clear()
    if width == 80:
        lines = text_of(capsys, "--db", plain.url, "report", "small").splitlines()
    else:
        print_summary(plain.report)
        lines = [*capsys.readouterr().out.splitlines(), "where the whole report is"]
    display.console.cache_clear()
    assert len(lines) <= 40 and max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert all(words in text for words in ("simulated", "Accuracy unknown", "H1 ", "dose-response"))
    assert not re.search(r"\de[-+]\d", text)


# --- simulated or not ----------------------------------------------------------------------------


def test_a_report_says_at_both_ends_that_judges_were_simulated(
    plain: Ran, capsys: pytest.CaptureFixture[str], only_sections: OnlySections
) -> None:
    only_sections(verdicts.response_outcomes)
    report, html = plain.report, plain.html
    assert "simulated" in report.banner
    first, last = html.find(report.banner), html.rfind(report.banner)
    about = html.index('<dl class="about">')
    assert -1 < first < html.rindex("</table>") < about < last
    printed = text_of(capsys, "--db", plain.url, "report", "small", "--full")
    words = " ".join(printed.split())  # on as many lines as the terminal needs
    assert words.startswith(report.banner) and report.banner in words[-300:]
    parsed = json.loads(text_of(capsys, "--db", plain.url, "report", "small", "--json"))
    assert parsed["banner"] == report.banner


def test_what_a_model_reports_decides_whether_it_was_simulated(
    plain: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "QUESTIONS", {})
    frame = plain.samples
    strict = frame[JUDGE] == "sim:strict"
    hosted = frame.assign(**{JUDGE: "openai:gpt-5.2", "reported_model": "gpt-5.2-2025-12-11"})
    assert build_report("small", hosted, NO_USAGE).banner == ""
    # A judge behind another name whose responses come from a simulated model is simulated.
    posing = hosted.assign(reported_model="sim:strict")
    assert "All judges were simulated" in build_report("small", posing, NO_USAGE).banner
    unanswered = frame.assign(reported_model=None)
    assert "All judges were simulated" in build_report("small", unanswered, NO_USAGE).banner
    mixed = frame.assign(reported_model=frame["reported_model"].where(strict, "gpt-5.2"))
    banner = build_report("small", mixed, NO_USAGE).banner
    assert "Some judges were simulated" in banner
    assert "sim:strict" in banner and "gpt-5.2" not in banner


# --- undefined values ----------------------------------------------------------------------------


def test_an_undefined_value_is_a_dash_and_null(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], only_sections: OnlySections
) -> None:
    frame = samples({"stages": "2", JUDGE: "sim:only"})
    only_sections(verdicts.chosen_stages)
    page = Page(build_report("one", frame, NO_USAGE).html())
    assert page.column("Expected stage", "low") == page.column("Expected stage", "high") == ["–"]
    assert page.column("Expected stage", "items") == ["1"]
    assert "nan" not in " ".join(page.words).lower().split()
    frame.to_csv(tmp_path / "one.csv", index=False)
    parsed = json.loads(text_of(capsys, "report", "--from", str(tmp_path / "one.csv"), "--json"))
    [stage] = [one for one in parsed["tables"] if one["name"] == "expected-stage"]
    assert stage["rows"][0]["low"] is None and stage["rows"][0]["mean"] is not None


def test_an_unknown_cost_is_not_shown_as_zero(plain: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "QUESTIONS", {"Cost?": [cost]})
    report = build_report("small", plain.samples, plain.usage.assign(usd=None))
    assert "$0" not in report.facts["cost"]
    page = Page(report.html())
    assert {*page.column("Cost", "cost")} == {"–"}
    assert any("for a price that is not known" in word for word in page.words)


def test_a_study_without_a_single_score_still_reports(lab: Lab, write_study: Write) -> None:
    faults = {"abstain": "abstained", "refuse": "refused", "garble": "parse_failed"}
    faults["fail"] = "provider_error"
    (Path(lab.store.database.file or "").parent / "vague.jsonl").write_text(
        '{"text": "The committee met on Tuesday."}'
    )
    pool = {"here": {"files": "vague.jsonl", "window": {"country": "Valdoria"}}}
    judges = [f"sim:judge?{fault}=1" for fault in faults]
    report = run(lab, write_study(evidence=pool, judges=judges, tolerance=1.0))
    assert report.facts["scored"] == "0 %" and "probes" not in report.facts
    assert "All judges were simulated" in report.banner, "though some never answered"
    statuses = report.table("statuses").set_index(JUDGE)
    for fault, status in faults.items():
        assert statuses.loc[f"sim:judge?{fault}=1", status] == 1
    titles = {table.title for table in report.tables}
    assert not {"Differences between judges", "Choices and verdicts", "Biases"} & titles
    assert report.table("expected stage").empty
    assert "100 % of the verdicts have no score." in report_leads(report, "Statuses")


def report_leads(report: Report, title: str) -> str:
    """The lead of the section that has a table of the appendix."""
    assert report.appendix is not None
    section = report.appendix.sections[title](report.appendix.given)
    assert section is not None
    return section.lead


def test_a_study_without_samples_is_refused(lab: Lab, write_study: Write) -> None:
    lab.runs.run(write_study(), workflows=["rubric"])
    with pytest.raises(DesignError, match="small has no samples yet; run it first"):
        lab.reports.build("small")


def test_an_unknown_study_is_refused(lab: Lab) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        lab.reports.build("nowhere")


# --- rubrics -------------------------------------------------------------------------------------


def test_nominal_options_have_no_expected_stage() -> None:
    frame = given(draw_verdicts(PANEL, rubric_kind="nominal"))
    section = verdicts.chosen_stages(frame)
    assert section is not None
    assert [one.title for one in section.tables] == ["Endpoints"]
    assert [one.title for one in section.charts] == ["Distribution of verdicts"]
    polarization = table(disagreement.disagreement(frame), "Polarization")
    assert polarization["items"].tolist() == [12], "P needs no order"


def test_polarization_mentions_own_rubrics_only_if_judges_used_them() -> None:
    def note(frame: pd.DataFrame) -> str:
        section = disagreement.disagreement(given(frame))
        assert section is not None
        return next(one.note for one in section.tables if one.title == "Polarization")

    shared = draw_verdicts(PANEL)
    assert "own rubric" not in note(shared.assign(rubric=1, rubric_author="sim:third"))
    assert "own rubric" in note(shared.assign(rubric=shared[JUDGE], rubric_author=shared[JUDGE]))


# --- the page ------------------------------------------------------------------------------------


def test_the_page_loads_nothing_from_elsewhere(whole: Ran) -> None:
    html, page = whole.html, Page(whole.html)
    fetching = {"script", "link", "img", "iframe", "object", "embed", "image", "use", "base"}
    assert not fetching & {tag for tag, _ in page.elements}
    assert not [a for _, a in page.elements if {"src", "xlink:href", "srcset"} & a.keys()]
    links = [str(a["href"]) for _, a in page.elements if "href" in a]
    assert links and all(link.startswith("#") for link in links), "to places on the page"
    assert "@import" not in html
    targets = re.findall(r"url\(['\"]?([^)]*)", html)
    assert all(target.startswith(("#", "data:font/woff2;base64,")) for target in targets)
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"\w+://[^\s\"'<>)]+", html)) <= namespaces
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)), "figures do not share ids"


def test_names_from_a_study_are_escaped_on_the_page_and_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], only_sections: OnlySections
) -> None:
    title, country = "<script>alert('title')</script>", "<img src=x onerror=alert(2)>"
    concepts = ("<b onclick=alert(1)>power</b>", "[red]power[/red]", "power [/closed]")
    frame = pd.concat(
        [
            draw_verdicts(
                {"a": EVEN, "b": EVEN},
                items=2,
                replicates=2,
                concept=concept,
                country=country,
                probe=0.4,
            )
            for concept in concepts
        ],
        ignore_index=True,
    ).assign(evidence_title=title)
    html = build_report("names", frame, NO_USAGE).html()
    page = Page(html)
    assert not {"script", "img", "b"} & {tag for tag, _ in page.elements}
    assert not [name for _, a in page.elements for name in a if name.startswith("on")]
    assert f"{concepts[0]} ({country})" in page.words, "it is shown as it was written"
    assert escape(concepts[0], quote=False) in html
    frame.to_csv(tmp_path / "names.csv", index=False)
    only_sections(verdicts.response_outcomes, verdicts.chosen_stages, findings.limitations)
    printed = text_of(capsys, "report", "--from", str(tmp_path / "names.csv"), "--full")
    assert all(concept in printed for concept in concepts)


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


@pytest.mark.slow
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_a_phone_and_a_desktop_and_its_figures_are_drawn(
    whole: Ran, tmp_path: Path, width: int
) -> None:
    seen = measured(whole.html, width, tmp_path)
    assert seen["window"] == width, "the page is laid out at the width that is tested"
    assert seen["page"] <= width, "nothing overflows"
    assert seen["banners"] == 2
    assert len(seen["figures"]) == whole.html.count("<figure ") >= 1
    for figure in seen["figures"]:
        assert figure["area"] > 10_000 and figure["marks"] >= 2
        assert figure["cut"] == [], "no text lies outside its figure"


def test_the_effect_of_a_swap_is_shown_beside_the_judges_own_rubric(whole: Ran) -> None:
    shown = table(whole.report, "Expected stage by rubric author")
    frame = tidy(whole.samples)
    scored = frame[frame["status"] == "scored"]
    chosen = scored["stages"].str.split().map(lambda part: sum(map(int, part)) / len(part))
    stage = (chosen - 1) / (scored["n_stages"] - 1)
    for row in shown.to_dict("records"):
        mine = scored[["task", "variant", JUDGE]] == [row["task"], row["variant"], row[JUDGE]]
        part = mine.all(axis=1) & (scored["is_swap"] == (row["rubric used"] == "another's"))
        assert row["mean"] == pytest.approx(stage[part].groupby(scored["evidence"]).mean().mean())
    assert len(shown) == 16


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


def test_views_are_counted_by_editor_with_the_reasons_to_check_them() -> None:
    views = [
        checked("sim:a", ratio=0.2),
        checked("sim:b", ratio=1.5, long=True),
        checked("sim:a", ratio=0.4, numbers="7 8", names="Oslo"),
        checked("sim:a", ratio=0.9, long=True, numbers="7"),
        failed("sim:a", "refused"),
        failed("sim:c", "truncated"),
    ]
    section = rubrics_and_evidence(given(draw_verdicts({"a": EVEN}), views=views))
    shown = table(section, "Views")
    assert list(shown) == [
        "editor", "views", "failed", "flagged", "too long", "numbers", "names", "length ratio",
    ]  # fmt: skip
    assert shown.iloc[:, :-1].to_numpy().tolist() == [
        ["sim:a", 4, 1, 2, 1, 2, 1],
        ["sim:b", 1, 0, 1, 1, 0, 0],
        ["sim:c", 1, 1, 0, 0, 0, 0],
    ]
    assert shown["length ratio"].tolist() == pytest.approx([0.5, 1.5, float("nan")], nan_ok=True)
    assert rubrics_and_evidence(given(draw_verdicts({"a": EVEN}))) is None, "nothing to show"


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


def test_views_that_experiments_share_are_in_the_report_once(
    lab: Lab, write_study: Write, only_sections: OnlySections
) -> None:
    only_sections(rubrics_and_evidence, cost)
    replace_engine(lab, Engine(lab.store, Editor(lambda request: "")))
    study = write_study(vary={"verdict.method": ["single", "subset"]}, tolerance=1.0)
    [row] = table(run(lab, study), "Views").to_numpy().tolist()
    assert row[:-1] == ["sim:editor", 3, 1, 1, 0, 1, 1]


def test_views_of_one_editor_under_two_wordings_are_counted_each(
    lab: Lab, write_study: Write, only_sections: OnlySections
) -> None:
    only_sections(rubrics_and_evidence, cost)
    vary = {"prompt.slots.neutralizer.persona": ["a clerk", "a court reporter"]}
    report = run(lab, write_study(vary=vary, judges=["sim:strict"]))
    calls = table(report, "Cost").set_index("stage")["calls"]
    assert calls["neutralizer"] == 6
    assert table(report, "Views")["views"].tolist() == [6]


# --- pairs ---------------------------------------------------------------------------------------

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


def pair_study(folder: Path, **changes: Any) -> Path:
    """Writes a study of five pairs for one judge."""
    rows = [
        {"title": f"P{n}", "text": f"Case {n}?", "responses": [f"one of {n}", f"other of {n}"]}
        | ({"truth": truth} if truth else {})
        for n, (truth, _, _) in enumerate(DECIDED)
    ]
    stages = [{"label": side, "criteria": ["by its answer"]} for side in SIDES]
    options = {"kind": "nominal", "stages": stages}
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "options.json").write_text(json.dumps(options))
    task = {"type": "benchmark", "concept": "winner", "evidence": "cases"}
    usual = {
        "samples": 1,
        "evidence": {"cases": {"files": "pairs.jsonl"}},
        "tasks": [{**task, "rubric": "options.json"}],
        "judges": ["sim:strict"],
        "design": None,
        "probe": False,
    }
    return study_file(folder, **{**usual, **changes})


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The samples of the pairs, three replicates, shown in both orders and in each one."""
    folder = tmp_path_factory.mktemp("pairs")
    vary = {"presentation.pair_order": ["both", "given", "swapped"]}
    with Lab.open(blank(folder / "lab.db")) as lab:
        replace_engine(lab, Engine(lab.store, Scripted(decide)))
        lab.runs.run(pair_study(folder, vary=vary, samples=3))
        return lab.experiments.samples("small")


def test_pairs_are_scored_by_the_published_rule(pairs: pd.DataFrame) -> None:
    """Three of four are right; Clopper and Pearson's interval for that is 0.194 to 0.994.

    Of nine decisions on five pairs, five name the response shown first (twice that of the second
    pair), three the second and one is a tie: (5 - 3) / 9. Replicates are one item.
    """
    rows = pair_table(tidy(pairs), CELL)
    by_order = {row["variant"].rpartition("=")[2]: row for row in rows.to_dict("records")}
    both = by_order["both"]
    assert both["n"] == 4 and both["accuracy"] == 0.75
    assert (both["low"], both["high"]) == pytest.approx((0.194, 0.994), abs=5e-4)
    assert (both["both_correct"], both["inconsistent"], both["nulls"]) == (0.25, 0.75, 3)
    assert both["position_bias"] == pytest.approx(2 / 9)
    # What compares the orders is undefined if one was shown.
    for order, accuracy, nulls in (("given", 0.5, 3), ("swapped", 0.75, 0)):
        row = by_order[order]
        assert (row["accuracy"], row["nulls"]) == (accuracy, nulls)
        assert pd.isna(
            [row[name] for name in ("both_correct", "inconsistent", "position_bias")]
        ).all()


def test_a_report_on_pairs_shows_no_scale_and_one_accuracy(pairs: pd.DataFrame) -> None:
    both = pairs[(pairs["presentation.pair_order"] == "both") & (pairs["replicate"] == 0)]
    report = build_report("pairs", both, None)
    titles = {one.title for one in report.tables}
    assert not {"Choices and verdicts", "Differences between judges"} & titles
    assert report.table("expected stage").empty and report.table("views").empty
    statuses = report.table("statuses")
    assert statuses[["n", "parse_failed"]].to_numpy().tolist() == [[10, 0.1]]
    assert report.facts["evidence items"] == "5" and report.facts["samples"] == "10"
    assert report.judge_table is not None
    [row] = report.judge_table["rows"]
    assert row["truth"] is not None
    accuracy = f"{round(100 * row['truth']['value'])} %"
    words = report.markdown()
    assert {*re.findall(r"accuracy[^%|.]*?(\d+ %)", words)} <= {accuracy}
    unknown = build_report("pairs", both.assign(truth=None), None)
    assert "Verdicts and labels" not in {one.title for one in unknown.tables}


@pytest.mark.slow
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_of_pairs_and_views_fits_a_phone_and_a_desktop(
    pairs: pd.DataFrame, tmp_path: Path, width: int
) -> None:
    views = [checked("openrouter:a-provider/an-editor-of-a-long-name", numbers="7")]
    report = build_report("small", pairs, NO_USAGE, views=views)
    assert "Biases" in {one.title for one in report.tables} and len(report.table("views")) == 1
    seen = measured(report.html(), width, tmp_path)
    assert seen["window"] == width and seen["page"] <= width
    assert len(seen["figures"]) == len(report.charts) > 0
    for figure in seen["figures"]:
        assert figure["marks"] >= 2 and figure["cut"] == []


def test_pairs_and_texts_in_one_study_have_one_accuracy_and_texts_alone_a_stage(
    lab: Lab, tmp_path: Path, only_sections: OnlySections
) -> None:
    only_sections(which_judge)
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
    report = run(lab, pair_study(tmp_path, tasks=tasks, evidence=evidence))
    [row] = report.table("judges").to_dict("records")
    # Of four pairs 1 + 0 + 3/4 + 1/2 (a tie counts one half where no label is one), and two texts.
    assert row["exact_n"] == 6
    assert report.table("expected stage")["task"].tolist() == ["tone (benchmark, texts)"]


# --- verdicts of any kind ------------------------------------------------------------------------

EVEN: Chances = [0.25, 0.25, 0.25, 0.25]
SHY: Chances = {"2": 0.5, "abstain": 0.5}
PANEL: dict[str, Chances] = {"a": EVEN, "b": [0.7, 0.3, 0, 0], "c": {"1 2": 0.6, "3": 0.4}}


def varied(concept: str = "", **levels: Any) -> pd.DataFrame:
    """The panel, with knobs at these levels."""
    return draw_verdicts(PANEL, concept=concept, **{"verdict.output": "suffix"} | levels)


ODD: dict[str, pd.DataFrame] = {
    "one judge": draw_verdicts({"a": EVEN}),
    "one item": draw_verdicts(PANEL, items=1),
    "one replicate": draw_verdicts(PANEL, replicates=1),
    "one of everything": draw_verdicts({"a": EVEN}, items=1, replicates=1),
    "no common item": pd.concat([draw_verdicts({"a": EVEN}), draw_verdicts({"b": EVEN}, first=50)]),
    "nobody scores": draw_verdicts({"a": {"abstain": 1.0}, "b": {"abstain": 1.0}}),
    "one judge never scores": draw_verdicts({**PANEL, "d": {"abstain": 1.0}}),
    "all alike and certain": draw_verdicts({"a": [0, 1, 0, 0], "b": [0, 1, 0, 0]}),
    "many abstain": draw_verdicts({"a": SHY, "b": SHY}, probe=0.9),
    "two stages": draw_verdicts({"a": [0.5, 0.5], "b": [0.9, 0.1]}, n_stages=2),
    "26 stages": draw_verdicts({"a": [1 / 26] * 26, "b": {"1 26": 0.5, "13": 0.5}}, n_stages=26),
    "two scales": pd.concat(
        [
            draw_verdicts(PANEL),
            draw_verdicts({"a": [1.0, 0, 0], "b": [0.5, 0, 0.5]}, n_stages=3, first=20, rubric=2),
        ]
    ),
    "options without order": draw_verdicts(PANEL, rubric_kind="nominal", truth=2, probe=0.5),
    "probes alone": draw_verdicts({"a": EVEN}, probe=0.5),
    "certain probes": draw_verdicts(PANEL, probe=1.0),
    "a truth that is a label": draw_verdicts(PANEL, truth="mild"),
    "a knob in one task only": pd.concat(
        [varied("x"), varied("x", **{"verdict.output": "json"}), varied("y")]
    ),
    "two series": pd.concat(
        [draw_verdicts(PANEL, series="1"), draw_verdicts(PANEL, series="2", seed=3)]
    ),
    "swaps alone": draw_verdicts(PANEL, is_swap=True, rubric_author="z", probe=0.4),
    "a control alone": draw_verdicts(PANEL, task_type="control", reference=0.4, dose=0),
}


@pytest.mark.slow
def test_a_report_is_built_from_any_samples_and_its_figures_are_drawn() -> None:
    for name, frame in ODD.items():
        report = build_report(name, frame, NO_USAGE)
        text = report.markdown()
        setups = report.judge_table["rows"] if report.judge_table else []
        assert ("#### Judges" in text) == bool(setups), name
        assert not {"nan", "inf", "nat"} & set(text.lower().split()), name
        assert all(section.lead for section in report.sections), name
        page = Page(report.html())
        assert len(page.column("Judges", "setup") if setups else []) == len(setups), name
        assert all(len(one.frame) for one in report.every_table()), name


def test_cost_per_verdict_is_drawn_against_accuracy(only_sections: OnlySections) -> None:
    only_sections(price_and_quality)
    chances: dict[str, Chances] = {"cheap": [0.5, 0.5, 0, 0], "dear": [0.1, 0.9, 0, 0]}
    price = {"cheap": 0.001, "dear": 0.02}
    frame = draw_verdicts(chances, items=30, truth=2)
    report = build_report("priced", frame.assign(usd=frame[JUDGE].map(price)), None)
    [chart] = [one.chart for one in report.charts if one.title == "Price against quality"]
    [rows] = chart.to_dict()["datasets"].values()
    right = (frame["stages"] == "2").groupby(frame[JUDGE]).mean()
    for row in rows:
        assert row["usd"] == pytest.approx(1000 * price[row["setup"]])
        assert row["quality"] == pytest.approx(right[row["setup"]])
    assert {row["setup"] for row in rows} == set(price)
    free = build_report("unpriced", frame, None)
    assert "Price against quality" not in {one.title for one in free.charts}


# --- leads and limitations -----------------------------------------------------------------------


def limits_of(frame: pd.DataFrame) -> list[str]:
    section = findings.limitations(given(frame))
    return [] if section is None else [*section.lines]


def own_rubrics(draws: int) -> pd.DataFrame:
    """The panel under rubrics that each judge wrote, several times."""
    parts = []
    for draw in range(draws):
        part = draw_verdicts(PANEL)
        named = part[JUDGE] + str(draw)
        parts.append(part.assign(rubric_author=part[JUDGE], rubric_draw=draw, rubric=named))
    return pd.concat(parts)


LIMITS = {
    "one judge: ": draw_verdicts({"a": EVEN}),
    "no repeats: ": draw_verdicts(PANEL, replicates=1),
    "1 evidence item: ": draw_verdicts(PANEL, items=1),
    "no verdict is scored: ": draw_verdicts({"a": {"abstain": 1.0}, "b": {"abstain": 1.0}}),
    " % of the verdicts abstain or cannot be read: ": draw_verdicts(
        {"a": {"2": 0.1, "abstain": 0.9}, "b": {"2": 0.1, "abstain": 0.9}}
    ),
    "mix the two; with 5 drawn per author, intervals cover": own_rubrics(draws=5),
    "mix the two; with 2 drawn per author, results hold for": own_rubrics(draws=2),
}


def test_limitations_come_from_the_data() -> None:
    usual = limits_of(draw_verdicts(PANEL, items=14))
    for text, frame in LIMITS.items():
        assert any(text in limit for limit in limits_of(frame)), text
        assert not any(text in limit for limit in usual), text


def test_limitations_name_what_varies_together() -> None:
    places = [
        ("fascism", "here", "X", "ecc"),
        ("democracy", "here", "X", "ecc"),
        ("turnout", "there", "Y", "control"),
    ]
    parts = [
        draw_verdicts(PANEL, items=2, concept=concept, pool=pool, country=country, task_type=kind)
        .assign(rubric="one for all")
        for concept, pool, country, kind in places
    ]  # fmt: skip
    assert confounded(tidy(parts[0])) == ()
    together, arms = confounded(tidy(pd.concat(parts)))
    assert together.startswith("pool and country vary together between tasks")
    assert arms.startswith("contested and control tasks have no concept, pool or country in common")


def test_one_verdict_per_cell_is_not_compared_with_chance() -> None:
    section = disagreement.disagreement(given(draw_verdicts(PANEL, replicates=1)))
    assert section is not None and "chance" not in section.lead
    found = table(section, "Polarization")
    assert found["p"].notna().all()
    assert found[["null", "above", "low", "high", "p_value"]].isna().all(axis=None)


def test_a_digest_warns_where_few_verdicts_are_scored(only_sections: OnlySections) -> None:
    only_sections()
    shy = {"stages": "", "status": "abstained"}
    few = samples({"stages": "1"}, *({"evidence": item, **shy} for item in range(2, 12)))
    [warning, *_] = digest(build_report("few", few, NO_USAGE))["warnings"]
    assert warning.startswith("only 9.1 % of the verdicts have a score")
    all_of_them = samples(*({"evidence": item, "stages": "1"} for item in range(4)))
    assert digest(build_report("all", all_of_them, NO_USAGE))["warnings"] == []


def known_answers_of(rights: Mapping[str, int], items: int = 30) -> pd.DataFrame:
    """Judges that are right on their first items only; the answer is 2 on even items, else 1."""
    return samples(
        *(
            {
                **{JUDGE: judge, "evidence": item, "replicate": 0, "call_id": n * items + item},
                **{"stages": str(1 + (item + (item < right)) % 2), "truth": 2 - item % 2},
                "n_stages": 2,
            }
            for n, (judge, right) in enumerate(rights.items())
            for item in range(items)
        )
    )


def test_a_report_begins_with_the_sentence_and_the_rows_of_the_judge_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "QUESTIONS", {"Which judge?": (which_judge,)})
    frame = known_answers_of({"good": 27, "poor": 9})
    report = build_report("x", frame, None)
    assert report.summary.sentence == judge_table(tidy(frame, source="x"))["sentence"]
    assert report.summary.sentence.startswith("Use good: balanced accuracy 90 % [")
    [judges] = [one.cells for one in report.tables if one.title == "Judges"]
    assert judges["setup"].tolist() == ["good", "poor"]
    assert judges["standing"].tolist()[1] == "worse"
    assert judges["accuracy"].str.split(" ").str[0].tolist() == ["90", "30"]
    words = Page(report.html()).words
    assert words.index(report.summary.sentence) < words.index("Which judge?")
    unknown = build_report("x", frame.assign(truth=None), None)
    assert unknown.summary.sentence.startswith("Accuracy unknown")
    [judges] = [one.cells for one in unknown.tables if one.title == "Judges"]
    assert "accuracy" not in judges, "nothing is right without an answer"


def cases_of(report: Report) -> list[Disagreement]:
    """The disputed items of a report."""
    return [case for section in report.sections for case in section.cases]


def test_a_report_quotes_the_ends_of_answers_where_judges_differ_most(
    only_sections: OnlySections,
) -> None:
    only_sections(most_disputed_items)
    frame = known_answers_of({"good": 4, "poor": 2}, items=4)
    texts = {2: "It is fine.\nVERDICT: B", 6: "word " * 100 + "It is bad.\nVERDICT: A"}

    silent = build_report("x", frame, None)
    assert set(texts) <= set(quoted_calls(silent))
    first, second = cases_of(with_quotes(silent, texts))
    assert (first.item, second.item) == ("2", "3")
    left, right = first.quotes
    assert (left.setup, left.verdict, left.text) == ("good", "stage 2 of 2", "It is fine.")
    assert (right.setup, right.verdict) == ("poor", "stage 1 of 2")
    assert right.text.startswith("… word") and right.text.endswith("It is bad.")
    assert len(right.text) < 300
    assert not cases_of(silent)[0].quotes[0].text
    named = build_report("x", frame.assign(stage_names="fail | pass"), None)
    assert [quote.verdict for quote in cases_of(named)[0].quotes] == ["pass", "fail"]
    agreed = known_answers_of({"good": 2, "poor": 2}, items=4)
    assert cases_of(build_report("x", agreed, None)) == []


def test_a_report_on_pairs_says_which_setups_prefer_a_place(only_sections: OnlySections) -> None:
    rows = [
        # One judge always takes the response shown first, the other always the first response.
        (judge, item, 0, "scored", stage, 3, 1, flipped, True, "nominal")
        for item in range(30)
        for judge, stages in (("leaning", "12"), ("steady", "11"))
        for flipped, stage in zip((False, True), stages, strict=True)
    ]
    names = ["judge.model", "evidence", "replicate", "status", "stages", "n_stages", "truth"]
    frame = pd.DataFrame(rows, columns=[*names, "flipped", "pair", "rubric_kind"])
    only_sections(biases)
    report = build_report("x", frame, None)
    [part] = report.sections
    assert part.lead.startswith("Clear, 1 of 2: leaning, for the response shown first (+100")
    rows_of = part.tables[0].frame.set_index("setup")["value"]
    assert rows_of.to_dict() == {"leaning": 1.0, "steady": 0.0}


def test_choices_are_told_in_words_and_in_the_deciding_measure(only_sections: OnlySections) -> None:
    only_sections(knob_effects)
    frames = [
        known_answers_of({"a": right, "b": right}).assign(**{"verdict.method": method})
        for method, right in (("single", 27), ("subset", 9))
    ]
    frame = pd.concat(frames, ignore_index=True).assign(call_id=None)
    report = build_report("x", frame, None)
    [line] = report.summary.choices
    assert line.startswith(
        "verdict.method subset instead of single lowers balanced accuracy: -60 [-"
    )
    assert line.endswith("] points, 30 items")
    [effects] = report.tables
    assert effects.frame["value"].tolist() == pytest.approx([-0.6])
    assert str(effects.cells.loc[0, "balanced accuracy, points"]).startswith("-60 [-")
    same = pd.concat([frames[0], frames[0].assign(**{"verdict.method": "subset"})])
    [line] = build_report("x", same.assign(call_id=None), None).summary.choices
    no_effect = (
        "verdict.method subset instead of single shows no clear effect on balanced accuracy: 0"
    )
    assert line.startswith(no_effect)


def test_tables_and_figures_are_found_by_a_part_of_their_title(
    only_sections: OnlySections,
) -> None:
    only_sections(which_judge, price_and_quality, verdicts.differences_between_judges)
    frame = known_answers_of({"good": 27, "poor": 9}).assign(usd=0.01)
    report = build_report("x", frame, None)
    assert report.table("judges")["setup"].tolist() == ["good", "poor"]
    assert report.table("differences")["judge"].tolist() == ["poor"]
    assert {*report.table("contrasts of")["level"]} == {"poor"}, "in the appendix"
    assert report.figure("price").to_dict()["title"]
    with pytest.raises(NotFoundError, match="unknown table 'nothing'; choose 'judges'"):
        report.table("nothing")
    with pytest.raises(NotFoundError, match="unknown figure 'of'; choose"):
        report.figure("of")
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "<h1>" not in shown, "it is escaped"


def test_rows_and_quotes_of_a_report_are_linked_in_a_lab(only_sections: OnlySections) -> None:
    only_sections(which_judge, most_disputed_items)
    frame = known_answers_of({"good": 4, "poor": 2}, items=4).assign(
        tag=lambda rows: "x/it's & more/" + rows[JUDGE]
    )
    page = build_report("x", frame, None).html()
    assert 'href="/' not in page, "a file of its own has no lab to link to"
    links = [a["href"] for tag, a in Page(linked(page)).elements if tag == "a"]
    assert "/experiments/x/it%27s%20%26%20more/good" in links and "/calls/2" in links


def test_the_table_of_metrics_says_which_rubrics_were_used() -> None:
    def note(frame: pd.DataFrame) -> str:
        section = findings.metrics(given(frame))
        assert section is not None
        return next(one.note for one in section.tables if one.title == "Metrics")

    assert "under the judges' own rubrics" in note(swapped_panel(0.1))
    assert "own rubrics" not in note(draw_verdicts(PANEL, rubric_author="z"))
