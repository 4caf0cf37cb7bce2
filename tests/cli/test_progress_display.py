"""The live progress of runs: counts, models and the time left, from counters set by hand."""

from judge_gym.cli.display import _progress_lines, seconds_left
from judge_gym.engine import RunProgress
from judge_gym.engine.calls.progress import ModelProgress


def run(model: str, done: int, answered: int, *, expected: float | None = None) -> RunProgress:
    """A run of 120 scores by one model that was first asked at second 100."""
    models = {model: ModelProgress(answered, 4, "", 100.0)} if answered else {}
    return RunProgress(
        done={"score": done},
        targets={"score": 120},
        asked={"score": model},
        models=models,
        expected={} if expected is None else {model: expected},
    )


def test_the_time_left_is_that_of_the_slowest_model_and_no_average() -> None:
    slow, fast = run("local:slow", 15, 15), run("sim:fast", 119, 119)
    assert seconds_left([slow, fast], 250.0) == 105 * 150 / 15, "10 s for each of its answers"
    assert seconds_left([fast], 250.0) == 150 / 119


def test_before_the_first_answer_the_time_left_is_what_was_expected() -> None:
    assert seconds_left([run("own:new", 0, 0, expected=2.5)], 250.0) == 300
    assert seconds_left([run("own:new", 0, 0)], 250.0) is None
    assert seconds_left([run("own:new", 120, 0)], 250.0) == 0


def test_each_model_has_its_answers_rate_calls_in_flight_and_last_error() -> None:
    progress = run("local:slow", 15, 15)
    progress.models["local:slow"].error = "HTTP 500"
    progress.paid, progress.reused = 16, 3
    first, second = _progress_lines([progress], 150.0, 250.0).splitlines()
    assert first == "score 15/120 | 16 paid, 3 reused, 0.00 USD | 17 min 30 s left"
    assert second == "  local:slow: 15 answered, 0.1/s, 4 in flight, last error: HTTP 500"


def test_suite_runs_that_are_executed_together_have_a_line_each() -> None:
    runs = []
    for label, passed, failed in (("sim:a, default", 3, 0), ("sim:b, no_guidelines", 1, 2)):
        progress = RunProgress(label=label, targets={"generation": 16, "evals": 16})
        for outcome in ["passed"] * passed + ["failed"] * failed:
            progress.count_outcome(outcome)
            progress.advance("evals", 1)
        runs.append(progress)
    [_, first, second] = _progress_lines(runs, 10.0, 20.0).splitlines()
    assert first == "  sim:a, default         3/16 evals, 3 passed"
    assert second == "  sim:b, no_guidelines   3/16 evals, 1 passed, 2 failed"


def test_a_part_of_a_run_counts_its_calls_in_the_whole_as_well() -> None:
    whole = RunProgress()
    part = whole.part()
    part.begin_call("own:x")
    part.begin_call("own:x")
    part.end_call("own:x", None)
    part.end_call("own:x", "HTTP 500")
    part.begin_call("own:x")
    seen = whole.models["own:x"]
    assert (seen.answered, seen.in_flight, seen.error) == (1, 1, "HTTP 500")
