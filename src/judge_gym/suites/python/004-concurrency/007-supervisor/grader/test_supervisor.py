"""Children end when the script of a test says so; no real time passes.

A script is a list of steps such as "fail a", "return b", "fail a+return b" (both before the
supervisor looks), "time 4" or "cancel". After each step, the event loop runs until nothing is left
to do. Events are written as "+a" (started), "=a" (returned), "!a" (failed), "-a" (stopped).
"""

import pytest
from inside.grading import Raised

SOURCE = """
    import asyncio
    from solution import Child, Supervisor, TooManyRestarts

    signs = {"started": "+", "returned": "=", "failed": "!", "stopped": "-"}
    now = [0.0]

    async def scenario():
        loop = asyncio.get_running_loop()
        ends, cleanups = {}, []

        def child(name, restart):
            async def work():
                end = ends[name] = loop.create_future()
                try:
                    await end
                except asyncio.CancelledError:
                    for _ in range(5):
                        await asyncio.sleep(0)
                    cleanups.append(name)
                    if name in rude:
                        raise OSError("cleanup failed") from None
                    if name not in quiet:
                        raise
            return Child(name, work, restart)

        async def settle():
            for _ in range(60):
                await asyncio.sleep(0)

        supervisor = Supervisor(
            [child(name, restart) for name, restart in children.items()],
            lambda: now[0],
            **options,
        )
        task = asyncio.create_task(supervisor.run())
        seen, count = [], 0
        for step in ["", *script]:
            for part in step.split("+"):
                word, _, name = part.partition(" ")
                if word == "fail":
                    ends[name].set_exception(LookupError(name))
                elif word == "return":
                    ends[name].set_result(None)
                elif word == "time":
                    now[0] = float(name)
                elif word == "cancel":
                    task.cancel()
            await settle()
            new = supervisor.events[count:]
            count = len(supervisor.events)
            seen.append(" ".join(signs[event.kind] + event.name for event in new))
        if not task.done():
            seen.append("running")
            task.cancel()
            await settle()
        elif task.cancelled():
            seen.append(f"cancelled after {''.join(cleanups)}")
        elif task.exception():
            error = task.exception()
            assert type(error) is TooManyRestarts, repr(error)
            seen.append([error.name, repr(error.__cause__), "".join(cleanups)])
        else:
            seen.append("ended")
        left = len(asyncio.all_tasks()) - before
        return seen if not left else [*seen, f"{left} tasks left"]

    async def main():
        global before
        before = len(asyncio.all_tasks()) + 1
        return await asyncio.wait_for(scenario(), 5)

    asyncio.run(main())
"""
THREE = {"a": "always", "b": "always", "c": "always"}


def play(candidate, *script, children=THREE, rude="", quiet="", **options):
    return candidate.run(
        SOURCE,
        script=list(script),
        children=dict(children),
        options=options,
        rude=rude,
        quiet=quiet,
    )[1:]


def test_children_start_in_order_and_only_the_one_that_ended_restarts(candidate):
    seen = candidate.run(
        SOURCE, script=["fail b", "return a"], children=THREE, options={}, rude="", quiet=""
    )
    assert seen == ["+a +b +c", "!b +b", "=a +a", "running"]


def test_restart_rules(candidate):
    children = {"a": "always", "b": "on-failure", "c": "never"}
    seen = play(candidate, "fail c", "return b", "return a", "fail a", children=children)
    assert seen == ["!c", "=b", "=a +a", "!a +a", "running"]
    assert play(candidate, "fail b", children=children) == ["!b +b", "running"]


def test_run_returns_when_no_child_runs(candidate):
    children = {"a": "on-failure", "b": "never"}
    assert play(candidate, "fail b", "return a", children=children) == ["!b", "=a", "ended"]
    assert play(candidate, children={}) == ["ended"]


def test_all_children_are_stopped_in_reverse_order_and_started_again(candidate):
    seen = play(candidate, "fail b", strategy="all")
    assert seen == ["!b -c -a +a +b +c", "running"]


def test_the_rest_is_stopped_and_started_again(candidate):
    children = {**THREE, "d": "always"}
    seen = play(candidate, "fail b", children=children, strategy="rest")
    assert seen == ["!b -d -c +b +c +d", "running"]


@pytest.mark.parametrize(("strategy", "events"), [("one", "!a +a"), ("all", "!a -c +a +b +c")])
def test_a_child_that_had_ended_starts_again_with_its_group(candidate, strategy, events):
    children = {"a": "always", "b": "never", "c": "always"}
    seen = play(candidate, "return b", "fail a", children=children, strategy=strategy)
    assert seen == ["=b", events, "running"]


def test_children_that_end_together_are_all_noted_first(candidate):
    assert play(candidate, "fail c+return a") == ["=a !c +a +c", "running"]


def test_a_child_that_was_started_again_is_not_treated_twice(candidate):
    seen = play(candidate, "fail c+fail a", "fail b", strategy="all", max_restarts=2)
    assert seen == ["!a !c -b +a +b +c", "!b -c -a +a +b +c", "running"]


def test_a_later_child_of_the_rest_strategy_is_treated_on_its_own(candidate):
    seen = play(candidate, "fail a+fail c", "fail c", strategy="rest", max_restarts=2)
    assert seen == ["!a !c -b +a +b +c", "!c +c", "running"]


def test_too_many_restarts_stop_everything(candidate):
    seen = play(candidate, "fail a", "return b", "fail a", max_restarts=2)
    assert seen == ["!a +a", "=b +b", "!a -c -b", ["a", "LookupError('a')", "cb"]]


def test_a_child_that_returned_too_often_has_no_cause(candidate):
    seen = play(candidate, "return c", max_restarts=0)
    assert seen == ["=c -b -a", ["c", "None", "ba"]]


def test_restarts_are_forgotten_after_their_time(candidate):
    script = ["fail a", "time 4", "fail b", "time 5", "fail a", "time 8.5", "fail a"]
    seen = play(candidate, *script, max_restarts=2)
    assert seen[4:] == ["!a +a", "", "!a -c -b", ["a", "LookupError('a')", "cb"]]


def test_a_cleanup_that_raises_is_no_failure(candidate):
    seen = play(candidate, "fail a", strategy="all", rude="b", quiet="c", max_restarts=1)
    assert seen == ["!a -c -b +a +b +c", "running"]


def test_cancellation_stops_children_in_reverse_order(candidate):
    assert play(candidate, "cancel") == ["-c -b -a", "cancelled after cba"]
    assert play(candidate, "cancel", rude="c", quiet="b") == ["-c -b -a", "cancelled after cba"]


@pytest.mark.parametrize("wrong", ["[child, child], clock", "[child], clock, strategy='some'"])
def test_bad_arguments_are_refused(candidate, wrong):
    source = f"""
    from solution import Child, Supervisor
    clock = lambda: 0.0
    child = Child("a", None)
    Supervisor({wrong})
    None
    """
    with pytest.raises(Raised) as error:
        candidate.run(source)
    assert error.value.kind == "ValueError"


def test_the_names_are_exported_from_their_modules(candidate):
    source = """
    import solution, supervisor.children, supervisor.tree
    [sorted(solution.__all__),
     solution.Child is supervisor.children.Child, solution.Event is supervisor.children.Event,
     solution.Supervisor is supervisor.tree.Supervisor,
     solution.TooManyRestarts is supervisor.tree.TooManyRestarts]
    """
    names = ["Child", "Event", "Supervisor", "TooManyRestarts"]
    assert candidate.run(source) == [names, True, True, True, True]
