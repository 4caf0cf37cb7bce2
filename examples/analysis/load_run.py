"""Stores the recorded suite run of `run.json` in the lab of the working folder."""

import json
from datetime import datetime
from pathlib import Path

from judge_gym import Lab

recorded = json.loads(Path(__file__).with_name("run.json").read_text(encoding="utf-8"))
suite, version = recorded["suite"], recorded["version"]
with Lab.open() as lab:
    lab.suites.save_tasks(suite, version, recorded["tasks"])
    evals = [f"{task['category']}/{task['name']}" for task in recorded["tasks"]]
    created = datetime.fromisoformat(recorded["created"])
    run = lab.suites.save_run(suite, version, recorded["model"], evals, created=created)
    for result in recorded["results"]:
        at = datetime.fromisoformat(result["at"])
        lab.suites.save_eval(run, **{**result, "at": at})
    print(f"suite run {run} of {recorded['model']}")
