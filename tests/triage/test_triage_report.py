"""The contents of a report, and that no text of a model can break it."""

import re
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from judge_gym.errors import DesignError
from judge_gym.triage import (
    CLASSES,
    PriorReport,
    ReportedFailure,
    RunInfo,
    find_facts,
    lint_report,
    make_case,
    make_finding,
    read_report,
    report_path,
    split_results,
    without_rows,
    write_report,
)
from judge_gym.triage.markdown import code, fence, prose, table
from made_runs import RESULTS, RUN, SLUG, cases, failed, judge_verdicts, passed, source

FAULT, STRICT, AMBIGUOUS, GAP = CLASSES
ONE, TWO = "sim:one", "sim:two"
MARKDOWN = MarkdownIt("commonmark").enable("table")
NASTY = (
    "# Actions taken\n\n| a | b |\n| --- | --- |\n| MODEL_FAULT | 7 |\n```\n````\n"
    "--> <script>alert(1)</script> ![x](http://evil/x.png) [y](javascript:1) **5/7 (99 %)**"
)


def report(*, judges: tuple[str, ...] = (ONE, TWO), prior: str = "") -> str:
    earlier = [read_report(prior, "reports/a/b/00000000_2026-02-01.md")] if prior else []
    classes = {
        SLUG.path: ([FAULT], [FAULT]),
        "000-strings/002-initials": ([STRICT], [FAULT]),
        "001-collections/001-top-words": ([GAP], [GAP]),
        "001-collections/002-parse-dates": ([STRICT], [STRICT]),
    }
    found = [
        make_finding(
            one,
            judge_verdicts(
                one, {j: [v] for j, v in zip(judges, classes[one.result.path], strict=False)}
            ),
        )
        for one in cases(earlier)
    ]
    return write_report(RUN, split_results(RESULTS), found, date="2026-03-02", prior=earlier)


def headings(text: str) -> list[str]:
    tokens = MARKDOWN.parse(text)
    return [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]


def section(text: str, heading: str) -> str:
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


# --- the path ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "id", "expected"),
    [
        (
            "anthropic:claude-opus-4-6",
            "jn72t14aqq",
            "reports/anthropic/claude-opus-4-6/jn72t14a_D.md",
        ),
        ("openrouter:meta/llama 4", "12", "reports/openrouter/meta-llama-4/12_D.md"),
        ("../..:../../etc/passwd", "../../../x", "reports/unnamed/etc-passwd/unnamed_D.md"),
        ("ollama:llama3:8b", "r", "reports/ollama/llama3-8b/r_D.md"),
        ("bare", "r", "reports/unnamed/bare/r_D.md"),
    ],
)
def test_a_report_is_stored_by_provider_and_model(model: str, id: str, expected: str) -> None:
    run = RunInfo(id, model, "default", "s", "v", "2026-01-01")
    assert report_path(run, "2026-02-06") == expected.replace("D", "2026-02-06")


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=20))
def test_no_name_escapes_the_folder(model: str, id: str) -> None:
    path = report_path(RunInfo(id, model, "", "", "", ""), "2026-02-06")
    parts = path.split("/")
    assert (len(parts), parts[0]) == (4, "reports")
    assert all(re.fullmatch(r"[A-Za-z0-9][\w.-]*", part) for part in parts)


# --- contents ------------------------------------------------------------------------------------


def test_the_sections_are_in_order() -> None:
    level_two = [line[3:] for line in report().splitlines() if line.startswith("## ")]
    assert level_two == [
        "Run",
        "Inconclusive",
        "Earlier reports",
        "Failures by step",
        "Classification",
        "Each failure",
        "Patterns",
        "Conflict between judges",
        "Recommendations",
        "Proposed fixes",
        "Net impact",
        "Actions taken",
    ]


def test_the_counts_are_those_of_the_rows() -> None:
    text = report()
    for row in (
        "| Evals | 11 |",
        "| Passed | 5 |",
        "| Failed | 4 |",
        "| Inconclusive | 2 |",
        "| Pass rate | 55.6 % (5/9) |",
        "| `lint` | 2 |",
        "| `tests` | 2 |",
        "| MODEL_FAULT | 1 |",
        "| OVERLY_STRICT | 1 |",
        "| AMBIGUOUS_TASK | 0 |",
        "| KNOWN_GAP | 1 |",
        "| undecided | 1 |",
        "| Actionable (eval, rules or gap) | 2 |",
        "| Genuine model faults | 1 |",
        "| Undecided | 1 |",
    ):
        assert row in text, row
    assert "Pass rate without the actionable failures: 71.4 % (5/7)." in text
    assert section(text, "Actions taken").strip() == "None."
    assert lint_report(text) == []


def test_an_inconclusive_result_is_listed_and_not_analysed() -> None:
    text = report()
    assert "`002-files/003-download` | infrastructure" in section(text, "Inconclusive")
    assert "002-files" not in section(text, "Each failure")


def test_two_judges_are_shown_where_they_conflict() -> None:
    part = section(report(), "Conflict between judges")
    assert "different classes on 1 of 4 failures" in part
    first = part.split("| --- |")[-1].splitlines()[1]
    assert (
        "002-initials" in first and "OVERLY_STRICT 100 %" in first and "MODEL_FAULT 100 %" in first
    )
    assert "1.00" in first and "**yes**" in first


def test_one_judge_has_no_section_on_conflict() -> None:
    assert "Conflict between judges" not in report(judges=(ONE,))


def test_patterns_name_what_failures_share() -> None:
    part = section(report(), "Patterns")
    assert "rule `F401` | 2 | `000-strings/002-initials`, `001-collections/002-parse-dates`" in part
    assert "E501" not in part, "one failure is no pattern"
    assert "category `000-strings` (2 of its 4 conclusive results)" in part


def test_every_failure_has_one_recommendation() -> None:
    part = section(report(), "Recommendations")
    assert "Undecided, for a person to read: `000-strings/002-initials`." in part
    for heading, eval_name in (
        ("Eval improvements (1)", "001-top-words"),
        ("Lint and configuration (1)", "002-parse-dates"),
        ("Model-specific notes (0)", ""),
        ("No action needed (1)", "001-slugify"),
    ):
        below = part.partition(f"### {heading}\n")[2].partition("\n### ")[0]
        assert eval_name in below and below.strip()


def test_a_failing_reference_answer_is_the_first_recommendation() -> None:
    files = source(SLUG)
    facts = find_facts(SLUG, files, reference=failed(SLUG.path, "tests", "no"))
    one = make_case(SLUG, files, facts)
    found = make_finding(one, judge_verdicts(one, {ONE: [[FAULT]]}))
    text = write_report(RUN, split_results([SLUG]), [found], date="2026-03-02")
    assert "`000-strings/001-slugify`: the reference answer fails this grader at `tests`" in text


def test_an_unsupported_gap_is_marked() -> None:
    one = cases()[0]
    found = make_finding(one, judge_verdicts(one, {ONE: [[GAP]]}))
    text = write_report(RUN, split_results([SLUG]), [found], date="2026-03-02")
    assert "| KNOWN_GAP (unsupported) |" in text
    assert lint_report(text) == []


def test_the_report_of_a_run_without_failures() -> None:
    text = write_report(RUN, split_results([passed("a/b")]), [], date="2026-03-02")
    assert "Nothing failed." in text and "100.0 % (1/1)" in text
    assert lint_report(text) == []


def test_a_run_without_conclusive_results_has_no_pass_rate() -> None:
    text = write_report(RUN, split_results(RESULTS[-2:]), [], date="2026-03-02")
    assert "| Pass rate | none |" in text
    assert lint_report(text) == []


def test_findings_must_be_those_of_the_failures() -> None:
    with pytest.raises(DesignError, match="4 results failed, but the findings are on"):
        write_report(RUN, split_results(RESULTS), [], date="2026-03-02")


# --- earlier reports -----------------------------------------------------------------------------


def test_a_report_is_read_back() -> None:
    read = read_report(report(), "somewhere.md")
    assert (read.run, read.date, read.version) == (RUN.id, RUN.date, RUN.version)
    assert read.pass_rate == "55.6 % (5/9)"
    assert [(one.path, one.step, one.classification) for one in read.failures] == [
        ("000-strings/001-slugify", "tests", FAULT),
        ("000-strings/002-initials", "lint", "undecided"),
        ("001-collections/001-top-words", "tests", GAP),
        ("001-collections/002-parse-dates", "lint", STRICT),
    ]
    assert read.actions == ()


def test_an_earlier_report_is_compared() -> None:
    acted = report().replace("\nNone.\n", "\n- Dropped F401 from the lint rules.\n")
    acted = acted.replace(RUN.version, "older").replace(RUN.date, "2026-01-20")
    text = report(prior=acted)
    part = section(text, "Earlier reports")
    assert "| 4 | 4 |" in part, "failures then, failing again"
    assert part.count("Dropped F401") == 3, "two fail at that rule, and it is listed once"
    assert "| 2026-01-20 | changed | names none of this run |" in part
    unchanged = report(prior=acted.replace("older", RUN.version))
    assert "| 2026-01-20 | not changed | names none of this run |" in unchanged
    assert "the eval still fails" in text
    assert lint_report(text) == []


def test_a_report_that_quotes_earlier_ones_counts_its_own_failures() -> None:
    once = report()
    twice = report(prior=once)
    assert read_report(twice, "x.md").failures != ()
    assert read_report(twice, "x.md").failures == read_report(once, "x.md").failures


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("#|-`>*\n 1aA_:[]()<"), max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    """Whatever stands before or after a report's rows, or instead of them."""
    with suppress(DesignError):  # it carries no rows
        read_report(text, "x.md")
    ours = report()
    edited = f"{text}\n{ours}\n{text}"
    with suppress(DesignError):  # its fence is open, so that all of the report is quoted
        assert read_report(edited, "x.md").failures == read_report(ours, "x.md").failures
        lint_report(edited)


# --- texts of models -----------------------------------------------------------------------------


def hostile(text: str) -> str:
    """A report in which a model wrote the same text wherever it can write."""
    result = failed("a/b", "tests", text, output=text, files={"a.py": text, text[:40] or "x": text})
    files = source(result, task=text, gaps=text)
    one = make_case(result, files, find_facts(result, files, reference=passed("a/b")))
    quoted = f"REASONING: {text}\nMODEL CODE:\n``````\n{text}\n``````\nEXPECTED CODE:\n{text}"
    found = make_finding(one, judge_verdicts(one, {ONE: [[FAULT]], TWO: [[STRICT]]}, quoted))
    return write_report(RUN, split_results([result, passed("a/c")]), [found], date="2026-03-02")


@settings(deadline=None)
@given(
    st.text(max_size=60) | st.text(alphabet=st.sampled_from("`|#<>*_-\n []()!\\a1"), max_size=60)
)
def test_no_text_of_a_model_changes_the_structure(text: str) -> None:
    plain, written = hostile("harmless"), hostile(text)
    assert headings(written) == headings(plain)
    assert lint_report(written) == []
    assert "<!--" not in MARKDOWN.render(without_rows(written))
    assert len(read_report(written, "x.md").failures) == 1


def test_a_page_of_markup_stays_text() -> None:
    text = hostile(NASTY)
    html = MARKDOWN.render(text)
    assert "<script" not in html and "<img" not in html and "<a " not in html
    assert headings(text) == headings(hostile("harmless"))
    assert lint_report(text) == []


@settings(deadline=None)
@given(st.lists(st.lists(st.text(max_size=20), min_size=2, max_size=2), min_size=1, max_size=4))
def test_a_table_has_as_many_cells_as_it_was_given(rows: list[list[str]]) -> None:
    set_rows = [[prose(first), code(second)] for first, second in rows]
    html = MARKDOWN.render(table(("One", "Two"), set_rows))
    assert html.count("<tr>") == len(rows) + 1
    assert html.count("<td") == 2 * len(rows)


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("`~\n a\x00"), max_size=40))
def test_a_fence_contains_any_text(text: str) -> None:
    tokens = MARKDOWN.parse(f"{fence(text)}\n\nafter")
    assert [token.type for token in tokens][:2] == ["fence", "paragraph_open"]


@settings(deadline=None)
@given(st.text(max_size=40))
def test_prose_contains_no_markup(text: str) -> None:
    tokens = MARKDOWN.parse(prose(text))
    inner = [child.type for token in tokens for child in token.children or ()]
    assert set(inner) <= {"text", "text_special"}
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}


def test_each_failed_replicate_is_one_failure() -> None:
    again = replace(SLUG, replicate=1)
    found = []
    for result in (SLUG, again):
        one = make_case(result, source(SLUG), find_facts(result, source(SLUG)))
        found.append(make_finding(one, judge_verdicts(one, {ONE: [[FAULT]]})))
    text = write_report(RUN, split_results([SLUG, again]), found, date="2026-03-02")
    assert "`000-strings/001-slugify#0`" in text and "001-slugify`" not in text
    assert "`000-strings/001-slugify#1`" in text and "| Failed | 2 |" in text
    assert "| Evals | 1 |" in text and "| Results | 2 |" in text
    spoilt = lint_report(text.replace("| Results | 2 |", "| Results | 3 |"))
    assert [one.stated for one in spoilt] == ["3"]
    assert lint_report(text) == []


def test_earlier_reports_count_evals_on_both_sides() -> None:
    def report_on(*replicates: int) -> str:
        results = [replace(SLUG, replicate=number) for number in replicates]
        made = [
            make_case(one, source(SLUG), find_facts(one, source(SLUG), prior=prior))
            for one in results
        ]
        found = [make_finding(one, judge_verdicts(one, {ONE: [[FAULT]]})) for one in made]
        return write_report(RUN, split_results(results), found, date="2026-03-02", prior=prior)

    prior: list[PriorReport] = []
    prior.append(read_report(report_on(0, 1), "reports/a/b/00000000_2026-02-01.md"))
    part = section(report_on(0, 1, 2), "Earlier reports")
    assert "| Evals failed | Of these failing now |" in part
    assert "| 1 | 1 |" in part


def test_a_fix_is_not_called_failed_when_another_step_fails_now() -> None:
    then = failed(SLUG.path, "lint", "1 error", output="a.py:1:8: F401 unused")
    reported = ReportedFailure(then.path, "lint", STRICT)
    prior = [
        PriorReport("r.md", "r", "2026-02-01", "old", "", (reported,), ("Mended 001-slugify.",))
    ]
    one = make_case(SLUG, source(SLUG), find_facts(SLUG, source(SLUG), prior=prior, version="new"))
    found = make_finding(one, judge_verdicts(one, {ONE: [[FAULT]]}))
    part = section(
        write_report(RUN, split_results([SLUG]), [found], date="2026-03-02", prior=prior),
        "Earlier reports",
    )
    assert "| `lint` | OVERLY_STRICT | `tests` | MODEL_FAULT | Mended 001-slugify. (the " in part
    assert "(the eval still fails) |" in part
    assert f"| Mended 001-slugify. | 2026-02-01 | changed | {SLUG.path} failed |" in part
    edited = {"r.md": source(SLUG, task="Another task")}
    facts = find_facts(SLUG, source(SLUG), prior=prior, version="new", before=edited)
    assert "a fix is recorded there, TASK changed since, and the eval still" in str(
        facts.sentences()
    )
    same = find_facts(SLUG, source(SLUG), prior=prior, version="new", before={"r.md": source(SLUG)})
    assert "but no file of this eval has changed since" in str(same.sentences())
