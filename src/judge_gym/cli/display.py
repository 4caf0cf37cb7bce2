"""Prints tables and live progress on a terminal, and plain lines elsewhere."""

import json
import os
import re
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from judge_gym.cli.layout import Grid, fit, wrap
from judge_gym.records.numbers import number
from judge_gym.records.numbers import plural as plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from judge_gym.engine import RunProgress

    Runs = Sequence[RunProgress] | Mapping[int, RunProgress]
    WatchRuns = Callable[[Runs], None]

PIPE_WIDTH = 120
"""Columns where output is no terminal and the variable COLUMNS is not set."""
NUMBERED = ("run", "sample", "eval", "evidence", "window", "call", "id", "item")
"""Columns with the numbers of records."""
SIDE_WIDTH = 36
"""The least columns of a text that stands beside another."""
UNKNOWN_TIME = "time left: not known yet"
FEW_ANSWERS = 4
"""Fewer answers tell nothing of the time left."""
BAR_WIDTH = 32
"""Columns of the bar of a live display."""
STATE_STYLES = {
    "green": (
        *("complete", "best", "supported", "equivalent", "pass", "passed", "ended"),
        *("scored", "yes", "evidence-done", "rubric-done"),
    ),
    "cyan": ("pending", "running", "scoring", "probing", "in progress", "started"),
    "yellow": (
        *("complete-with-failures", "paused", "over-budget", "cancelled", "undecided"),
        *("too few items", "no data", "without data", "inconclusive", "draft"),
    ),
    "red": ("failed", "fail", "worse", "contradicted"),
}
"""The colours of cells that state how something went. Rich prints none where NO_COLOR is set."""
STATES = {
    style: re.compile(rf"(?<!\S )(?<!\S)(?:{'|'.join(map(re.escape, words))})(?! ?\S)")
    for style, words in STATE_STYLES.items()
}
"""What matches a cell that is one of these words: two spaces or the line's end stand around it."""
QUIET_SECONDS = 10.0
"""Seconds between two lines of progress where output is no terminal."""


@cache
def console(*, stderr: bool = False) -> "Console":
    """The console of standard output or standard error."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    # What users and models write is text: no markup, no emoji codes.
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def _live(*, stderr: bool) -> "Live | None":
    """Opens a live display, if the console is a terminal."""
    terminal = console(stderr=stderr)
    if not terminal.is_terminal:
        return None
    from rich.live import Live

    return Live(console=terminal, refresh_per_second=4, transient=True)


def print_json(value: Any) -> None:
    """Prints one JSON document on standard output."""
    print(json.dumps(value, indent=2, default=str))


def times(count: int) -> str:
    """Says how often something happened.

    >>> [times(0), times(1), times(2)]
    ['never', 'once', '2 times']
    """
    return {0: "never", 1: "once"}.get(count, f"{count:,} times")


def records(frame: Any) -> list[dict[str, Any]]:
    """Lists a frame's rows with None for undefined values, which JSON cannot express."""
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


def heading(title: str, text: str) -> None:
    """Prints a title and the text below it, whose lines stay as they are."""
    console().print(f"\n{title}", style="bold", markup=False)
    console().print(f"{text}\n", markup=False)


def text(line: str) -> None:
    """Prints a sentence, wrapped at words."""
    for part in wrap(line, width()):
        console().print(part)


def warning(line: str) -> None:
    """Prints a sentence that readers must not overlook."""
    for part in wrap(line, width()):
        console().print(part, style="bold yellow")


def fits(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a table fits the terminal without any change."""
    grid = _grid(rows)
    return fit(grid, width(), one_line=True).grid == grid


def table(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    note: str = "",
    compact: bool = False,
    one_line: bool = False,
    optional: Sequence[str] = (),
    essential: Sequence[str] = (),
) -> None:
    """Prints a table that fits the terminal. Undefined values are dashes.

    Args:
        title: stands above it.
        rows: of equal keys, which are the heads of its columns.
        note: stands below it.
        compact: leave out columns of zeros.
        one_line: print each row in one line, with fewer columns where there is no room.
        optional: columns that are left out first where there is no room.
        essential: columns that are never left out.
    """
    if rows:
        grid = _grid(rows, compact=compact, optional=optional, essential=essential)
        grid_table = _table(title, grid, note=note, one_line=one_line)
        console().print(grid_table, end="\n\n")


def show_rows(
    rows: Sequence[Mapping[str, Any]],
    as_json: bool,
    *,
    empty: str = "",
    columns: Collection[str] | None = None,
    **options: Any,
) -> None:
    """Prints rows as JSON or some of their columns as a table, or else `empty`."""
    if as_json:
        print_json(rows)
    elif rows:
        selected = [
            {k: v for k, v in row.items() if columns is None or k in columns} for row in rows
        ]
        table("", selected, **options)
    elif empty:
        print(empty)


def facts(title: str, values: Mapping[str, Any]) -> None:
    """Prints names and values as a table of two columns."""
    table(title, [{"": name, " ": value} for name, value in values.items()])


def _table(title: str, grid: Grid, *, note: str = "", one_line: bool = False) -> "Text":
    from rich.text import Text

    layout = fit(grid, width(), one_line=one_line)
    head, body = layout.lines()
    lines = [(title, "bold")] if title else []
    if head:
        lines += [*((line, "bold") for line in head), ("─" * layout.width(), "dim")]
    rows = len(lines), len(lines) + len(body)
    lines += [(line, "") for line in body]
    ended = [f"{text}." if text[-1:].isalnum() else text for text in (note, *layout.grid.notes)]
    below = " ".join(filter(None, ended))
    lines += [(line, "dim") for line in wrap(below, width()) if line]
    parts = [Text(line, style) for line, style in lines]
    for row in parts[slice(*rows)]:
        for style, states in STATES.items():
            row.highlight_regex(states, style)
    text = Text("\n").join(parts)
    text.no_wrap, text.overflow = True, "ignore"
    return text


def _grid(
    rows: Sequence[Mapping[str, Any]],
    *,
    compact: bool = False,
    optional: Sequence[str] = (),
    essential: Sequence[str] = (),
) -> Grid:
    zero = [name for name in rows[0] if compact and all(row[name] == 0 for row in rows)]
    names = [name for name in rows[0] if name not in zero]
    return Grid(
        tuple(map(_head, names)),
        tuple(tuple(_cell(name, row[name]) for name in names) for row in rows),
        tuple(_numeric([row[name] for row in rows]) for name in names),
        (f"Not shown, since all are zero: {', '.join(zero)}.",) if zero else (),
        tuple(map(_head, optional)),
        tuple(map(_head, essential)),
    )


def _numeric(values: Sequence[Any]) -> bool:
    """Whether a column is aligned to the right, because most of its values are numbers."""
    present = [value for value in values if value is not None]
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in present]
    return 2 * sum(numbers) > len(present)


def width() -> int:
    """Counts the columns that a table may take."""
    return console().width


def _head(name: str) -> str:
    """Writes the head of a column. The path of a knob stays as it is written elsewhere."""
    return name if "." in name else name.replace("_", " ")


def side_by_side(columns: Mapping[str, str]) -> None:
    """Prints texts beside each other, or below each other where they would be too narrow."""
    if width() < SIDE_WIDTH * len(columns):
        for name, text in columns.items():
            heading(name, text)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    grid_table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for name in columns:
        grid_table.add_column(name, ratio=1, overflow="fold")
    grid_table.add_row(*columns.values())
    console().print(grid_table)


def _cell(name: str, value: Any) -> str:
    """Writes a cell. The number of a record is a name, whose digits nothing separates."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number and (name in NUMBERED or name.endswith("_id")) else cell(value)


def cell(value: Any) -> str:
    """Writes a value as a table shows it."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes").replace("+00:00", " UTC")
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def shorten(text: str | None, most: int = 100) -> str | None:
    """Cuts a text to its beginning in one line.

    >>> shorten("several words", most=9)
    'several …'
    """
    line = " ".join((text or "").split())
    return line[: most - 1] + "…" if len(line) > most else line or text


def duration(seconds: float) -> str:
    """Writes a time span in its two largest units.

    >>> duration(3725), duration(4.2)
    ('1 h 2 min', '4 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


# --- progress ------------------------------------------------------------------------------------


@contextmanager
def live_table(
    optional: Sequence[str] = (),
) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """Yields a function that shows a changing table: live on a terminal, counts elsewhere."""
    live, printed = _live(stderr=False), float("-inf")

    def show(rows: Sequence[Mapping[str, Any]]) -> None:
        nonlocal printed
        if live is not None:
            live.update(_table("", _grid(rows, optional=optional), one_line=True))
        elif time.monotonic() - printed > QUIET_SECONDS:
            printed = time.monotonic()
            counts = Counter(str(row["status"]) for row in rows)
            line = ", ".join(f"{count} {status}" for status, count in counts.items())
            print(line, file=sys.stderr, flush=True)

    with live or nullcontext():
        yield show


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that shows how many are done, the rate and the time left."""
    if quiet:
        yield lambda done, total: None
        return
    from rich.text import Text

    started = printed = time.monotonic()
    live = _live(stderr=True)

    def show(done: int, total: int) -> None:
        nonlocal printed
        elapsed = max(1e-6, time.monotonic() - started)
        left = _time_left(elapsed, done, total)
        line = f"{what} {done:,}/{total:,} | {done / elapsed:.1f}/s | {left}"
        if live is not None:
            live.update(Text.assemble(*_bar(done, total), line))
        elif time.monotonic() - printed > QUIET_SECONDS:
            printed = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: keep results
    try:
        with live or nullcontext():
            yield show
    finally:
        signal.signal(signal.SIGTERM, before)


def _time_left(elapsed: float, done: int, total: int) -> str:
    return f"{duration(elapsed * (total - done) / done) if done else '?'} left"


@contextmanager
def run_progress(*, quiet: bool) -> "Iterator[WatchRuns]":
    """Yields a function that is given the live counters of runs, whose progress is then shown.

    Progress is live on a terminal, and otherwise a line every few seconds. Runs that are added to
    a mapping later are included. After Ctrl-C it says what is awaited, even where it is quiet.
    """
    watched: Runs = ()
    over = threading.Event()

    def watch(runs: "Runs") -> None:
        nonlocal watched
        watched = runs

    def show() -> None:
        from rich.text import Text

        live = None if quiet else _live(stderr=True)
        printed, last_ending = time.monotonic(), ""
        with live or nullcontext():
            while not over.wait(0.25):
                runs = list(watched.values() if isinstance(watched, Mapping) else watched)
                now, ending, line = time.monotonic(), _ending_line(runs), ""
                if live is not None:
                    live.update(Text.assemble(*_bar(*_steps(runs)), _progress_lines(runs, now)))
                elif ending:
                    line = ending if ending != last_ending else ""
                elif not quiet and now - printed > QUIET_SECONDS:
                    line = _progress_lines(runs, now)
                if line:
                    printed, last_ending = now, ending
                    print(line, file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


def _steps(runs: "Sequence[RunProgress]") -> tuple[int, int]:
    """Returns how many steps of runs are done, and of how many."""
    targets = [(run, step, total) for run in runs for step, total in list(run.targets.items())]
    done = sum(min(total, run.done.get(step, 0)) for run, step, total in targets)
    return done, sum(total for _, _, total in targets)


def _bar(done: int, total: int) -> list[tuple[str, str]]:
    """Returns a bar with its share in percent, as parts with styles; none of nothing.

    All is done only when the last step is: 99.9 % is not 100 %.
    """
    if not total:
        return []
    full = BAR_WIDTH * done // total
    share = f" {100 * done // total:>3} %\n"
    return [("━" * full, "green"), ("━" * (BAR_WIDTH - full), "dim"), (share, "bold")]


def _progress_lines(runs: "Sequence[RunProgress]", now: float) -> str:
    """Writes steps, costs and time left in one line, and below it a line for each model."""
    from judge_gym.engine import WORKFLOWS

    other_steps = (step for run in runs for step in list(run.targets))
    parts = []
    for step in dict.fromkeys([*WORKFLOWS, *other_steps]):
        total = sum(run.targets.get(step, 0) for run in runs)
        if total:
            done = min(total, sum(run.done.get(step, 0) for run in runs))
            parts.append(f"{step} {done:,}/{total:,}")
    paid, reused = sum(run.paid for run in runs), sum(run.reused for run in runs)
    costs = f"{paid:,} paid, {reused:,} reused, {sum(run.usd for run in runs):.2f} USD"
    ending = _ending_line(runs)
    lines = [ending] if ending else []
    time = "" if ending else time_left(runs, now)
    lines.append(" | ".join(filter(None, [" · ".join(parts), costs, time])))
    if len(runs) > 1 and all(run.label for run in runs):
        return "\n".join([*lines, *_run_lines(runs)])
    for model in dict.fromkeys(model for run in runs for model in list(run.models)):
        seen = [run.models[model] for run in runs if model in run.models]
        answered, in_flight = sum(m.answered for m in seen), sum(m.in_flight for m in seen)
        rate = answered / max(1e-6, now - min(m.started for m in seen))
        speed = f"{rate:.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min"
        error = next((f", last error: {m.error[:200]}" for m in reversed(seen) if m.error), "")
        lines.append(f"  {model}: {answered:,} answered, {speed}, {in_flight} in flight{error}")
    return "\n".join(lines)


def _ending_line(runs: "Sequence[RunProgress]") -> str:
    """Says what a stopped command waits for, or nothing while it is not stopped."""
    if not any(run.ending for run in runs):
        return ""
    calls = sum(model.in_flight for run in runs for model in list(run.models.values()))
    if not calls:
        return "stopping: no call is in flight"
    return (
        f"stopping: {plural(calls, 'call')} in flight; Ctrl-C again stops now and loses their "
        "answers"
    )


def _run_lines(runs: "Sequence[RunProgress]") -> list[str]:
    """Writes a line for each suite run: evals done, outcomes, calls in flight, last error."""
    width = max(len(run.label) for run in runs)
    lines = []
    for run in runs:
        total = run.targets.get("evals", 0)
        parts = [f"{run.done.get('evals', 0):>{len(str(total))}}/{total} evals"]
        parts += [f"{count} {outcome}" for outcome, count in sorted(run.outcomes.items())[::-1]]
        models = list(run.models.values())
        if in_flight := sum(model.in_flight for model in models):
            parts.append(f"{in_flight} in flight")
        parts += [f"last error: {model.error[:200]}" for model in models if model.error]
        lines.append(f"  {run.label:<{width}}  {', '.join(parts)}")
    return lines


def time_left(runs: "Sequence[RunProgress]", now: float) -> str:
    """Estimates when the slowest endpoint will have answered, if any is to be asked.

    Models at one endpoint share what it does at once. The speed is that of these runs as soon as
    enough of their calls have ended, before that the expected one; where there is neither, or only
    what is typical of models, nothing is promised.
    """
    missing: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run in runs:
        for step, total in list(run.targets.items()):
            model, left = run.asked.get(step), max(0, total - run.done.get(step, 0))
            if left and model is not None:  # grading an eval asks nobody
                missing[run.endpoints.get(model, model)][model] += left
    estimates = [_endpoint_left(runs, *each, now) for each in missing.items()]
    usable = [estimate for estimate in estimates if estimate is not None]
    if not estimates:
        return ""
    if len(usable) < len(estimates):
        return UNKNOWN_TIME
    seconds, source = max(usable)
    return f"{duration(seconds)} left{source}"


def _endpoint_left(
    runs: "Sequence[RunProgress]", endpoint: str, missing: Counter[str], now: float
) -> tuple[float, str] | None:
    """Estimates the seconds until an endpoint has answered, and names their source.

    `missing` counts the answers that its models have not given.
    """
    from judge_gym.engine import LIMITS, MEASURED

    seen = [
        progress
        for run in runs
        for model, progress in list(run.models.items())
        if run.endpoints.get(model, model) == endpoint
    ]
    answered, in_flight = sum(m.answered for m in seen), sum(m.in_flight for m in seen)
    if answered >= max(FEW_ANSWERS, in_flight):  # the fastest calls end first: wait for a round
        ended, left = sum(m.seconds for m in seen), missing.total()
        ages = in_flight * now - sum(m.begun for m in seen)
        elapsed = now - min(m.started for m in seen)
        at_once = max(1e-6, ended + ages) / max(1e-6, elapsed)
        work = max(0.0, left * ended / answered - ages)
        return work / min(at_once, left), ""
    paces = {m: run.expected[m] for run in runs for m in missing if m in run.expected}
    if paces.keys() != missing.keys():
        return None
    seconds = sum(count * paces[model].seconds for model, count in missing.items())
    bases = {pace.basis for pace in paces.values()}
    if bases == {MEASURED}:
        return seconds, ", at the speed of earlier calls"
    return (seconds, " at least, by declared limits") if bases <= {MEASURED, LIMITS} else None
