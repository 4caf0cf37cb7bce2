"""Every verb over suites, by its command, on a suite of trivial evals."""

from pathlib import Path

import pytest

from conftest import Call, succeed
from judge_gym.lab import Lab
from suite_folders import known_by, write_suite
from web import Web

BOARD = (
    "suite version condition model score low high sd runs evals passed failed inconclusive "
    "unscored usd seconds in_process"
).split()


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "tiny", 4)


def flawless(suite: Path) -> str:
    return f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0)}"


def wrong(suite: Path) -> str:
    return f"sim:{known_by(suite, 'coder-strong', logic=1, lint=0)}"


def test_list_names_the_included_suite_and_local_ones(
    call: Call, suite: Path, tmp_path: Path
) -> None:
    rows = succeed(call("suite", "list", "--json")).json
    assert [(row["suite"], row["evals"]) for row in rows][1:] == [("tiny", 4)]
    assert rows[0]["suite"] == "python"
    assert rows[0]["evals"] >= 12
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "suite.toml").write_text("[")
    listed = succeed(call("suite", "list"))
    assert "tiny" in listed.out and "broken" in listed.err, "the others are listed"


def test_show_lists_the_evals_of_a_suite(call: Call, suite: Path) -> None:
    said = succeed(call("suite", "show", suite, "--json")).json
    assert [row["eval"] for row in said["evals"]] == [
        f"001-values/00{n}-value" for n in range(1, 5)
    ]
    assert said["conditions"] == ["default", "no_guidelines", "web_search"]
    assert said["guidelines"] == ["Style", "Colour"]
    assert "001-values/003-value" in succeed(call("suite", "show", suite)).out


def test_check_passes_answers_and_fails_where_one_does_not(call: Call, suite: Path) -> None:
    assert succeed(call("suite", "check", suite, "--json")).json["passed"] == 4
    (suite / "001-values/002-value/answer/value.py").write_text("VALUE = 0\n")
    said = call("suite", "check", suite, "--json")
    assert (said.code, said.json["passed"]) == (1, 3)
    [failed] = [row for row in said.json["evals"] if row["outcome"] != "passed"]
    assert (failed["eval"], failed["step"]) == ("001-values/002-value", "tests")
    only = call("suite", "check", suite, "--evals", "/001-")
    assert only.code == 0
    assert "1 of 1 reference answers pass" in only.err
    assert "wrong answers" not in only.err


def test_check_fails_where_a_wrong_answer_does_not_fail_at_its_step(
    call: Call, suite: Path
) -> None:
    place = suite / "001-values/001-value"
    [line] = (place / "answer/value.py").read_text().splitlines()
    planted = "[[tests-zero]]\nfile = 'value.py'\nold = '{}'\nnew = '{}'\n"
    (place / "wrong.toml").write_text(planted.format(line, "VALUE = 0"))
    caught = call("suite", "check", suite, "--evals", "/001-")
    assert caught.code == 0
    assert "1 of 1 wrong answers fail at their step" in caught.err
    (place / "wrong.toml").write_text(planted.format(line, line))
    missed = call("suite", "check", suite, "--evals", "/001-", "--json")
    assert (missed.code, missed.json["passed"], missed.json["caught"]) == (1, 1, 0)
    [row] = missed.json["wrong_answers"]
    assert (row["answer"], row["outcome"]) == ("tests-zero", "passed")
    assert row["problem"] == "must fail at tests, but passes"


def test_status_lists_suite_runs_in_progress(call: Call, suite: Path) -> None:
    succeed(call("suite", "run", suite, "--model", flawless(suite), "--evals", "/001-"))
    assert succeed(call("status", "--json")).json == [], "it is complete"
    with Lab.open() as lab:
        [run] = lab.store.suites.list_runs()
        identity = (run.suite, run.version, run.model, run.condition, run.settings, run.series)
        lab.store.suites.save_run(*identity, replicates=2, evals=run.evals)
        lab.store.events.record([run.payer], "started")
    [row] = succeed(call("status", "--json")).json
    assert (row["tag"], row["in_progress"], row["done"], row["targets"]) == (
        "suite:1", True, {"evals": 1}, {"evals": 2},
    )  # fmt: skip
    said = succeed(call("status"))
    assert "suite:1" in said.out
    assert "no worker is running" in said.err
    assert succeed(call("status", "--type", "ecc", "--json")).json == []


def test_run_board_runs_show_failed_and_debug(call: Call, suite: Path) -> None:
    good = succeed(call("suite", "run", suite, "--model", flawless(suite), "--json")).json["runs"][
        0
    ]
    assert (good["status"], good["score"], good["whole"]) == ("complete", 1.0, True)
    assert good["counts"] == {"passed": 4, "failed": 0, "inconclusive": 0}
    assert (good["calls"], good["usd"]) == (4, 0)
    bad = succeed(call("suite", "run", suite, "--model", wrong(suite), "--jobs", "2"))
    assert "judge-gym suite failed 2" in bad.err
    assert "complete" in bad.out

    rows = succeed(call("suite", "board", "--json")).json
    assert [list(row) for row in rows] == [BOARD, BOARD]
    assert [(row["model"], row["score"], row["inconclusive"]) for row in rows] == [
        (flawless(suite), 1.0, 0),
        (wrong(suite), 0.0, 0),
    ]
    assert "leaderboard" in succeed(call("suite", "board", "tiny")).out
    assert succeed(call("suite", "board", "python", "--json")).json == []

    listed = succeed(call("suite", "runs", "--model", wrong(suite), "--json")).json
    assert [row["run"] for row in listed] == [2]
    shown = succeed(call("suite", "show", "2", "--json")).json
    assert [row["outcome"] for row in shown["evals"]] == ["failed"] * 4
    assert "failed" in succeed(call("suite", "show", "2")).out

    failed = succeed(call("suite", "failed", "2", "--json")).json
    assert [row["path"] for row in failed] == [row["path"] for row in shown["evals"]]
    assert {row["step"] for row in failed} == {"tests"}
    assert succeed(call("suite", "failed", "1", "--json")).json == []
    assert "every eval passed" in call("suite", "failed", "1").err

    number = str(failed[1]["eval"])
    debug = succeed(call("suite", "debug", number, "--json")).json
    assert debug["task"] == "Write value.py, which says: VALUE = 1001\n"
    keys = {"steps", "files", "answer", "grader", "gaps", "model", "condition", "version"}
    assert keys <= debug.keys()
    text = succeed(call("suite", "debug", number)).out
    assert "VALUE = 1001" in text
    assert "(1 + 1001)" in text


def test_replicates_conditions_and_series_are_distinguished(call: Call, suite: Path) -> None:
    def run(*options: str) -> int:
        words = ("suite", "run", suite, "--model", flawless(suite), *options, "--json")
        return int(succeed(call(*words)).json["runs"][0]["run"])

    base = run("--evals", "/001-")
    assert run("--evals", "/001-", "--replicates", "2") == base
    others = [run("--evals", "/001-", "--condition", "no_guidelines")]
    others += [run("--evals", "/001-", "--series", "again")]
    assert len({base, *others}) == 3


def test_the_example_suite_runs_at_once(call: Call) -> None:
    written = succeed(call("init", "--example", "suite"))
    assert "suite run my-suite --model 'sim:coder-weak?suite=my-suite'" in written.out
    model = "sim:coder-strong?suite=my-suite&logic=0&lint=0"
    [run] = succeed(call("suite", "run", "my-suite", "--model", model, "--json")).json["runs"]
    assert (run["counts"]["passed"], run["whole"], run["in_process"]) == (2, True, False)
    assert call("init", "--example", "suite").code == 2, "nothing is overwritten"


def test_several_models_and_conditions_are_run_by_one_command(call: Call, suite: Path) -> None:
    models = ("--model", flawless(suite), "--model", wrong(suite))
    conditions = ("--condition", "default", "--condition", "no_guidelines")
    words = ("suite", "run", suite, *models, *conditions, "--limit", "2")
    runs = succeed(call(*words, "--json")).json["runs"]
    assert [(run["model"], run["condition"], run["score"]) for run in runs] == [
        (flawless(suite), "default", 1.0),
        (flawless(suite), "no_guidelines", 1.0),
        (wrong(suite), "default", 0.0),
        (wrong(suite), "no_guidelines", 0.0),
    ]
    assert {(run["targets"], run["calls"]) for run in runs} == {(2, 2)}
    again = succeed(call(*words))
    assert "run 4 had all its results already" in again.err
    typo = call("suite", "run", suite, *models[:2], "--model", "sim:coder-week", "--json")
    assert typo.code == 2, "nothing is run if one model is unknown"
    assert len(succeed(call("suite", "runs", "--json")).json) == 4


def test_a_refused_command_leaves_nothing_behind(call: Call, suite: Path, tmp_path: Path) -> None:
    (suite.parent / "labels.csv").write_text("item,rater,stage\n17,ann,good\n")
    before = sorted(tmp_path.iterdir())
    run = ("suite", "run", suite, "--limit", "1", "--model")
    for words in (
        (*run, "sim:coder-week"),
        (*run, flawless(suite), "--model", "sim:judge"),
        (*run, "openai:gpt-5.2"),
        (*run, "lab:nobody"),
        (*run, flawless(suite), "--condition", "odd"),
        (*run, flawless(suite), "--budget", "usd=0"),
        (*run, flawless(suite), "--replicates", "2", "--failed-of", "7"),
        ("suite", "plan", suite, "--model", flawless(suite), "--evals", "nine"),
        ("suite", "ablate", suite, "--model", flawless(suite), "--section", "Color"),
        ("labels", "import", suite.parent / "labels.csv"),
        ("run", suite.parent / "missing.yaml"),
    ):
        refused = call(*words)
        assert refused.code == 2, (words, refused.err)
        assert sorted(tmp_path.iterdir()) == before, words
    succeed(call("suite", "run", suite, "--model", flawless(suite), "--limit", "1"))
    assert call(*run, flawless(suite), "--filter", "nine").code == 2
    assert len(succeed(call("suite", "runs", "--json")).json) == 1, "what is stored stays"


def test_plan_prints_what_a_run_would_ask(call: Call, suite: Path) -> None:
    words = (suite, "--model", flawless(suite), "--limit", "2", "--replicates", "2")
    planned = succeed(call("suite", "plan", *words, "--budget", "calls=3"))
    assert "1 run, at most 4 new calls, $0.00" in planned.out
    assert "budget: 3 calls, the plan needs up to 4" in planned.err
    assert succeed(call("suite", "run", *words, "--json")).json["runs"][0]["calls"] == 4
    again = succeed(call("suite", "plan", *words, "--json")).json
    assert (again["calls"]["to_pay"], again["runs"][0]["missing"]) == (0, 0)


def test_only_what_failed_in_a_run_is_run_again(call: Call, suite: Path) -> None:
    grader = suite / "001-values/002-value/grader/check.sh"
    right = grader.read_text()
    grader.write_text(right.replace("1001", "1002"))
    first = succeed(call("suite", "run", suite, "--model", flawless(suite), "--json")).json
    assert first["runs"][0]["counts"]["failed"] == 1
    grader.write_text(right)
    words = ("suite", "run", suite, "--model", flawless(suite), "--series", "b", "--json")
    [again] = succeed(call(*words, "--failed-of", "1")).json["runs"]
    [row] = succeed(call("suite", "show", str(again["run"]), "--json")).json["evals"]
    assert row["path"] == "001-values/002-value"
    passed = call(*words, "--failed-of", "2")
    assert (passed.code, passed.json["error"]["message"]) == (2, "every eval of run 2 passed")


def test_guidelines_of_a_file_are_a_condition_of_their_own(call: Call, suite: Path) -> None:
    mine = suite.parent / "mine.md"
    mine.write_text((suite / "guidelines.md").read_text())
    words = ("suite", "run", suite, "--model", flawless(suite), "--limit", "1")
    both = ("--condition", "default", "--guidelines", mine, "--json")
    base, own = succeed(call(*words, *both)).json["runs"]
    assert base["condition"] == "default" and own["condition"].startswith("mine@")
    assert base["calls"] + own["calls"] == 1, "the same text asks the same"
    mine.write_text("Prefer red.\n")
    [other] = succeed(call(*words, "--guidelines", mine, "--json")).json["runs"]
    assert other["condition"] not in (own["condition"], base["condition"])
    assert other["calls"] == 1
    mine.write_text("# Only a title\n")
    assert "the guidelines 'mine' are empty" in call(*words, "--guidelines", mine).err


def test_the_files_of_a_run_are_written_to_a_folder(call: Call, suite: Path) -> None:
    folder = suite.parent / "out"
    words = ("suite", "run", suite, "--model", wrong(suite), "--limit", "1")
    succeed(call(*words, "--output", folder))
    [run] = folder.iterdir()
    place = run / "001-values/001-value"
    assert (place / "task.md").read_text() == "Write value.py, which says: VALUE = 1000\n"
    assert "## value.py" in (place / "reply.md").read_text()
    assert "(1 + 1000)" in (place / "output/value.py").read_text()
    assert "tests failed" in (place / "steps/6-tests.log").read_text()
    (place / "old").touch()
    succeed(call(*words, "--output", folder))
    assert not (place / "old").exists(), "written anew"
    exported = suite.parent / "exported"
    succeed(call("suite", "export", "1", exported, "--eval", "001-values/001-value"))
    assert (exported / "001-values/001-value/output/value.py").is_file()
    assert "holds no suite run" in call("suite", "export", "1", suite).err


def test_ablate_measures_the_effect_of_each_section(call: Call, suite: Path) -> None:
    words = ("suite", "ablate", suite, "--model", flawless(suite), "--replicates", "1")
    said = succeed(call(*words, "--section", "Colour", "--json")).json
    assert [run["condition"] for run in said["runs"]] == ["default", "without Colour"]
    [effect] = said["effects"]
    assert (effect["condition"], effect["verdict"]) == ("without Colour", "no effect shown")
    assert (effect["difference"], effect["changes"][:0]) == (0.0, [])
    refused = call(*words, "--section", "Color", "--json")
    assert (refused.code, refused.json["error"]["choices"]) == (2, ["Style", "Colour"])
    assert "compared with default" in succeed(call(*words, "--section", "Colour")).out


def test_an_ablation_shows_its_base_on_the_evals_that_it_compares(call: Call, suite: Path) -> None:
    words = ("--model", flawless(suite), "--replicates", "1", "--json")
    assert succeed(call("suite", "run", suite, *words)).json["runs"][0]["targets"] == 4
    said = succeed(call("suite", "ablate", suite, "--evals", "/001-", *words)).json
    assert [run["targets"] for run in said["runs"]] == [1, 1, 1]
    assert [run["counts"]["passed"] for run in said["runs"]] == [1, 1, 1]
    assert said["effects"][0]["unpaired"] == []
    assert succeed(call("suite", "show", "1", "--json")).json["targets"] == 4, "the run stays whole"


def test_an_ablation_starts_from_the_given_condition(call: Call, suite: Path) -> None:
    some = ("--replicates", "1", "--evals", "/001-", "--section", "Style")
    words = ("suite", "ablate", suite, "--model", flawless(suite), *some)
    said = succeed(call(*words, "--condition", "web_search", "--json")).json
    names = ["web_search", "web_search without Style"]
    assert [run["condition"] for run in said["runs"]] == names
    for run in said["runs"]:
        [row] = succeed(call("suite", "show", str(run["run"]), "--json")).json["evals"]
        steps = succeed(call("suite", "debug", str(row["eval"]), "--json")).json["steps"]
        assert steps[0]["name"] == "search"
    bare = call(*words, "--condition", "no_guidelines", "--json")
    assert bare.code == 2
    assert "no guidelines to remove" in bare.json["error"]["message"]


def test_a_condition_of_the_suite_may_search(call: Call, suite: Path) -> None:
    table = "[conditions.searching]\nguidelines = false\nweb_search = true\n"
    (suite / "suite.toml").write_text((suite / "suite.toml").read_text() + table)
    words = ("suite", "run", suite, "--model", flawless(suite), "--condition", "searching")
    assert succeed(call(*words, "--json")).json["runs"][0]["counts"]["passed"] == 4
    out = succeed(call("suite", "debug", "001-values/002-value")).out
    assert "1 search" in out
    assert "? simulated: Write value.py, which says: VALUE = 1001" in out


def test_debug_finds_an_eval_by_its_path(call: Call, suite: Path) -> None:
    for model in (flawless(suite), wrong(suite)):
        succeed(call("suite", "run", suite, "--model", model, "--replicates", "2"))
    words = ("suite", "debug", "001-values/003-value")
    newest = succeed(call(*words, "--replicate", "1", "--json")).json
    assert (newest["run"], newest["replicate"], newest["outcome"]) == (2, 1, "failed")
    assert succeed(call(*words, "--run", "1", "--json")).json["outcome"] == "passed"
    missing = call("suite", "debug", "001-values/009-value", "--json")
    assert missing.code == 2
    assert "001-values/003-value" in missing.json["error"]["choices"]
    assert "no replicate 7" in call(*words, "--replicate", "7").err


def test_schedule_runs_only_what_is_listed_with_a_budget(call: Call, suite: Path) -> None:
    model = flawless(suite)
    nothing = call("schedule", suite, "--run")
    assert nothing.code == 2
    assert "no provider's key is set" in nothing.err and "--model ID --write" in nothing.err
    words = ("schedule", suite, "--model", model)
    unlisted = call(*words, "--run")
    assert unlisted.code == 2 and "no model is scheduled" in unlisted.err
    written = succeed(call(*words, "--write", "--json")).json
    assert (written["models"], written["usd_per_month"]) == ([model], 0)
    [row] = succeed(call("schedule", suite, "--json")).json["schedule"]
    assert (row["model"], row["due"], row["due_from"], row["usd"]) == (model, True, None, 0)
    ran = succeed(call("schedule", suite, "--run", "--json")).json
    assert [run["status"] for run in ran["runs"]] == ["complete"]
    again = succeed(call("schedule", suite, "--run"))
    assert "nothing is due before" in again.err
    other = succeed(call("schedule", suite, "--run", "--condition", "no_guidelines", "--json")).json
    assert [run["condition"] for run in other["runs"]] == ["no_guidelines"]
    assert call("schedule", suite, "--model", wrong(suite), "--run").code == 2, "not scheduled"


def test_schedule_proposes_models_of_providers_whose_keys_are_set(
    call: Call, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    proposal = call("schedule", suite)
    assert proposal.code == 2
    assert "proposed" in proposal.out and "openai:" in proposal.out
    assert "judge-gym schedule --write" in proposal.err
    (tmp_path / "judge-gym.models.toml").write_text("[providers.openai]\nrpm = 7\n")
    written = succeed(call("schedule", suite, "--write", "--json")).json
    assert {model.partition(":")[0] for model in written["models"]} == {"openai"}
    assert written["usd_per_month"] >= 1
    succeed(call("schedule", suite, "--write", "--usd-per-month", "0.0001"))
    text = (tmp_path / "judge-gym.models.toml").read_text()
    assert "rpm = 7" in text and text.count("[schedule]") == 1
    short = call("schedule", suite, "--run", "--json")
    assert (short.code, short.json["runs"]) == (3, []), "no call is made over the budget"
    assert "0.00 of 0.0001 USD per month are left" in short.json["skipped"][0]


def test_models_check_runs_a_few_evals(call: Call, suite: Path) -> None:
    words = ("models", "check", flawless(suite), "--suite", suite, "--evals", "2")
    said = succeed(call(*words, "--json")).json
    [run] = said["suite"]
    assert (run["targets"], run["score"], run["whole"]) == (2, 1.0, False)
    assert [one["works"] for one in said["models"]] == [True]
    succeed(call(*words, "--condition", "web_search", "--allow-unisolated"))
    silent = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0, empty=1)}"
    assert call("models", "check", silent, "--suite", suite).code == 1
    prose = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0, prose=1)}"
    [row] = call("models", "check", prose, "--suite", suite, "--json").json["models"]
    assert row["passed"] == "0 of 2" and "holds no file" in row["first reason"]


def test_empty_replies_are_reported_as_final(call: Call, suite: Path) -> None:
    silent = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0, empty=1)}"
    said = call("suite", "run", suite, "--model", silent)
    assert "4 empty replies are final; --series NAME asks again" in said.err
    assert "repeat with" not in said.err


@pytest.mark.parametrize(
    ("words", "choice"),
    [
        (("suite", "run", "nowhere", "--model", "sim:coder-weak"), "python"),
        (("suite", "run", "tiny", "--model", "sim:coder-week"), "sim:coder-weak"),
        (
            ("suite", "run", "tiny", "--model", "sim:coder-weak", "--condition", "terse"),
            "no_guidelines",
        ),
        (("suite", "run", "tiny", "--model", "sim:coder-weak", "--evals", "z"), "001-values"),
        (("suite", "run", "tiny", "--model", "sim:balanced"), "sim:coder-strong"),
        (("suite", "ablate", "tiny", "--model", "sim:strict"), "sim:coder-strong"),
        (("models", "check", "sim:strict", "--suite", "tiny"), "sim:coder-strong"),
    ],
)
def test_bad_input_is_refused_with_the_choices(
    call: Call, suite: Path, words: tuple[str, ...], choice: str
) -> None:
    succeed(call("db", "upgrade"))
    said = call(*words, "--json")
    assert said.code == 2
    assert any(one.startswith(choice) for one in said.json["error"]["choices"])
    assert succeed(call("suite", "runs", "--json")).json == []


def test_a_reached_budget_has_its_exit_code(call: Call, suite: Path) -> None:
    words = ("suite", "run", suite, "--model", flawless(suite))
    said = call(*words, "--budget", "calls=1")
    assert said.code == 3
    assert "continue with: judge-gym" in said.err
    assert (
        succeed(call(*words, "--budget", "calls=9", "--json")).json["runs"][0]["status"]
        == "complete"
    )


def test_a_writer_without_answers_is_refused_with_the_fix(call: Call, suite: Path) -> None:
    said = call("suite", "run", suite, "--model", "sim:coder-weak?logic=0.5")
    assert said.code == 2
    remedy = f"sim:coder-weak?logic=0.5&suite={suite}"
    assert remedy in said.err
    succeed(call("suite", "run", suite, "--model", remedy))


SEARCHING = ("--condition", "web_search", "--json")


@pytest.mark.parametrize("verb", ["run", "ablate", "check"])
def test_a_model_that_cannot_search_is_refused_before_any_call(
    call: Call, suite: Path, tmp_path: Path, verb: str
) -> None:
    with Web() as web:
        table = f'[endpoints.lab]\nbase_url = "{web.url}/v1"\n'
        (tmp_path / "judge-gym.models.toml").write_text(table)
        if verb == "check":
            said = call("models", "check", "lab:llama", "--suite", suite, *SEARCHING)
        else:
            said = call("suite", verb, suite, "--model", "lab:llama", *SEARCHING)
        assert said.code == 2
        assert "lab:llama cannot search the web" in said.json["error"]["message"]
        assert "openai:NAME" in said.json["error"]["choices"]
        assert web.asked == []
    assert not (tmp_path / ".judge-gym").exists()
