"""Builds the reports on studies in the background, and keeps each until its data change.

A process of its own builds a report, so that requests and figures do not slow each other.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from judge_gym.lab import Lab
from judge_gym.records.environment import DATABASE_URL

MIN_AGE = timedelta(seconds=30)
"""A report is rebuilt after this time at the earliest while its study is in progress."""
FAILED = "the report could not be built; run 'judge-gym report' to see why"
MAX_REPORTS = 20
"""Studies whose reports are kept, the most recently requested ones."""


@dataclass(slots=True)
class Report:
    """A report in its folder, or the error that prevented it."""

    version: tuple[int, ...]
    """The version of the study's data when the build started."""
    at: datetime
    folder: Path
    error: str = ""
    complete: bool = False
    """Whether all files are written, not the page alone."""


@dataclass(frozen=True, slots=True)
class ReportState:
    """The last report that was built, if any, and whether another is being built."""

    report: Report | None
    building: bool
    current: bool
    """Whether the data are unchanged since the build started."""
    step: Mapping[str, Any] | None = None
    """What is being done for it: the step's name, how much is done, and of how much."""


@dataclass(slots=True)
class _Entry:
    report: Report | None = None
    pending: Report | None = None
    process: "subprocess.Popen[bytes] | None" = None
    step: Mapping[str, Any] | None = None


@dataclass(slots=True)
class ReportBuilder:
    """Builds reports, one at a time."""

    lab: Lab
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _packing: threading.Lock = field(default_factory=threading.Lock)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _folder: "tempfile.TemporaryDirectory[str] | None" = None
    _count: int = 0
    _closed: bool = False

    def request(self, study: str) -> ReportState:
        """Returns the state of a study's report; starts to build one if it is missing or old."""
        version, now = self.lab.pages.study_version(study), datetime.now(UTC)
        with self._lock:
            entry = self._entries.pop(study, None) or _Entry()
            self._entries[study] = entry  # now the most recently requested
            report = entry.report
            current = report is not None and report.version == version
            due = report is None or now - report.at > MIN_AGE
            if not current and due and entry.pending is None and not self._closed:
                self._start(study, entry, version, now)
                self._forget_oldest()
            return ReportState(report, entry.pending is not None, current, entry.step)

    def archive(self, report: Report) -> Path:
        """Returns a zip file with all files of a report."""
        path = report.folder.with_suffix(".zip")
        with self._packing:
            if not path.exists():
                part = path.with_suffix(".part")
                with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
                    for file in sorted(report.folder.rglob("*")):
                        if file.is_file():
                            archive.write(file, file.relative_to(report.folder))
                part.rename(path)
        return path

    def close(self) -> None:
        """Stops the current build and deletes all reports."""
        with self._lock:
            self._closed = True
            processes = [entry.process for entry in self._entries.values() if entry.process]
        for process in processes:
            process.terminate()
            process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    def _start(self, study: str, entry: _Entry, version: tuple[int, ...], now: datetime) -> None:
        self._folder = self._folder or tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._count += 1
        entry.pending = Report(version, now, Path(self._folder.name) / f"report-{self._count}")
        threading.Thread(
            target=self._build, args=(study, entry, entry.pending), name="report", daemon=True
        ).start()

    def _build(self, study: str, entry: _Entry, report: Report) -> None:
        url = self.lab.admin.database_url
        module = "judge_gym.web.report_process"
        with self._turn:
            with self._lock:
                if self._closed:
                    return
                entry.process = process = subprocess.Popen(
                    [sys.executable, "-m", module, study, str(report.folder)],
                    env={**os.environ, DATABASE_URL: url},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C reaches the server only, which then ends it
                )
            assert process.stdout is not None
            with process.stdout as lines:
                error = self._follow(lines, entry, report)
            if process.wait():
                report.error = error or FAILED
        with self._lock:
            report.complete = True
            entry.report, entry.pending, entry.process, entry.step = report, None, None, None

    def _follow(self, lines: IO[bytes], entry: _Entry, report: Report) -> str:
        """Takes over what the process writes until it ends; returns its error, if any."""
        error = ""
        for line in lines:
            message = _message(line)
            error = message.get("error", error)
            with self._lock:
                if message.get("ready"):
                    entry.report = report
                entry.step = message.get("step", entry.step)
        return error

    def _forget_oldest(self) -> None:
        """Drops the least recently requested reports; responses in progress keep files open."""
        for study in [*self._entries][:-MAX_REPORTS]:
            if self._entries[study].pending is None:
                del self._entries[study]


def _message(line: bytes) -> dict[str, Any]:
    """Returns what the process wrote in a line; nothing if a library wrote it."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
