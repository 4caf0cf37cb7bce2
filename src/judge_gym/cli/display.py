"""Tables and live progress on a terminal; plain lines where there is none."""

import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from judge_gym.engine import WORKFLOWS, RunProgress

PLAIN_WIDTH = 200
"""Columns where no terminal says how many there are: a log or a pipe folds nothing."""


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    # What users and models write is text: no markup, no emoji codes.
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


out = _console(stderr=False)
err = _console(stderr=True)
QUIET_SECONDS = 10.0
"""How often a line is printed where no terminal shows live progress."""


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2, default=str))


def table(
    title: str, rows: Sequence[Mapping[str, Any]], *, note: str = "", compact: bool = False
) -> None:
    """A table; undefined is a dash, and `compact` leaves out columns of nothing but zeros."""
    if rows:
        out.print(_table(title, rows, note=note, compact=compact))


def heading(title: str, said: str) -> None:
    """What follows, and what it comes to."""
    out.print(f"\n{title}", style="bold", markup=False)
    out.print(f"{said}\n", markup=False)


@contextmanager
def looking() -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """Shows a table that changes: live on a terminal, a line of statuses now and then elsewhere."""
    spoke = float("-inf")
    live = Live(console=out, refresh_per_second=4, transient=True) if out.is_terminal else None

    def show(rows: Sequence[Mapping[str, Any]]) -> None:
        nonlocal spoke
        if live is not None:
            live.update(_table("", rows))
        elif time.monotonic() - spoke > QUIET_SECONDS:
            spoke = time.monotonic()
            counted = Counter(str(row["status"]) for row in rows)
            said = ", ".join(f"{count} {status}" for status, count in counted.items())
            print(said, file=sys.stderr, flush=True)

    with live or nullcontext():
        yield show


def _table(
    title: str, rows: Sequence[Mapping[str, Any]], *, note: str = "", compact: bool = False
) -> Table:
    idle = [name for name in rows[0] if compact and all(row[name] == 0 for row in rows)]
    rows = [{name: value for name, value in row.items() if name not in idle} for row in rows]
    if idle:
        note = f"{note} Not shown, since all zero: {', '.join(idle)}."
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
    """Texts beside each other, for comparison."""
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for name in columns:
        shown.add_column(name, ratio=1, overflow="fold")
    shown.add_row(*columns.values())
    out.print(shown)


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Shows how many are done of how many, at what rate, and the time left."""
    if quiet:
        yield lambda done, wanted: None
        return
    started = spoke = time.monotonic()
    live = Live(console=err, refresh_per_second=4, transient=True) if err.is_terminal else None

    def line(done: int, wanted: int) -> str:
        elapsed = max(1e-6, time.monotonic() - started)
        left = duration(elapsed * (wanted - done) / done) if done else "?"
        return f"{what} {done:,}/{wanted:,} | {done / elapsed:.1f}/s | {left} left"

    def watch(done: int, wanted: int) -> None:
        nonlocal spoke
        if live is not None:
            live.update(Text(line(done, wanted)))
        elif time.monotonic() - spoke > QUIET_SECONDS:
            spoke = time.monotonic()
            print(line(done, wanted), file=sys.stderr, flush=True)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: keep it all
    try:
        with live or nullcontext():
            yield watch
    finally:
        signal.signal(signal.SIGTERM, before)


def cell(value: Any) -> str:
    """A value as a person reads it."""
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
    """A time span in its two largest units.

    >>> duration(3725), duration(4.2)
    ('1 h 2 min', '4 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Watcher:
    """Shows what runs are doing, from their tallies."""

    def __init__(self) -> None:
        self._tallies: Sequence[RunProgress] = ()
        self._all: Mapping[int, RunProgress] = {}
        self._started = time.monotonic()
        self._over = threading.Event()

    def watch(self, tallies: Sequence[RunProgress]) -> None:
        """Begin to look at these."""
        self._tallies, self._started = tallies, time.monotonic()

    def watch_all(self, tallies: Mapping[int, RunProgress]) -> None:
        """Look at whatever runs there are, also those that come later."""
        self._started = time.monotonic()
        self._all = tallies

    def sums(self) -> tuple[dict[str, tuple[int, int]], int, float]:
        """Done and wanted per stage, calls paid, and cost."""
        stages: dict[str, tuple[int, int]] = {}
        tallies = [*self._tallies, *list(self._all.values())]
        others = (stage for tally in tallies for stage in list(tally.wanted))
        for stage in dict.fromkeys([*WORKFLOWS, *others]):
            done = sum(tally.done.get(stage, 0) for tally in tallies)
            wanted = sum(tally.wanted.get(stage, 0) for tally in tallies)
            if wanted:
                stages[stage] = (min(done, wanted), wanted)
        paid = sum(tally.paid for tally in tallies)
        return stages, paid, sum(tally.usd for tally in tallies)

    def line(self) -> str:
        """All in one line: stages, rate, cost, time left."""
        stages, paid, usd = self.sums()
        elapsed = max(1e-6, time.monotonic() - self._started)
        done, wanted = (sum(pair[i] for pair in stages.values()) for i in (0, 1))
        left = duration(elapsed * (wanted - done) / done) if done else "?"
        parts = [f"{stage} {pair[0]:,}/{pair[1]:,}" for stage, pair in stages.items()]
        return f"{' · '.join(parts)} | {paid / elapsed:.0f} calls/s | {usd:.2f} USD | {left} left"

    @contextmanager
    def shown(self, quiet: bool) -> Iterator[None]:
        """Live on a terminal, a line now and then elsewhere, nothing if quiet."""
        if quiet:
            yield
            return
        live = err.is_terminal
        thread = threading.Thread(target=self._live if live else self._lines, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _live(self) -> None:
        with Live(console=err, refresh_per_second=4, transient=True) as live:
            while not self._over.wait(0.25):
                live.update(Text(self.line()))

    def _lines(self) -> None:
        while not self._over.wait(QUIET_SECONDS):
            print(self.line(), file=sys.stderr, flush=True)
