"""Reports of studies, made in the background and kept until the data change.

A process of its own makes one, so that requests and its figures do not take each other's time.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from judge_gym.lab import Lab

REST = timedelta(seconds=30)
"""A study that goes on has its report made anew after so long at the earliest."""
KEPT = 20
"""So many studies' reports are kept, those that were asked for last."""


@dataclass(slots=True)
class Made:
    """A report in its folder, or why there is none."""

    mark: tuple[int, ...]
    """What the data were when it was begun."""
    at: datetime
    folder: Path
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a report stands: the last one that was made, if any, and whether one is on its way."""

    made: Made | None
    making: bool
    fresh: bool
    """Whether nothing has been added to the data since it was begun."""


@dataclass(slots=True)
class _Kept:
    made: Made | None = None
    begun: Made | None = None
    process: "subprocess.Popen[bytes] | None" = None


@dataclass(slots=True)
class Reports:
    """Makes reports, one at a time.

    Args:
        lab: whose studies they are on.
    """

    lab: Lab
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _packing: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _place: "tempfile.TemporaryDirectory[str] | None" = None
    _count: int = 0
    _over: bool = False

    def ask(self, study: str) -> Standing:
        """How the report on a study stands; where it is missing or old, one is begun."""
        mark, now = self.lab.store.queries.study_mark(study), datetime.now(UTC)
        with self._lock:
            kept = self._kept.pop(study, None) or _Kept()
            self._kept[study] = kept  # the last that was asked for
            made = kept.made
            fresh = made is not None and made.mark == mark
            rested = made is None or now - made.at > REST
            if not fresh and rested and kept.begun is None and not self._over:
                self._begin(study, kept, mark, now)
                self._forget()
            return Standing(made, kept.begun is not None, fresh)

    def archive(self, made: Made) -> Path:
        """All files of a report in one."""
        place = made.folder.with_suffix(".zip")
        with self._packing:
            if not place.exists():
                part = place.with_suffix(".part")
                with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
                    for file in sorted(made.folder.rglob("*")):
                        if file.is_file():
                            archive.write(file, file.relative_to(made.folder))
                part.rename(place)
        return place

    def close(self) -> None:
        """End what is being made, and forget what was."""
        with self._lock:
            self._over = True
            processes = [kept.process for kept in self._kept.values() if kept.process]
        for process in processes:
            process.terminate()
            process.wait()
        if self._place is not None:
            self._place.cleanup()

    def _begin(self, study: str, kept: _Kept, mark: tuple[int, ...], now: datetime) -> None:
        self._place = self._place or tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._count += 1
        kept.begun = Made(mark, now, Path(self._place.name) / f"report-{self._count}")
        threading.Thread(
            target=self._make, args=(study, kept, kept.begun), name="report", daemon=True
        ).start()

    def _make(self, study: str, kept: _Kept, made: Made) -> None:
        url = self.lab.store.database.url.render_as_string(hide_password=False)
        command = [sys.executable, "-m", "judge_gym", "report", study, "--out", str(made.folder)]
        with self._turn:
            with self._lock:
                if self._over:
                    return
                kept.process = process = subprocess.Popen(
                    [*command, "--json"],
                    env={**os.environ, "JUDGE_GYM_DATABASE_URL": url},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is the server's, which then ends it
                )
            said, _ = process.communicate()
        if process.returncode:
            made.fault = _fault(said)
        with self._lock:
            kept.made, kept.begun, kept.process = made, None, None

    def _forget(self) -> None:
        """Drop what was asked for longest ago; whoever reads its files has them open."""
        for study in [*self._kept][:-KEPT]:
            if self._kept[study].begun is None:
                del self._kept[study]


def _fault(said: bytes) -> str:
    """What the verb says went wrong."""
    try:
        return str(json.loads(said)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "the report could not be made; 'judge-gym report' on the command line says why"
