"""At a clock of the grader's own; threads meet at a barrier."""

import json

import pytest

START = """
    import threading
    from jobs.model import DuplicateJob, Job, LeaseLost, Reject
    from jobs.queue import Queue
    from jobs.worker import Worker

    now = [100.0]
    def clock():
        return now[0]
    def job(name):
        return Job(name, "kind", {"name": name})
    def queue_of(names, **options):
        queue = Queue(clock, **options)
        for name in names:
            queue.put(job(name))
        return queue
    def taken(queue):
        lease = queue.take()
        return lease and f"{lease.job.id}{lease.job.attempts}"
    def dead(queue):
        return [[job.id, job.attempts, reason] for job, reason in queue.dead]
    def error_of(function, *args):
        try:
            function(*args)
        except Exception as error:
            return type(error).__name__

"""


def run(candidate, source):
    return candidate.run(START + source)


def test_jobs_come_by_time_and_then_by_order(candidate):
    source = """
    queue = Queue(clock)
    queue.put(job("late"), delay=5)
    queue.put(job("b"))
    queue.put(job("a"))
    seen = [taken(queue)]
    now[0] = 99
    queue.put(job("early"))
    now[0] = 104.5
    seen += [taken(queue), taken(queue), taken(queue)]
    now[0] = 105
    seen + [taken(queue), queue.next_due()]
    """
    assert run(candidate, source) == ["b0", "early0", "a0", None, "late0", 160.0]


def test_an_id_is_used_once_whatever_became_of_its_job(candidate):
    source = """
    queue = queue_of(["waiting", "done", "dead", "leased"][1:])
    queue.take().done()
    queue.take().reject("bad")
    lease = queue.take()
    queue.put(job("waiting"))
    [error_of(queue.put, job(name)) for name in ("waiting", "done", "dead", "leased")]
    """
    assert run(candidate, source) == ["DuplicateJob"] * 4


def test_retries_wait_longer_each_time_up_to_a_limit(candidate):
    source = """
    queue = queue_of("a", max_attempts=5, backoff=2, max_backoff=7)
    seen = []
    for reason in ("one", "two", "three", "four", "five"):
        queue.take().fail(reason)
        seen.append(queue.next_due())
        if seen[-1]:
            now[0] = seen[-1] - 0.5
            seen.append(taken(queue))
            now[0] = seen[-2]
    [seen, dead(queue)]
    """
    times = [102, None, 106, None, 113, None, 120, None, None]
    assert run(candidate, source) == [times, [["a", 5, "five"]]]


def test_a_lease_is_lost_at_its_time_and_the_backoff_counts_from_then(candidate):
    source = """
    queue = queue_of("a", lease=10, backoff=3)
    lease = queue.take()
    now[0] = 109.5
    seen = [queue.next_due()]
    now[0] = 111
    seen += [error_of(lease.done), queue.next_due()]
    now[0] = 113
    seen + [taken(queue), error_of(lease.fail, "late"), dead(queue)]
    """
    assert run(candidate, source) == [110, "LeaseLost", 113, "a1", "LeaseLost", []]


def test_a_lease_is_lost_exactly_when_it_ends(candidate):
    source = """
    queue = queue_of("a", lease=10, max_attempts=1)
    lease = queue.take()
    now[0] = 110
    [error_of(lease.extend), dead(queue), queue.next_due(), taken(queue)]
    """
    assert run(candidate, source) == ["LeaseLost", [["a", 1, "lease expired"]], None, None]


def test_extending_counts_from_now(candidate):
    source = """
    queue = queue_of("a", lease=10)
    lease = queue.take()
    now[0] = 106
    lease.extend()
    now[0] = 115.5
    seen = [taken(queue), queue.next_due()]
    lease.done()
    seen + [queue.next_due(), error_of(lease.extend)]
    """
    assert run(candidate, source) == [None, 116, None, "LeaseLost"]


def test_leases_that_are_lost_together_end_in_order_of_their_time(candidate):
    source = """
    queue = queue_of("abc", lease=10, max_attempts=1)
    first = queue.take()
    now[0] = 101
    queue.take()
    now[0] = 102
    queue.take()
    first.extend()
    now[0] = 105
    first.extend()
    now[0] = 200
    queue.next_due()
    [entry[0] for entry in dead(queue)]
    """
    assert run(candidate, source) == ["b", "c", "a"]


@pytest.mark.parametrize("end", ["done()", "fail('x')", "reject('x')", "release()"])
def test_a_lease_ends_once(candidate, end):
    source = f"""
    queue = queue_of("a")
    lease = queue.take()
    lease.{end}
    ends = (lease.done, lease.extend, lease.release)
    errors = [error_of(each) for each in ends] + [error_of(lease.fail, "y")]
    [errors, len(queue.dead), queue.next_due()]
    """
    errors, dead, due = run(candidate, source)
    assert errors == ["LeaseLost"] * 4
    expected = {"d": (0, None), "f": (0, 101), "r": (1, None)}[end[0]]
    assert (dead, due) == ((0, 100) if end == "release()" else expected)


def test_a_released_job_keeps_its_attempts(candidate):
    source = """
    queue = queue_of("a", max_attempts=2)
    queue.take().release()
    seen = [taken(queue)]
    now[0] += 1000
    queue.next_due()
    now[0] += 1000
    lease = queue.take()
    lease.release()
    seen + [taken(queue)]
    """
    assert run(candidate, source) == ["a0", "a1"]


def test_threads_never_share_a_job(candidate):
    source = """
    names = [str(number) for number in range(400)]
    queue = queue_of(names)
    barrier, taken_by, errors = threading.Barrier(8, timeout=5), [], []
    def work():
        barrier.wait()
        try:
            while (lease := queue.take()) is not None:
                taken_by.append(lease.job.id)
                lease.done()
        except Exception as error:
            errors.append(repr(error))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(8)
    [sorted(taken_by) == sorted(names), errors, queue.next_due()]
    """
    assert run(candidate, source) == [True, [], None]


def test_the_worker_ends_jobs_as_their_handlers_end(candidate):
    source = """
    def handler(payload):
        name = payload["name"]
        if name == "key":
            raise KeyError("x")
        if name == "no":
            raise Reject("not this one")
        if name == "late":
            now[0] += 60
    queue = queue_of(["ok", "key", "no"])
    queue.put(Job("other", "unknown", {}))
    worker = Worker(queue, {"kind": handler})
    runs = [worker.run_once() for _ in range(5)]
    seen = [dead(queue), queue.next_due()]
    now[0] = 101
    runs.append(worker.run_once())
    now[0] = 103
    runs.append(worker.run_once())
    queue.put(job("late"))
    runs.append(worker.run_once())
    [runs, seen, dead(queue)[2:], queue.next_due()]
    """
    first = [["no", 1, "not this one"], ["other", 1, "no handler for unknown"]]
    assert run(candidate, source) == [
        [True] * 4 + [False] + [True] * 3,
        [first, 101],
        [["key", 3, "KeyError: 'x'"]],
        164,
    ]


def test_an_interrupt_releases_the_job_and_is_raised(candidate):
    source = """
    def handler(payload):
        raise KeyboardInterrupt
    queue = queue_of("a")
    try:
        Worker(queue, {"kind": handler}).run_once()
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    [interrupted, taken(queue), dead(queue)]
    """
    assert run(candidate, source) == [True, "a0", []]


def program(candidate, jobs, *options):
    lines = [line if isinstance(line, str) else json.dumps(line) for line in jobs]
    return candidate.command(["{python}", "solution.py", *options], "\n".join(lines) + "\n")


def made(name, kind, **payload):
    return {"id": name, "kind": kind, "payload": payload}


def test_the_program_works_until_the_queue_is_empty(candidate):
    jobs = [
        made("1", "print", text="one"),
        "",
        made("2", "flaky", failures=2),
        made("3", "print", text="three"),
    ]
    ran = program(candidate, jobs)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "one\nthree\n", "")


def test_the_program_reports_dead_jobs(candidate):
    jobs = [
        made("1", "flaky", failures=2),
        made("2", "mail"),
        made("3", "print"),
        made("4", "flaky", failures=1),
    ]
    ran = program(candidate, jobs, "--max-attempts", "2")
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.splitlines() == [
        "2: no handler for mail",
        "1: RuntimeError: not yet",
        "3: KeyError: 'text'",
    ]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": 1, "kind": "print", "payload": {}}', '{"id": "a", "kind": "print"}']
)
def test_a_bad_line_ends_the_program_before_any_job(candidate, line):
    ran = program(candidate, [made("1", "print", text="one"), "", line])
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("line 3: ")


def test_a_repeated_id_is_a_bad_line(candidate):
    ran = program(candidate, [made("1", "print", text="a")] * 2)
    assert (ran.code, ran.stdout, ran.stderr[:8]) == (2, "", "line 2: ")
