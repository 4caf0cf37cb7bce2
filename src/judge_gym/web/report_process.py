"""Builds a report in a process of its own and writes its progress, a JSON document a line.

`{"step": {"name": "Which judge?", "done": 3, "of": 15}}` while it is built, `{"ready": true}` when
its page can be shown, and at the end `{}` or `{"error": "..."}`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from judge_gym.errors import JudgeGymError
from judge_gym.lab import Lab


def main(study: str, folder: str) -> int:
    """Writes the files of a report on a study to a folder, its page first.

    The database is that of the environment: arguments of a process can be read by others.
    """
    try:
        with Lab.open() as lab:
            report = lab.reports.build(
                study,
                watch=lambda name, done, of: report_progress(
                    step={"name": name, "done": done, "of": of}
                ),
            )
        report_progress(step={"name": "Drawing figures", "done": 1, "of": 1})
        for name, content in report.files():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            if name == "report.md":  # after the page
                report_progress(ready=True)
    except JudgeGymError as error:
        report_progress(error=error.message)
        return 1
    report_progress()
    return 0


def report_progress(**progress: Any) -> None:
    """Writes a line for the process that waits for the report."""
    print(json.dumps(progress), flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
