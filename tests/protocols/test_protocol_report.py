"""What the report of a study under the protocol has beside that of any study."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from conftest import OnlySections
from judge_gym.analysis.frames import JUDGE, tidy
from judge_gym.analysis.report import Report, ReportInput, Section, build_report, findings
from judge_gym.analysis.verdicts import Dataset
from judge_gym.errors import DesignError
from judge_gym.lab.reports import report_file
from judge_gym.protocols import report as protocol
from judge_gym.records.numbers import signed_hundredths
from panel_frames import samples, swapped_panel
from panel_frames import verdicts as verdict_frame
from verdict_frames import Chances, draw_verdicts

EVEN: Chances = [0.25, 0.25, 0.25, 0.25]
PANEL: dict[str, Chances] = {"a": EVEN, "b": [0.7, 0.3, 0, 0], "c": {"1 2": 0.6, "3": 0.4}}
PROTOCOL_TABLES = {
    *("Validity of the instrument", "Controls, described", "Reference values", "Regressions"),
    *("Conflict", "Entrenchment", "Belief and plausibility", "Uncertainty", "Swap sensitivity"),
    *("Sensitivity to the aggregation rule", "Expected stage by rubric author"),
    *("Calibration", "Calibration by set size", "Reliability"),
}


def given(frame: pd.DataFrame) -> ReportInput:
    """The input of single sections."""
    return ReportInput(Dataset(tidy(frame)))


def table(section: Section | Report | None, title: str) -> pd.DataFrame:
    assert section is not None
    [frame] = [one.frame for one in section.tables if one.title == title]
    return frame


def contested() -> pd.DataFrame:
    """Swaps and probes of two judges, and a control with a reference value."""
    control = swapped_panel(0.1).assign(concept="turnout", task_type="control", reference=0.5)
    return pd.concat([swapped_panel(0.3).assign(concept="fascism", task_type="ecc"), control])


# --- whose report it is --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_tables_of_the_protocol_are_in_no_other_report() -> None:
    frame = contested()
    under = build_report(
        "x", frame, None, questions=protocol.questions(), appendix=protocol.appendix()
    )
    ordinary = build_report("x", frame.assign(protocol=""), None)
    titles, usual = ({one.title for one in made.every_table()} for made in (under, ordinary))
    assert {*PROTOCOL_TABLES} <= titles and not PROTOCOL_TABLES & usual
    assert usual <= titles
    assert {one.title for one in ordinary.tables} <= {one.title for one in under.tables}
    rows = {metric.name for metric in protocol.METRICS}
    assert rows <= {*under.table("metrics")["metric"]}
    assert not rows & {*ordinary.table("metrics")["metric"]}
    assert all(one.chart for one in under.charts) and all(one.lead for one in under.sections)


def test_a_report_of_a_file_asks_what_the_protocol_of_its_rows_asks(
    tmp_path: Path, only_sections: OnlySections
) -> None:
    only_sections(findings.findings)
    frame = contested().drop(columns=["mask", "task", "variant"], errors="ignore")
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    assert "validity" in " ".join(one.title.lower() for one in report_file(path).tables)
    strict = report_file(path, gates={"control": 1e-9}).table("validity")
    assert "below 1e-09" in strict["criterion"].iloc[0]
    frame.assign(protocol="").to_csv(path, index=False)
    assert report_file(path).tables == ()
    with pytest.raises(DesignError, match="not under protocol: contested-concepts"):
        report_file(path, gates={"control": 0.2})


ORDINARY = """
import json, sys
from judge_gym.lab.reports import report_file
report = report_file(sys.argv[1])
report.html()
print(json.dumps([name for name in sys.modules if name.startswith("judge_gym.protocols")]))
"""


@pytest.mark.slow
def test_an_ordinary_report_never_imports_the_protocol(tmp_path: Path) -> None:
    """Not even with swaps and probes, in an interpreter that has imported nothing yet."""
    path = tmp_path / "rows.csv"

    def imported(frame: pd.DataFrame) -> list[str]:
        frame.to_csv(path, index=False)
        done = subprocess.run(
            [sys.executable, "-c", ORDINARY, str(path)], capture_output=True, text=True, check=True
        )
        found: list[str] = json.loads(done.stdout)
        return found

    frame = swapped_panel(0.3).drop(columns=["mask", "task", "variant"], errors="ignore")
    assert imported(frame.assign(protocol="")) == []
    assert "judge_gym.protocols.report" in imported(frame)


def test_only_samples_under_the_protocol_have_hypotheses_and_validity_checks(
    only_sections: OnlySections,
) -> None:
    only_sections(findings.findings, findings.metrics)
    contested = swapped_panel(0.3)
    plain = contested.assign(protocol="", concept="politeness")
    own = {"Hypotheses", "Validity of the instrument"}
    alone, both, neutral = (
        {one.title: one.frame for one in build_report("x", frame, None, questions=asked).tables}
        for frame, asked in (
            (contested, protocol.questions()),
            (pd.concat([contested, plain]), protocol.questions()),
            (plain, None),
        )
    )
    assert own <= alone.keys() and not own & neutral.keys()
    pd.testing.assert_frame_equal(both["Hypotheses"], alone["Hypotheses"])
    assert len(both["Metrics"]) == 2 * len(alone["Metrics"])


def test_open_columns_count_abstentions_as_verdicts_on_all_stages() -> None:
    """Item 1: one of four verdicts abstains; item 2: none; an unreadable one is no abstention."""
    lost = {JUDGE: "a", "evidence": 1, "status": "refused"}
    chosen = [
        ("a", 1, "1"),
        ("a", 1, "1 2"),
        ("a", 1, "3"),
        ("a", 1, ""),
        ("a", 2, "1"),
        ("b", 1, "4"),
    ]
    rows = [{JUDGE: judge, "evidence": item, "stages": stages} for judge, item, stages in chosen]
    beliefs = table(protocol.decisiveness(given(samples(*rows, lost))), "Belief and plausibility")
    first = beliefs[(beliefs[JUDGE] == "a") & (beliefs["stage"] == 1)].iloc[0]
    assert first["belief"] == pytest.approx((1 / 3 + 1) / 2)
    assert first["plausibility"] == pytest.approx((2 / 3 + 1) / 2)
    assert first["open belief"] == pytest.approx((3 / 4 * 1 / 3 + 1) / 2)
    assert first["open plausibility"] == pytest.approx((3 / 4 * 2 / 3 + 1 / 4 + 1) / 2)


def test_a_leading_stage_that_depends_on_abstentions_is_shown() -> None:
    """Without abstentions two of three are for stage 1; with what they leave open, it is even."""
    rows = [("a", 1, "1"), ("a", 1, ""), ("b", 1, "2"), ("b", 1, "2"), ("c", 1, "1"), ("c", 1, "")]
    section = protocol.decisiveness(given(verdict_frame(*rows, n_stages=2)))
    rules = table(section, "Sensitivity to the aggregation rule")
    changed = rules.set_index("rule")["changed by abstentions"]
    # Left out: two of three are for 1. Taken for verdicts on all stages: .9 each for 1 and 2.
    assert changed.isna()["average"]
    assert changed["dempster"] == 1


@pytest.mark.parametrize(
    ("gap", "sentence"), [(0.3, "Judges state more agreement"), (0.0, "Undecided whether")]
)
def test_the_lead_on_swaps_is_that_of_the_hypothesis(gap: float, sentence: str) -> None:
    report_input = given(swapped_panel(gap))
    section = protocol.rubric_author(report_input)
    assert section is not None and section.lead.startswith(sentence)
    tested = table(protocol.findings(report_input), "Hypotheses")
    row = tested[tested["hypothesis"].str.startswith("H3")].iloc[0]
    assert row["value"] == pytest.approx(gap, abs=1e-9)
    assert (row["low"] > 0) == (gap > 0)
    assert f"({signed_hundredths(row['value'])} [" in section.lead


def test_a_third_partys_rubric_is_not_a_rivals() -> None:
    section = protocol.overconfidence(given(swapped_panel(0.3)))
    assert section is not None
    [chart] = [one.chart for one in section.charts if one.title == "Stated expert agreement"]
    title = " ".join(chart.to_dict()["title"]["text"])
    assert "0.50 under a rival's" in title and "0.50 under a third party's" in title


# --- limitations ---------------------------------------------------------------------------------


def test_a_missing_reference_of_stated_agreement_is_a_limitation() -> None:
    def limits(frame: pd.DataFrame) -> str:
        section = protocol.limitations(given(frame))
        return " ".join(section.lines if section else ())

    alone = draw_verdicts({"a": EVEN}, probe=0.8)
    assert "a: fewer than three verdicts of other judges" in limits(alone)
    assert "fewer than three" not in limits(draw_verdicts(PANEL, items=14))
    usual = findings.limitations(given(alone))
    assert usual is not None and "fewer than three" not in " ".join(usual.lines)


def test_a_judge_has_no_conflict_with_itself_in_one_verdict() -> None:
    k = table(protocol.conflicts(given(draw_verdicts(PANEL, replicates=1))), "Conflict")
    assert k["k"].notna().all() and k[["own", "excess"]].isna().all(axis=None)
