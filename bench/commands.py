"""What whole commands cost on a study of short items: `python bench/commands.py [--items N]`.

Each command is a process of its own, as a user starts it: a first plan, which reads and filters the
evidence, a run against a server with 200 ms latency and 100 calls in flight, and then commands that
find all answers. CPU is that of the command and its children; the ideal wall time is that of the
server's latency alone. `--beside PYTHON`, the interpreter of another commit's environment, measures
that commit in turns with this one, so that a busy machine hurts both; of several `--rounds` the
least is printed.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from rig import served, write_short_study

LATENCY, FLYING, WORDS = 0.2, 100, 40
COMMANDS = {
    "plan, first": ("plan", "study.yaml"),
    "run": ("--concurrency", str(FLYING), "run", "study.yaml"),
    "run again": ("run", "study.yaml"),
    "plan": ("plan", "study.yaml"),
    "status": ("status",),
    "report": ("report", "study.yaml"),
}


def write_study(items: int, url: str) -> None:
    """Writes a study with one judge at the URL, its evidence and its rubric."""
    rng = random.Random(7)
    vocabulary = ["".join(rng.choices("abcdefgilmnoprstu", k=7)) for _ in range(4_000)]
    with Path("items.jsonl").open("w") as file:
        for number in range(items):
            text, day = " ".join(rng.choices(vocabulary, k=WORDS)), f"2026-01-{1 + number % 28:02}"
            item = {"text": text, "url": f"https://wire.example/{number}", "date": day}
            file.write(json.dumps(item) + "\n")
    Path("judge-gym.models.toml").write_text(
        f'[endpoints.lab]\nbase_url = "{url}"\nseed = true\nconcurrency = {FLYING}\n'
    )
    write_short_study(["lab:balanced"])


def measured(python: str, *arguments: str) -> tuple[float, float]:
    """Measures the seconds of a command of an environment: on the wall and of CPU."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [python, "-m", "judge_gym", *arguments]
    # Byte code is kept, as on a user's machine.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=5_000, help="by default 5,000")
    parser.add_argument("--beside", metavar="PYTHON", help="of another environment")
    parser.add_argument("--rounds", type=int, default=1, help="by default 1")
    options = parser.parse_args()
    items: int = options.items
    ideal = items / FLYING * LATENCY
    pythons = [sys.executable, *([options.beside] if options.beside else [])]
    least: dict[tuple[str, str], tuple[float, float]] = {}
    with served(latency=LATENCY) as server:
        for _ in range(options.rounds):
            for python in pythons:
                with TemporaryDirectory() as folder, chdir(folder):
                    write_study(items, server.url)
                    measured(python, "--version")  # byte code is compiled
                    for name, arguments in COMMANDS.items():
                        wall, cpu = measured(python, *arguments)
                        before = least.get((python, name), (wall, cpu))
                        least[python, name] = min(wall, before[0]), min(cpu, before[1])
    print(f"{items:,} items; a run of {ideal:.1f} s at best")
    for python in pythons:
        print(f"\n{python}\n{'':14} {'wall s':>8} {'CPU s':>8} {'CPU s per 1,000':>16}")
        for name in COMMANDS:
            wall, cpu = least[python, name]
            print(f"{name:14} {wall:8.2f} {cpu:8.2f} {cpu / items * 1000:16.3f}")


if __name__ == "__main__":
    main()
