"""The live progress of runs: counts, models and the time left, from counters set by hand."""

import pytest

from judge_gym.cli.display import BAR_WIDTH, UNKNOWN_TIME, _bar, _progress_lines, time_left
from judge_gym.engine import LIMITS, MEASURED, RunProgress
from judge_gym.engine.calls.progress import TYPICAL, Pace


def run(
    model: str, done: int = 0, *, endpoint: str = "", expected: Pace | None = None
) -> RunProgress:
    """A run of 120 scores by one model."""
    return RunProgress(
        done={"score": done},
        targets={"score": 120},
        asked={"score": model},
        expected={} if expected is None else {model: expected},
        endpoints={model: endpoint or model},
    )


def answer(
    progress: RunProgress, count: int, *, at_once: int = 1, took: float = 10.0, every: float = 0.0
) -> float:
    """Has calls answered, some at once or one after every so many seconds; returns when."""
    [model] = progress.asked.values()
    now = 100.0
    for number in range(count):
        begun = 100.0 + (number * every if every else took * (number // at_once))
        now = begun + took
        progress.begin_call(model, begun)
        progress.end_call(model, begun, now, None)
        progress.advance("score", 1)
    return now


def seconds(runs: list[RunProgress], now: float) -> float:
    """The seconds left as they are shown; the words are another test's."""
    minutes, _, rest = time_left(runs, now).removesuffix(" left").rpartition(" min ")
    return 60 * int(minutes or 0) + int(rest.removesuffix(" s"))


def test_the_time_left_follows_from_how_long_calls_take_and_how_many_are_in_flight() -> None:
    one_by_one, ten = run("own:a"), run("own:b")
    assert seconds([one_by_one], answer(one_by_one, 20)) == 100 * 10
    assert seconds([ten], answer(ten, 20, at_once=10)) == 10 * 10
    rated = run("own:c")  # one call in 2 s: each takes .5 s, and then its endpoint waits
    assert seconds([rated], answer(rated, 60, took=0.5, every=2.0)) == pytest.approx(120, abs=3)


def test_calls_in_flight_are_partly_done() -> None:
    progress = run("own:a")
    now = answer(progress, 100, at_once=20)
    for _ in range(20):
        progress.begin_call("own:a", now)
    assert seconds([progress], now) == 10
    assert seconds([progress], now + 6) == 4


def test_nothing_is_promised_before_a_round_of_calls_has_ended() -> None:
    """The first answers are those of the fastest calls: 3 of 64 say nothing of the others."""
    progress = run("own:a")
    for _ in range(64):
        progress.begin_call("own:a", 100.0)
    for _ in range(10):
        progress.end_call("own:a", 100.0, 101.0, None)
        progress.advance("score", 1)
    assert time_left([progress], 101.0) == UNKNOWN_TIME


def test_no_time_is_shown_when_nobody_is_left_to_be_asked() -> None:
    progress = run("own:a")
    progress.advance("score", progress.targets["score"])
    assert time_left([progress], 0.0) == ""
    assert _progress_lines([progress], 0.0).startswith("score 120/120 | 0 paid, 0 reused, 0.00 USD")
    assert "USD |" not in _progress_lines([progress], 0.0)


def test_models_at_one_endpoint_share_its_speed_and_others_are_asked_at_the_same_time() -> None:
    first, second = run("own:a", endpoint="here"), run("own:b", endpoint="here")
    now = answer(first, 120, at_once=2)
    assert seconds([first, second], now) == 600, "as fast as the first, though not asked yet"
    elsewhere = run("far:c")
    answer(elsewhere, 60, at_once=1)
    assert seconds([first, second, elsewhere], 700.0) == 600
    both = [run(name, endpoint="here", expected=Pace(2.5, MEASURED)) for name in ("a", "b")]
    assert time_left(both, 0.0) == "10 min 0 s left, at the speed of earlier calls"


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        (Pace(2.5, MEASURED), "5 min 0 s left, at the speed of earlier calls"),
        (Pace(2.0, LIMITS), "4 min 0 s left at least, by declared limits"),
        (Pace(0.1, TYPICAL), UNKNOWN_TIME),
        (None, UNKNOWN_TIME),
    ],
)
def test_before_there_are_answers_the_estimate_names_its_source(
    expected: Pace | None, line: str
) -> None:
    assert time_left([run("own:new", expected=expected)], 250.0) == line


def test_each_model_has_its_answers_rate_calls_in_flight_and_last_error() -> None:
    progress = run("local:slow")
    now = answer(progress, 15)
    for _ in range(4):
        progress.begin_call("local:slow", now)
    progress.models["local:slow"].error = "HTTP 500"
    progress.paid, progress.reused = 16, 3
    first, second = _progress_lines([progress], now).splitlines()
    assert first == f"score 15/120 | 16 paid, 3 reused, 0.00 USD | {time_left([progress], now)}"
    assert second == "  local:slow: 15 answered, 0.1/s, 4 in flight, last error: HTTP 500"


@pytest.mark.parametrize(
    ("done", "total", "full", "share"),
    [(0, 40, 0, "  0 %"), (10, 40, BAR_WIDTH // 4, " 25 %"), (40, 40, BAR_WIDTH, "100 %")],
)
def test_a_live_display_has_a_bar_as_long_as_the_share_of_steps(
    done: int, total: int, full: int, share: str
) -> None:
    (filled, _), (rest, _), (text, _) = _bar(done, total)
    assert (len(filled), len(filled + rest), text.strip("\n").strip()) == (
        full,
        BAR_WIDTH,
        share.strip(),
    )


def test_a_bar_is_full_only_when_the_last_step_is_done() -> None:
    (filled, _), _, (text, _) = _bar(9_999, 10_000)
    assert len(filled) < BAR_WIDTH and "99 %" in text
    assert _bar(0, 0) == []


def test_suite_runs_that_are_executed_together_have_a_line_each() -> None:
    runs = []
    for label, passed, failed in (("sim:a, default", 3, 0), ("sim:b, no_guidelines", 1, 2)):
        progress = RunProgress(label=label, targets={"generation": 16, "evals": 16})
        for outcome in ["passed"] * passed + ["failed"] * failed:
            progress.count_outcome(outcome)
            progress.advance("evals", 1)
        runs.append(progress)
    [_, first, second] = _progress_lines(runs, 20.0).splitlines()
    assert first == "  sim:a, default         3/16 evals, 3 passed"
    assert second == "  sim:b, no_guidelines   3/16 evals, 1 passed, 2 failed"


def test_a_part_of_a_run_counts_its_calls_in_the_whole_as_well() -> None:
    whole = RunProgress()
    part = whole.part()
    part.begin_call("own:x", 1.0)
    part.begin_call("own:x", 2.0)
    part.end_call("own:x", 1.0, 3.0, None)
    part.end_call("own:x", 2.0, 3.5, "HTTP 500")
    part.begin_call("own:x", 4.0)
    seen = whole.models["own:x"]
    assert (seen.answered, seen.in_flight, seen.error) == (1, 1, "HTTP 500")
    assert (seen.seconds, seen.begun) == (3.5, 4.0)


def test_a_stopped_command_says_how_many_calls_it_waits_for_and_what_a_second_stop_loses() -> None:
    progress = run("own:a")
    for _ in range(2):
        progress.begin_call("own:a", 0.0)
    assert "stopping" not in _progress_lines([progress], 1.0)
    progress.ending = True
    first, second, _ = _progress_lines([progress], 1.0).splitlines()
    assert first.startswith("stopping: 2 calls in flight") and "Ctrl-C again" in first
    assert "left" not in second, "no further call begins"
    for _ in range(2):
        progress.end_call("own:a", 0.0, 2.0, None)
    assert _progress_lines([progress], 2.0).startswith("stopping: no call is in flight")
