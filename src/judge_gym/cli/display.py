"""Prints tables and live progress on a terminal, and plain lines elsewhere."""

import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    from judge_gym.engine import RunProgress

PLAIN_WIDTH = 200
"""Columns where output is no terminal, so that a log or a pipe folds nothing."""
QUIET_SECONDS = 10.0
"""Seconds between two lines of progress where output is no terminal."""


@cache
def console(*, stderr: bool = False) -> "Console":
    """Returns the console of standard output or standard error."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    # What users and models write is text: no markup, no emoji codes.
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def _live(*, stderr: bool) -> "Live | None":
    """Returns a live display, or None if the console is no terminal."""
    from rich.live import Live

    shown = console(stderr=stderr)
    return Live(console=shown, refresh_per_second=4, transient=True) if shown.is_terminal else None


def print_json(value: Any) -> None:
    """Prints one JSON document on standard output."""
    print(json.dumps(value, indent=2, default=str))


def records(frame: Any) -> list[dict[str, Any]]:
    """Returns a frame's rows with None for undefined values, which JSON cannot express."""
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


def heading(title: str, text: str) -> None:
    """Prints a title and the text below it."""
    console().print(f"\n{title}", style="bold", markup=False)
    console().print(f"{text}\n", markup=False)


def table(
    title: str, rows: Sequence[Mapping[str, Any]], *, note: str = "", compact: bool = False
) -> None:
    """Prints a table; undefined values are dashes, `compact` omits columns of zeros."""
    if rows:
        console().print(_table(title, rows, note=note, compact=compact))


def facts(title: str, values: Mapping[str, Any]) -> None:
    """Prints names and values as a table of two columns."""
    table(title, [{"": name, " ": value} for name, value in values.items()])


def _table(
    title: str, rows: Sequence[Mapping[str, Any]], *, note: str = "", compact: bool = False
) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    zero = [name for name in rows[0] if compact and all(row[name] == 0 for row in rows)]
    rows = [{name: value for name, value in row.items() if name not in zero} for row in rows]
    if zero:
        note = f"{note} Not shown, since all are zero: {', '.join(zero)}."
    shown = Table(
        box=SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        caption=note or None,
        caption_justify="left",
    )
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float) or row[name] is None for row in rows)
        shown.add_column(str(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(cell(value) for value in row.values()))
    return shown


def side_by_side(columns: Mapping[str, str]) -> None:
    """Prints texts beside each other."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for name in columns:
        shown.add_column(name, ratio=1, overflow="fold")
    shown.add_row(*columns.values())
    console().print(shown)


def cell(value: Any) -> str:
    """Returns a value as a table shows it."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Returns a time span in its two largest units.

    >>> duration(3725), duration(4.2)
    ('1 h 2 min', '4 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun.

    >>> plural(1, "run"), plural(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# --- progress ------------------------------------------------------------------------------------


@contextmanager
def live_table() -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """Yields a function that shows a changing table: live on a terminal, counts elsewhere."""
    live, printed = _live(stderr=False), float("-inf")

    def show(rows: Sequence[Mapping[str, Any]]) -> None:
        nonlocal printed
        if live is not None:
            live.update(_table("", rows))
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
        yield lambda done, wanted: None
        return
    from rich.text import Text

    started = printed = time.monotonic()
    live = _live(stderr=True)

    def show(done: int, wanted: int) -> None:
        nonlocal printed
        elapsed = max(1e-6, time.monotonic() - started)
        line = (
            f"{what} {done:,}/{wanted:,} | {done / elapsed:.1f}/s | {_left(elapsed, done, wanted)}"
        )
        if live is not None:
            live.update(Text(line))
        elif time.monotonic() - printed > QUIET_SECONDS:
            printed = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: keep results
    try:
        with live or nullcontext():
            yield show
    finally:
        signal.signal(signal.SIGTERM, before)


def _left(elapsed: float, done: int, wanted: int) -> str:
    return f"{duration(elapsed * (wanted - done) / done) if done else '?'} left"


class ProgressDisplay:
    """Shows the progress of runs from their live counters."""

    def __init__(self) -> None:
        self._runs: Sequence[RunProgress] = ()
        self._all: Mapping[int, RunProgress] = {}
        self._started = time.monotonic()
        self._over = threading.Event()

    def watch(self, runs: "Sequence[RunProgress]") -> None:
        """Starts to show these runs."""
        self._runs, self._started = runs, time.monotonic()

    def watch_all(self, runs: "Mapping[int, RunProgress]") -> None:
        """Starts to show all runs of a mapping, including those that are added later."""
        self._all, self._started = runs, time.monotonic()

    def totals(self) -> tuple[dict[str, tuple[int, int]], int, float]:
        """Returns done and wanted per step, calls paid, and cost."""
        from judge_gym.engine import WORKFLOWS

        runs = [*self._runs, *list(self._all.values())]
        steps: dict[str, tuple[int, int]] = {}
        others = (step for run in runs for step in list(run.wanted))
        for step in dict.fromkeys([*WORKFLOWS, *others]):
            done = sum(run.done.get(step, 0) for run in runs)
            wanted = sum(run.wanted.get(step, 0) for run in runs)
            if wanted:
                steps[step] = (min(done, wanted), wanted)
        return steps, sum(run.paid for run in runs), sum(run.usd for run in runs)

    def line(self) -> str:
        """Returns steps, rate, cost and time left in one line."""
        steps, paid, usd = self.totals()
        elapsed = max(1e-6, time.monotonic() - self._started)
        done, wanted = (sum(pair[i] for pair in steps.values()) for i in (0, 1))
        parts = [f"{step} {pair[0]:,}/{pair[1]:,}" for step, pair in steps.items()]
        rate = f"{paid / elapsed:.0f} calls/s | {usd:.2f} USD"
        return f"{' · '.join(parts)} | {rate} | {_left(elapsed, done, wanted)}"

    @contextmanager
    def shown(self, quiet: bool) -> Iterator[None]:
        """Shows progress while the context lasts: live on a terminal, now and then elsewhere."""
        if quiet:
            yield
            return
        thread = threading.Thread(target=self._show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _show(self) -> None:
        from rich.text import Text

        live = _live(stderr=True)
        with live or nullcontext():
            while not self._over.wait(0.25 if live is not None else QUIET_SECONDS):
                if live is not None:
                    live.update(Text(self.line()))
                else:
                    print(self.line(), file=sys.stderr, flush=True)
