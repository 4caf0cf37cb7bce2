"""Nothing waits for a clock: attempts and sleeps end when the script of a test says so.

A script is a list of steps such as "ok 0", "fail 1", "tick": after each one, the event loop runs
until nothing is left to do.
"""

import pytest

SOURCE = """
    import asyncio
    from solution import hedged

    log = []

    async def scenario():
        before = len(asyncio.all_tasks())
        loop = asyncio.get_running_loop()
        ends = [loop.create_future() for _ in range(count)]
        sleeps = []

        def attempt(number):
            async def work():
                log.append(f"start {number}")
                try:
                    return await ends[number]
                finally:
                    if not ends[number].done() or ends[number].cancelled():
                        for _ in range(5):
                            await asyncio.sleep(0)
                        log.append(f"cleanup {number}")
                        if number in rude:
                            raise OSError("cleanup failed")
            return work

        async def sleep(seconds):
            log.append(f"sleep {seconds}")
            over = loop.create_future()
            sleeps.append(over)
            try:
                await over
            finally:
                if over.cancelled():
                    log.append("awake")

        async def settle():
            for _ in range(30):
                await asyncio.sleep(0)

        task = asyncio.create_task(hedged([attempt(n) for n in range(count)], 7, sleep))
        task.add_done_callback(lambda _: log.append("end"))
        await settle()
        for step in script:
            for part in step.split(" and "):
                word, _, number = part.partition(" ")
                if word == "ok":
                    ends[int(number)].set_result("result " + number)
                elif word == "fail":
                    ends[int(number)].set_exception(LookupError(number))
                elif word == "tick":
                    sleeps[-1].set_result(None)
                else:
                    task.cancel()
            await settle()
        left = len(asyncio.all_tasks()) - before
        if not task.done():
            task.cancel()
            return ["still running", left]
        if task.cancelled():
            return ["cancelled", left]
        error = task.exception()
        if error is None:
            return [task.result(), left]
        if isinstance(error, ExceptionGroup):
            return [type(error).__name__, [str(each) for each in error.exceptions], left]
        return [type(error).__name__, left]

    ended = asyncio.run(asyncio.wait_for(scenario(), 5))
    [ended, log[:log.index("end") + 1] if "end" in log else log]
"""


def play(candidate, count, *script, rude=()):
    return candidate.run(SOURCE, count=count, script=list(script), rude=list(rude))


def test_a_quick_success_starts_nothing_else(candidate):
    ended, log = play(candidate, 3, "ok 0")
    assert ended == ["result 0", 0]
    assert log == ["start 0", "sleep 7", "awake", "end"]


def test_a_single_attempt_needs_no_sleep(candidate):
    assert play(candidate, 1, "ok 0") == [["result 0", 0], ["start 0", "end"]]


def test_the_next_attempt_starts_after_the_delay_and_the_first_goes_on(candidate):
    ended, log = play(candidate, 2, "tick", "ok 0")
    assert ended == ["result 0", 0]
    assert log == ["start 0", "sleep 7", "start 1", "cleanup 1", "end"]


def test_each_start_begins_a_new_delay(candidate):
    ended, log = play(candidate, 3, "tick", "tick", "ok 1")
    assert ended == ["result 1", 0]
    starts = [line for line in log if not line.startswith("cleanup")]
    assert starts == ["start 0", "sleep 7", "start 1", "sleep 7", "start 2", "end"]
    assert sorted(log[-3:-1]) == ["cleanup 0", "cleanup 2"]


def test_a_failure_starts_the_next_attempt_at_once_and_cancels_the_sleep(candidate):
    ended, log = play(candidate, 3, "fail 0", "ok 1")
    assert ended == ["result 1", 0]
    assert [line for line in log if line.startswith("start")] == ["start 0", "start 1"]
    assert log.count("sleep 7") == 2
    assert log.count("awake") == 2


def test_any_failure_starts_another_attempt(candidate):
    ended, log = play(candidate, 4, "tick", "fail 0", "fail 1", "ok 3")
    assert ended == ["result 3", 0]
    assert [line for line in log if line.startswith("start")] == [f"start {n}" for n in range(4)]


def test_two_failures_at_once_start_two_attempts(candidate):
    ended, log = play(candidate, 4, "tick", "fail 0 and fail 1", "ok 2")
    assert ended == ["result 2", 0]
    assert "start 3" in log


def test_failures_after_the_last_start_are_awaited(candidate):
    ended, _ = play(candidate, 2, "tick", "fail 1", "ok 0")
    assert ended == ["result 0", 0]


def test_all_failures_are_raised_in_the_order_of_the_attempts(candidate):
    ended, _ = play(candidate, 3, "tick", "tick", "fail 2", "fail 0", "fail 1")
    assert ended == ["ExceptionGroup", ["0", "1", "2"], 0]


def test_of_two_successes_the_earlier_attempt_counts(candidate):
    ended, _ = play(candidate, 3, "tick", "ok 1 and ok 0")
    assert ended == ["result 0", 0]


@pytest.mark.parametrize("step", ["tick and ok 0", "fail 0 and ok 1"])
def test_a_success_counts_before_a_delay_and_before_failures(candidate, step):
    script = ["tick", step] if "1" in step else [step]
    ended, log = play(candidate, 4, *script)
    assert ended[0].startswith("result")
    assert len([line for line in log if line.startswith("start")]) == len(script)


def test_a_cleanup_that_raises_is_ignored(candidate):
    ended, log = play(candidate, 2, "tick", "ok 0", rude=[1])
    assert ended == ["result 0", 0]
    assert log[-2:] == ["cleanup 1", "end"]


def test_cancellation_waits_for_every_cleanup(candidate):
    ended, log = play(candidate, 3, "tick", "cancel")
    assert ended == ["cancelled", 0]
    assert log[-1] == "end"
    assert sorted(log[-4:-1]) == ["awake", "cleanup 0", "cleanup 1"]


def test_no_attempts_are_refused(candidate):
    assert play(candidate, 0)[0] == ["ValueError", 0]
