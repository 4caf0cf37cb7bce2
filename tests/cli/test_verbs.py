"""The command line: every verb on both examples, its JSON, its exit code."""

import csv
import io
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conftest import Call, OnlySections, succeed
from judge_gym.analysis.report import verdicts
from judge_gym.analysis.report.judges import which_judge
from judge_gym.axes import Design
from judge_gym.cli import SECTIONS
from judge_gym.models.simulated import CODERS, PRESETS, CoderProfile, JudgeProfile
from judge_gym.records import build
from judge_gym.store.database import HEAD

WriteStudy = Callable[..., Path]
CONTRACT = {
    "tag", "concept", "evidence", "series", "replicate", "flipped", "is_swap", "status", "stages",
    "n_stages", "probe", "call_id",
}  # fmt: skip
BASE = "small/fascism/here/sim:balanced"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# --- all examples, from init to export ----------------------------------------------------------


SLOW = pytest.mark.slow
EXAMPLES = {
    "support": ("support.yaml", "support-replies", 9, 9 * 24),
    "contested": ("contested.yaml", "contested-pilot", 24, (28 + 44) * (6 + 6 + 4) + 20 * 6),
    "review": ("review.yaml", "review-severity", 12, 12 * 20),
    "benchmark": ("benchmark.yaml", "severity", 4, 4 * 20),
}
"""The study file of each example, its name, its experiments, and samples of one repeat."""
OF_THE_PROTOCOL = re.compile(
    r"politic|countr|neutrali|hypothes|validity|\bcritics?\b|\bH[1-4]\b", re.I
)
"""Words of the blueprint's protocol, which nobody reads in a study without one."""


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_planned(call: Call, tmp_path: Path, example: str) -> None:
    file, study, experiments, _ = EXAMPLES[example]
    written = succeed(call("init", "--example", example))
    assert f"judge-gym run {file}" in written.out
    assert (tmp_path / file).exists()
    text = succeed(call("plan", file)).out
    assert re.match(rf"{study}: {experiments} experiments, at most [\d,]+ new calls", text)
    assert all(kind in text for kind in ("verdicts", "all"))
    assert bool(OF_THE_PROTOCOL.search(text)) == (example == "contested")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "sections"),
    [
        pytest.param("support", (which_judge, verdicts.chosen_stages), id="support, in part"),
        *(pytest.param(name, None, marks=SLOW, id=name) for name in EXAMPLES),
    ],
)
def test_an_example_goes_from_init_to_report(
    call: Call,
    tmp_path: Path,
    example: str,
    sections: Sequence[Any] | None,
    only_sections: OnlySections,
) -> None:
    if sections:
        only_sections(*sections)
    file, study, experiments, samples = EXAMPLES[example]
    succeed(call("init", "--example", example))
    result = succeed(call("run", file, "--samples", "1", "--json")).json
    assert (result["study"], result["status"], len(result["runs"])) == (
        study, "complete", experiments,
    )  # fmt: skip
    status = succeed(call("status", file, "--json")).json
    assert {run["status"] for row in status for run in row["runs"]} == {"complete"}
    assert len(status) == experiments

    stdout = succeed(call("export", study))
    rows = rows_of(stdout.out)
    assert set(rows[0]) >= CONTRACT | set(Design.knobs())
    assert len(rows) == samples
    assert len(rows) == sum(sum(run["counts"].values()) for run in result["runs"])
    succeed(call("export", study, "--out", "s.csv"))
    assert rows_of((tmp_path / "s.csv").read_text()) == rows
    written = succeed(call("export", "--format", "parquet", "--out", "s.parquet"))
    assert f"{len(rows):,} rows" in written.err
    frame = pd.read_parquet(tmp_path / "s.parquet")
    assert list(frame["tag"]) == [row["tag"] for row in rows]

    report = succeed(call("report", file, "--out", "report.html"))
    assert "simulated" in report.out
    page = (tmp_path / "report.html").read_text()
    assert "simulated" in page
    assert "<svg" in page
    assert not re.search(r'(src|href)="https?:', page), "a report needs nothing else"
    succeed(call("report", file, "--out", "report.md"))
    lines = (tmp_path / "report.md").read_text().splitlines()
    ours = [line for line in lines if not line.startswith("“")]  # quotes an item
    words = OF_THE_PROTOCOL.findall("\n".join(ours))
    assert bool(words) == (example == "contested"), words
    assert ("agreement with people" in page) == (example == "support")
    only_sections(verdicts.response_outcomes)
    assert succeed(call("report", study, "--json")).json["tables"]

    usage = succeed(call("usage", study, "--json")).json
    assert sum(row["attempts"] for row in usage) == sum(run["calls"] for run in result["runs"])
    assert "scorer" in succeed(call("usage")).out


def test_a_csv_file_becomes_a_study(call: Call, tmp_path: Path) -> None:
    rows = ["text,truth,ann,bo", "one,bad,bad,", "two,good,good,bad", "three,good,good,good"]
    (tmp_path / "My Texts.csv").write_text("\n".join(rows))
    words = ("--csv", "My Texts.csv", "--human", "ann", "--human", "bo", "--judge", "sim:strict")
    assert "judge-gym run my-texts.yaml" in succeed(call("init", *words)).out
    plan = succeed(call("plan", "my-texts.yaml", "--json")).json
    assert plan["stages"]["all"]["calls"] == 2 * 3 * 3, "two methods, three items, three repeats"
    succeed(call("run", "my-texts.yaml", "--json"))
    table = succeed(call("judges", "my-texts.yaml", "--json")).json
    assert (table["kind"], table["known_items"]) == ("accuracy", 3)
    assert "exists already" in call("init", *words).err
    assert "'ann'" in call("init", "--csv", "My Texts.csv", "--human", "amy").err
    (tmp_path / "numbers.csv").write_text("text,ann\nx,1\ny,4\n")
    succeed(call("init", "--csv", "numbers.csv", "--human", "ann"))
    assert '["1", "2", "3", "4"]' in (tmp_path / "numbers.yaml").read_text(), "no place is missing"
    (tmp_path / "none.csv").write_text("body\nx\n")
    assert "--text" in call("init", "--csv", "none.csv").err


def test_init_refuses_to_overwrite(call: Call, tmp_path: Path) -> None:
    (tmp_path / "replies.csv").write_text("mine")
    said = call("init")
    assert said.code == 2
    assert "replies.csv" in said.err
    assert (tmp_path / "replies.csv").read_text() == "mine"
    assert not (tmp_path / "support.yaml").exists()
    succeed(call("init", "elsewhere/deep"))
    assert (tmp_path / "elsewhere" / "deep" / "support.yaml").exists()


# --- run -----------------------------------------------------------------------------------------


def test_run_prints_one_json_document_of_the_documented_shape(
    call: Call, write_study: WriteStudy
) -> None:
    said = succeed(call("run", write_study(), "--json"))
    assert said.json.keys() >= {"study", "status", "runs"}
    assert (said.json["study"], said.json["status"]) == ("small", "complete")
    for run in said.json["runs"]:
        assert set(run) == {"tag", "run", "status", "counts", "calls", "reused", "usd", "saved"}
        assert run["tag"].startswith("small/fascism/here/sim:")
        assert sum(run["counts"].values()) == 6
        assert run["usd"] == 0
    again = succeed(call("run", "small", "--json")).json
    assert [run["calls"] for run in again["runs"]] == [0, 0]
    assert [run["run"] for run in again["runs"]] == [run["run"] for run in said.json["runs"]]


def test_run_shows_a_table_and_keeps_progress_off_standard_output(
    call: Call, write_study: WriteStudy
) -> None:
    said = succeed(call("run", write_study()))
    assert BASE in said.out
    assert "small: complete" in said.err
    assert "calls/s" not in said.out
    assert "All judges were simulated" in said.out, "with what the study says at the end"
    assert "see more with: judge-gym judges small" in said.err
    stopped = call("run", write_study(study="short", seed=99), "--budget", "calls=3")
    assert (stopped.code, "see more" in stopped.err) == (3, False)
    assert re.search(r"continue with: .* --budget calls=\d\d", stopped.err)


def test_the_help_lists_every_command_once_under_what_it_is_for(call: Call) -> None:
    text = succeed(call("--help")).out
    for title, section in SECTIONS.items():
        under = text.partition(f"{title}:\n")[2].partition("\n\n")[0]
        names = {line.split()[0] for line in under.splitlines() if re.match(r"  \w", line)}
        assert names == {entry.partition(":")[0] for entry in section.split()}


def test_labels_without_a_lab_are_refused_and_create_none(call: Call, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,rater,stage\n1,ann,1\n")
    refused = call("labels", "import", "labels.csv")
    assert refused.code == 2 and not (tmp_path / ".judge-gym").exists()


@pytest.mark.parametrize(
    ("judge", "tolerance", "code", "status"),
    [
        ("sim:balanced", 0.0, 0, "complete"),
        ("sim:balanced?fail=0.5", 1.0, 0, "complete-with-failures"),
        ("sim:balanced?fail=0.5", 0.0, 1, "failed"),
        ("sim:balanced?refuse=1&garble=1", 0.0, 0, "complete"),
    ],
)
def test_the_exit_code_reports_the_outcome(
    call: Call, write_study: WriteStudy, judge: str, tolerance: float, code: int, status: str
) -> None:
    """Only calls without an answer are failures; a refusal or a garbled text is an answer."""
    path = write_study(judges=[judge], tolerance=tolerance, samples=4)
    said = call("run", path, "--json")
    assert (said.code, said.json["status"]) == (code, status)
    if "fail" in judge:
        assert said.json["runs"][0]["counts"]["provider_error"] > 0
    assert f"small: {status}" in call("run", path).err


def test_set_overrides_the_base_and_shows_in_the_tag(call: Call, write_study: WriteStudy) -> None:
    path = write_study(judges=["sim:balanced"])
    words = ("--set", "verdict.method=subset", "--set", "verdict.abstain=false")
    plan = succeed(call("plan", path, *words, "--json")).json
    said = succeed(call("run", path, *words, "--json")).json
    tag = f"{BASE}/verdict.method=subset/verdict.abstain=false"
    assert [e["tag"] for e in plan["experiments"]] == [run["tag"] for run in said["runs"]] == [tag]
    rows = rows_of(succeed(call("export", tag)).out)
    assert {(row["verdict.method"], row["verdict.abstain"]) for row in rows} == {
        ("subset", "False")
    }


def test_series_and_new_runs_are_options(call: Call, write_study: WriteStudy) -> None:
    path = write_study(judges=["sim:balanced"])
    first = succeed(call("run", path, "--json")).json["runs"][0]
    again = succeed(call("run", path, "--series", "again", "--json")).json["runs"][0]
    new = succeed(call("run", path, "--new-run", "--json")).json["runs"][0]
    assert len({first["run"], again["run"], new["run"]}) == 3
    assert (again["calls"] > 0, new["calls"]) == (True, 0)
    status = succeed(call("status", BASE, "--json")).json
    assert {run["series"]: run["run"] for run in status[0]["runs"]} == {
        "3": new["run"], "again": again["run"],
    }  # fmt: skip


# --- plan ----------------------------------------------------------------------------------------


def test_plan_names_cost_time_folded_points_and_skipped_swaps(
    call: Call, write_study: WriteStudy
) -> None:
    path = write_study(
        judges=["openai:gpt-5.2"],
        swap=[["*", "sim:strict"]],
        design={"rubric.critic": "sim:critic"},
        vary={
            "evidence.view": ["neutralized", "raw"],
            "evidence.editor": ["sim:editor", "sim:editor?noise=0.2"],
            "rubric.author": ["own", "sim:cautious"],
        },
    )
    plan = succeed(call("plan", path, "--json")).json
    assert plan["stages"]["scorer"]["usd"] > 0
    assert plan["stages"]["all"]["usd"] == pytest.approx(
        sum(stage["usd"] for name, stage in plan["stages"].items() if name != "all")
    )
    assert plan["stages"]["all"]["seconds"] > 0
    assert len(plan["duplicates"]) == 2
    assert len(plan["skipped_swaps"]) == 3
    text = succeed(call("plan", path))
    assert text.err.count("is the same experiment as") == 2
    assert text.err.count("no swap for") == 3


def test_plan_prints_one_json_document_before_and_after_a_run(call: Call, finished: Path) -> None:
    plan = succeed(call("--db", "sqlite:///new.db", "plan", finished, "--json")).json
    assert plan["study"] == "small"
    assert [e["tag"] for e in plan["experiments"]] == [BASE, "small/fascism/here/sim:strict"]
    assert plan["stages"]["all"]["to_pay"] == plan["stages"]["all"]["calls"] > 0
    after = succeed(call("plan", finished, "--json")).json["stages"]["all"]
    assert (after["to_pay"], after["in_ledger"]) == (0, after["calls"])


def test_plan_reports_an_unknown_price(call: Call, write_study: WriteStudy) -> None:
    path = write_study(judges=["openai:no-such-model-at-all"])
    stages = succeed(call("plan", path, "--json")).json["stages"]
    assert stages["scorer"]["usd"] is stages["all"]["usd"] is None
    assert "price" in succeed(call("plan", path)).out


# --- the five workflows --------------------------------------------------------------------------


def test_a_workflow_command_takes_its_target_directly(call: Call, write_study: WriteStudy) -> None:
    path = write_study()
    outcomes = []
    for number, words in enumerate((("rubric",), ("rubric", "make"), ("rubric", "--json"))):
        given = ("--db", f"sqlite:///{number}.db", *words, path)
        said = succeed(call(*given, *(() if "--json" in words else ("--json",))))
        outcomes.append(said.json)
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert [run["calls"] for run in outcomes[0]["runs"]] == [2, 2]


def test_each_step_says_what_is_missing_and_how_to_make_it(
    call: Call, write_study: WriteStudy
) -> None:
    path = write_study(judges=["sim:balanced"])
    advised = []
    while (said := call("score", path, "--json")).code == 2:
        message = said.json["error"]["message"]
        assert said.json["error"]["kind"] == "conflict"
        command = re.search(r"judge-gym (.*)$", message)
        assert command is not None, message
        words = shlex.split(command[1])
        assert words not in advised
        advised.append(words)
        succeed(call(*words))
    assert [words[0] for words in advised] == ["evidence", "rubric"]
    assert said.json["runs"][0]["counts"]["scored"] > 0
    succeed(call("swap", BASE, "--from", "sim:strict"))
    succeed(call("probe", BASE))
    assert call("run", BASE, "--json").json["status"] == "complete"

    samples = succeed(call("score", "list", BASE, "--json")).json
    assert len(samples) == 12
    assert sum(sample["is_swap"] for sample in samples) == 6
    probes = succeed(call("probe", "list", BASE, "--json")).json
    assert len(probes) == sum(sample["status"] == "scored" for sample in samples)
    rubrics = succeed(call("rubric", "list", BASE, "--json")).json
    assert [row["author"] for row in rubrics] == ["sim:balanced", "sim:strict"]
    text = succeed(call("rubric", "list", BASE)).out
    assert all(label in text for row in rubrics for label, *_ in row["stages"])
    for verb in ("score", "probe"):
        assert "scored" in succeed(call(verb, "list", BASE)).out


def test_swap_suggests_the_most_divergent_pairs_first(call: Call, write_study: WriteStudy) -> None:
    path = write_study(judges=["sim:strict", "sim:balanced", "sim:alarmist"], samples=4)
    succeed(call("run", path))
    pairs = succeed(call("swap", "--suggest", "small", "--json")).json
    assert len(pairs) == 3
    assert [pair["p"] for pair in pairs] == sorted((pair["p"] for pair in pairs), reverse=True)
    assert "sim:alarmist" in succeed(call("swap", "small", "--suggest")).out


def test_limits_act_on_simulated_judges_and_say_so_where_they_cannot_act(
    call: Call, write_study: WriteStudy
) -> None:
    study = write_study(judges=["sim:balanced"], samples=2, probe=False)
    began = time.monotonic()
    done = succeed(call("--rpm", "300", "run", study, "--json")).json
    waited = time.monotonic() - began
    assert waited > (sum(run["calls"] for run in done["runs"]) - 5) / 5, "five begin at once"
    assert "--rpm has no effect on status" in succeed(call("--rpm", "5", "status")).err


# --- looking -------------------------------------------------------------------------------------


def test_status_of_an_empty_lab_says_how_to_start(call: Call) -> None:
    succeed(call("db", "upgrade"))
    assert "judge-gym init" in succeed(call("status")).out
    assert succeed(call("status", "--json")).json == []


def test_status_is_of_all_of_a_study_of_a_type_or_of_a_tag(call: Call, finished: Path) -> None:
    for words in ((), ("small",), (str(finished),), ("--type", "ecc")):
        listed = succeed(call("status", *words, "--json")).json
        assert [row["judge"] for row in listed] == ["sim:balanced", "sim:strict"]
    assert len(succeed(call("status", BASE, "--json")).json) == 1
    assert succeed(call("status", "--type", "control", "--json")).json == []
    text = succeed(call("status")).out
    assert text.count("complete") == 2
    assert text.count("6/6") >= 2


def test_failed_calls_are_not_done(call: Call, write_study: WriteStudy) -> None:
    """Of rubric, critique and views everything is there, of the scores nothing."""
    call("run", write_study(judges=["sim:balanced?fail=1"], samples=1))
    lines = call("status", "small").out.splitlines()
    head, row = (re.split(r" {2,}", line.strip()) for line in (lines[0], lines[2]))
    shown = dict(zip(head, row, strict=True))
    assert (shown["status"], shown["done"]) == ("failed", "57 %"), "3 views and a rubric of 7"
    assert shown["score"] == "0/3"


def test_only_commands_that_ask_need_the_files_of_a_study(call: Call, finished: Path) -> None:
    """The lab holds what was judged: the study's own rows are looked at without its evidence."""
    (finished.parent / "evidence.jsonl").unlink()
    for verb in ("pause", "cancel", "judges", "report", "export", "reparse", "answers", "usage"):
        succeed(call(verb, finished))
    for verb in ("status", "split"):
        succeed(call("labels", verb, finished))
    succeed(call("retune", finished, "--budget", "calls=900"))
    listed = succeed(call("status", finished, "--json")).json
    assert [row["judge"] for row in listed] == ["sim:balanced", "sim:strict"]
    for words in (("plan",), ("run",), ("resume",), ("retry",), ("score", "make")):
        refused = call(*words, finished)
        assert refused.code == 2
        assert re.search(r"study\.yaml:\d+: evidence\.here\.files: no file matches", refused.err)
    finished.write_text(finished.read_text().replace("- sim:strict\n", ""))
    left = {row["judge.model"] for row in rows_of(succeed(call("export", finished)).out)}
    assert left == {"sim:balanced"}, "a judge that the file no longer names is left out"


def test_axes_lists_every_knob_in_every_form(call: Call) -> None:
    listed = succeed(call("axes", "--json")).json
    assert [knob["path"] for knob in listed] == list(Design.knobs())
    assert all(knob["question"] for knob in listed)
    for form in ((), ("--markdown",)):
        text = succeed(call("axes", *form)).out
        assert all(path in text for path in ("verdict.method", "presentation.pair_order"))
        assert all(level in text for level in ("subset", "opaque", "neutralized"))
    schema = succeed(call("axes", "--schema")).json
    assert set(schema["properties"]) == set(Design.model_fields)
    assert schema["additionalProperties"] is False


def test_simulated_judges_are_listed_with_their_parameters(call: Call) -> None:
    listed = succeed(call("sim", "list", "--json")).json
    assert len(listed) >= 5
    assert listed.keys() == {**PRESETS, **CODERS}.keys()
    assert all(set(listed[name]) == set(JudgeProfile.model_fields) for name in PRESETS)
    assert all(set(listed[name]) == set(CoderProfile.model_fields) for name in CODERS)
    text = succeed(call("sim", "list")).out
    assert all(f"sim:{preset}" in text for preset in (*PRESETS, *CODERS))
    assert all(parameter in text for parameter in JudgeProfile.model_fields)


def test_the_ledger_shows_what_was_asked_and_answered(call: Call, finished: Path) -> None:
    [sample, *_] = succeed(call("score", "list", BASE, "--json")).json
    shown = succeed(call("ledger", "show", str(sample["call_id"]), "--json")).json
    assert [message["role"] for message in shown["messages"]] == ["system", "user"]
    asked = shown["messages"][1]["content"]
    assert "VERDICT:" in asked
    [attempt] = shown["attempts"]
    assert (attempt["stage"], attempt["tag"], attempt["completed"]) == ("scorer", BASE, True)
    text = succeed(call("ledger", "show", str(sample["call_id"]))).out
    assert asked in text
    assert attempt["body"] in text


def test_usage_is_by_experiment_stage_and_model(call: Call, finished: Path) -> None:
    usage = succeed(call("usage", "--json")).json
    for name in ("study", "tag", "stage", "model", "attempts", "usd", "input_tokens"):
        assert all(name in row for row in usage)
    models = {(row["stage"], row["model"]) for row in usage}
    assert {("neutralizer", "sim:editor"), ("critic", "sim:critic")} <= models
    assert call("usage", "another", "--json").code == 2


def test_usage_sums_by_what_is_asked_for(call: Call, finished: Path) -> None:
    whole = succeed(call("usage", "--json")).json
    today = datetime.now(UTC).date().isoformat()
    [day] = succeed(call("usage", finished, "--by", "day", "--json")).json
    assert day["attempts"] == sum(row["attempts"] for row in whole)
    assert day["day"] == today
    models = succeed(call("usage", "--by", "model, day", "--json")).json
    assert [row["model"] for row in models] == sorted({row["model"] for row in whole})
    assert "'model'" in call("usage", "--by", "month").err


# --- upkeep --------------------------------------------------------------------------------------


def test_cleanup_says_what_it_deleted_and_what_it_kept(call: Call, finished: Path) -> None:
    counts = succeed(call("cleanup", BASE, "--json")).json
    assert (counts["runs"], counts["samples"], counts["calls"]) == (1, 6, 0)
    assert f"{BASE}: cleaned up at" in succeed(call("status", BASE)).err
    again = succeed(call("run", finished, "--json")).json
    assert [run["calls"] for run in again["runs"]] == [0, 0]
    said = succeed(call("cleanup", BASE)).out
    assert "6 samples" in said
    assert "ledger keeps" in said
    succeed(call("run", finished))
    gone = succeed(call("cleanup", BASE, "--ledger", "--json")).json
    assert gone["calls"] > 6


def test_db_upgrade_prints_old_and_new_revision(call: Call, tmp_path: Path) -> None:
    said = succeed(call("db", "upgrade")).out
    assert HEAD in said
    assert "none" in said
    assert (tmp_path / ".judge-gym" / "lab.db").exists()
    assert f"{HEAD} is current" in succeed(call("db", "upgrade")).out


def test_db_names_the_database_over_the_environment(
    call: Call, tmp_path: Path, write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_GYM_DATABASE_URL", "sqlite:///named.db")
    succeed(call("plan", write_study()))
    succeed(call("--db", "sqlite:///given.db", "plan", write_study()))
    assert {path.name for path in tmp_path.glob("*.db")} == {"named.db", "given.db"}
    assert not (tmp_path / ".judge-gym").exists()


# --- as real processes ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_program_runs_a_study_in_the_working_folder(
    write_study: WriteStudy, tmp_path: Path
) -> None:
    write_study()
    ran = subprocess.run(
        [Path(sys.executable).with_name("judge-gym"), "run", "study.yaml", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["status"] == "complete"
    assert (tmp_path / ".judge-gym" / "lab.db").exists()


def test_python_m_runs_the_program() -> None:
    version = [sys.executable, "-m", "judge_gym", "--version"]
    ran = subprocess.run(version, capture_output=True, text=True)
    number = metadata.version("judge-gym")
    assert (ran.returncode, ran.stdout) == (0, f"judge-gym {number} ({build.build()})\n")


def test_the_build_is_the_commit_of_the_checkout_or_of_what_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_of(package: Path) -> str:
        monkeypatch.setattr(build, "PACKAGE", package)
        monkeypatch.setattr(build, "COMMIT_FILE", package / "commit.txt")
        return build.build.__wrapped__()

    def git(*words: str) -> str:
        user = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")
        ran = subprocess.run(["git", *user, *words], cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    checkout, installed = tmp_path / "src" / "judge_gym", tmp_path / "lib" / "judge_gym"
    for package in (checkout, installed):
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    assert build_of(checkout) == build.UNKNOWN
    git("init", "--quiet")
    assert build_of(checkout) == build.UNKNOWN, "it has no commit yet"
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    assert build_of(checkout) == git("rev-parse", "--short=12", "HEAD")
    (checkout / "__init__.py").write_text("changed = True")
    assert build_of(checkout) == git("rev-parse", "--short=12", "HEAD") + "-dirty"
    assert build_of(installed) == build.UNKNOWN, "the checkout around it is another project's"
    (installed / "commit.txt").write_text("0123456789ab\n")
    assert build_of(installed) == "0123456789ab"


@pytest.mark.slow
def test_a_closed_pipe_is_not_a_crash(call: Call, write_study: WriteStudy, tmp_path: Path) -> None:
    """The export is longer than a pipe's buffer, so that it is still writing then."""
    succeed(call("run", write_study(samples=40, probe=False)))
    with subprocess.Popen(
        [sys.executable, "-m", "judge_gym", "export"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as exporting:
        assert exporting.stdout is not None
        assert exporting.stderr is not None
        assert exporting.stdout.readline().startswith("tag,")
        exporting.stdout.close()
        assert exporting.stderr.read() == ""
