"""Scripts of requests; after each step the event loop runs until nothing is left to do.

"r1" and "w1" ask for a lock in a task of that name; "-r1" lets go of it; "x1" cancels the task.
Steps joined by "+" happen without giving control to any task. Each step gives who holds the lock,
and the three counts.
"""

import pytest

SOURCE = """
    import asyncio
    from solution import FairLock

    async def scenario():
        lock = FairLock()
        tasks, holders, seen = {}, [], []

        async def request(name):
            await (lock.acquire_read() if name[0] == "r" else lock.acquire_write())
            holders.append(name)

        async def settle():
            for _ in range(10):
                await asyncio.sleep(0)

        def counts():
            return f"{lock.readers}{'w' if lock.writing else '-'}{lock.waiting}"

        for step in script:
            for part in step.split("+"):
                if part[0] == "-":
                    holders.remove(part[1:])
                    lock.release_read() if part[1] == "r" else lock.release_write()
                elif part[0] == "d":
                    holders[holders.index("w" + part[1:])] = "r" + part[1:]
                    lock.downgrade()
                elif part[0] == "x":
                    tasks["r" + part[1:] if "r" + part[1:] in tasks else "w" + part[1:]].cancel()
                elif part[0] == "?":
                    seen.append(counts())
                else:
                    tasks[part] = asyncio.create_task(request(part))
            await settle()
            seen.append(" ".join([*holders, counts()]))
        cancelled = sorted(name for name, task in tasks.items() if task.cancelled())
        for task in tasks.values():
            task.cancel()
        return seen + cancelled

    asyncio.run(asyncio.wait_for(scenario(), 5))
"""


def play(candidate, script):
    return candidate.run(SOURCE, script=script.split())


def test_readers_share_and_a_writer_is_alone(candidate):
    assert play(candidate, "r1 r2 w3 -r1 -r2 -w3") == [
        "r1 1-0",
        "r1 r2 2-0",
        "r1 r2 2-1",
        "r2 1-1",
        "w3 0w0",
        "0-0",
    ]


def test_a_reader_waits_behind_a_waiting_writer(candidate):
    assert play(candidate, "r1 w2 r3 -r1 -w2") == [
        "r1 1-0",
        "r1 1-1",
        "r1 1-2",
        "w2 0w1",
        "r3 1-0",
    ]


def test_readers_up_to_the_next_writer_are_granted_together(candidate):
    seen = play(candidate, "w1 r2 r3 w4 r5 -w1 -r2 -r3 -w4")
    assert seen[5:] == ["r2 r3 2-2", "r3 1-2", "w4 0w1", "r5 1-0"]


def test_writers_are_granted_in_order(candidate):
    seen = play(candidate, "w1 w2 w3 -w1 -w2 -w3")
    assert seen[3:] == ["w2 0w1", "w3 0w0", "0-0"]


def test_a_grant_counts_before_its_task_runs(candidate):
    seen = play(candidate, "w1 r2 r3 w4 -w1+?")
    assert seen[4:] == ["2-1", "r2 r3 2-1"]


def test_nobody_overtakes_a_request_that_was_granted(candidate):
    assert play(candidate, "w1 w2 -w1+r3")[2:] == ["w2 0w1"]


def test_a_cancelled_writer_lets_the_readers_behind_it_in(candidate):
    assert play(candidate, "r1 w2 r3 r4 w5 x2")[5:] == ["r1 r3 r4 3-1", "w2"]


def test_a_cancelled_request_in_the_middle_keeps_the_order(candidate):
    seen = play(candidate, "w1 w2 r3 w4 x3 -w1 -w2")
    assert seen[4:] == ["w1 0w2", "w2 0w1", "w4 0w0", "r3"]


def test_a_granted_writer_that_is_cancelled_passes_the_lock_on(candidate):
    assert play(candidate, "w1 w2 w3 -w1+x2")[3:] == ["w3 0w0", "w2"]


def test_a_granted_reader_that_is_cancelled_passes_the_lock_on(candidate):
    assert play(candidate, "w1 r2 w3 -w1+x2")[3:] == ["w3 0w0", "r2"]


def test_one_of_two_granted_readers_is_cancelled(candidate):
    seen = play(candidate, "w1 r2 r3 w4 -w1+x3 -r2")
    assert seen[4:] == ["r2 1-1", "w4 0w0", "r3"]


def test_a_cancelled_request_that_waited_holds_nothing(candidate):
    assert play(candidate, "w1 r2 x2 -w1 w3")[2:] == ["w1 0w0", "0-0", "w3 0w0", "r2"]


def test_downgrade_admits_the_readers_at_the_front_and_no_writer(candidate):
    seen = play(candidate, "w1 r2 r3 w4 r5 d1 -r1 -r2 -r3")
    assert seen[5:] == ["r1 r2 r3 3-2", "r2 r3 2-2", "r3 1-2", "w4 0w1"]


def test_downgrade_does_not_pass_over_a_waiting_writer(candidate):
    assert play(candidate, "w1 w2 r3 d1+? -r1")[3:] == ["1-2", "r1 1-2", "w2 0w1"]


def test_a_free_lock_is_granted_without_giving_control(candidate):
    source = """
    from solution import FairLock
    lock = FairLock()
    seen = []
    for acquire in (lock.acquire_read, lock.acquire_read):
        try:
            acquire().send(None)
        except StopIteration:
            seen.append(lock.readers)
    seen
    """
    assert candidate.run(source) == [1, 2]


@pytest.mark.parametrize(
    ("script", "counts"),
    [
        ("lock.release_read()", "0False"),
        ("lock.release_write()", "0False"),
        ("lock.downgrade()", "0False"),
        ("await lock.acquire_write(); lock.release_read()", "0True"),
        ("await lock.acquire_read(); lock.release_write()", "1False"),
        ("await lock.acquire_read(); lock.downgrade()", "1False"),
    ],
)
def test_what_nobody_holds_cannot_be_released(candidate, script, counts):
    source = f"""
    import asyncio
    from solution import FairLock
    async def scenario():
        lock = FairLock()
        try:
            {script}
        except RuntimeError:
            return f"{{lock.readers}}{{lock.writing}}"
    asyncio.run(scenario())
    """
    assert candidate.run(source) == counts
