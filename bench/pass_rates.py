"""Whether intervals of people's pass rate hold, beside other tools: `python bench/pass_rates.py`.

Draws files of 400 items whose pass rate is known: a judge answers all of them, people label 120.
judge-gym and two other libraries, judgy and ppi-python, estimate the pass rate of each file. The
others are installed into an environment of their own (build/pass_rates) and run there. `--write`
puts the table into docs/findings/coverage.md, `--files N` draws N files of each kind (500).
"""

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "findings" / "coverage.md"
ENVIRONMENT = ROOT / "build" / "pass_rates"
OTHERS = ("judgy==0.1.0", "ppi-python==0.2.3")
ITEMS, LABELLED, CLUSTER_SIZE = 400, 120, 10
PASS_RATE, SENSITIVITY, SPECIFICITY = 0.63, 0.88, 0.70
WITHIN_CLUSTER = 0.3
"""The correlation of people's labels within a cluster."""
UNREADABLE = {1: 0.05, 0: 0.20}
"""The share of unreadable verdicts by people's label: a judge stumbles over what fails."""
FAILED, PASSED, UNREADABLE_VERDICT = 0, 1, 2
BEGIN, END = "<!-- begin: written by bench/pass_rates.py -->", "<!-- end -->"


@dataclass(frozen=True, eq=False)
class File:
    """A judge's verdicts on all items, and people's labels of some."""

    label: Codes
    """What people say, or would say, of each item: 1 is pass."""
    verdict: Codes
    labelled: npt.NDArray[np.bool_]
    cluster: Codes


KINDS = {
    "independent items": (False, False),
    "40 clusters of 10 items": (True, False),
    "unreadable verdicts, more where people fail": (False, True),
}
"""What files are drawn, and whether their items are clustered and their verdicts unreadable."""


def draw(kind: str, number: int) -> File:
    """Draws one file; the same number gives the same file."""
    clustered, unreadable = KINDS[kind]
    rng = np.random.default_rng([number, [*KINDS].index(kind)])
    cluster = np.arange(ITEMS) // (CLUSTER_SIZE if clustered else 1)
    if clustered:
        spread = (1 - WITHIN_CLUSTER) / WITHIN_CLUSTER
        rates = rng.beta(PASS_RATE * spread, (1 - PASS_RATE) * spread, cluster.max() + 1)
    else:
        rates = np.full(ITEMS, PASS_RATE)
    label = (rng.random(ITEMS) < rates[cluster]).astype(np.int64)
    correct = rng.random(ITEMS) < np.where(label == 1, SENSITIVITY, SPECIFICITY)
    verdict = np.where(correct, label, 1 - label)
    if unreadable:
        stumbles = rng.random(ITEMS) < np.where(label == 1, UNREADABLE[1], UNREADABLE[0])
        verdict[stumbles] = UNREADABLE_VERDICT
    labelled = np.zeros(ITEMS, dtype=bool)
    labelled[rng.permutation(ITEMS)[:LABELLED]] = True
    return File(label, verdict, labelled, cluster)


# --- estimators ----------------------------------------------------------------------------------
# Those of other libraries are imported where they are installed: in their own environment.


def judge_gym_interval(file: File) -> tuple[float, float]:
    """Estimates with judge-gym: an unreadable verdict is a category of its own."""
    from judge_gym.analysis.judges.rate import people_rate

    labels = np.where(file.labelled, file.label.astype(float), np.nan)
    shares = np.eye(3)[file.verdict]
    corrected = people_rate(labels, shares, np.array([0.0, 1.0, np.nan]), file.cluster).corrected
    return corrected.low, corrected.high


def judgy_interval(file: File) -> tuple[float, float]:
    """Estimates with judgy, which takes no unreadable verdicts: they are left out."""
    import judgy

    read = file.verdict != UNREADABLE_VERDICT
    test = file.labelled & read
    _, low, high = judgy.estimate_success_rate(
        file.label[test],
        file.verdict[test],
        file.verdict[~file.labelled & read],
        bootstrap_iterations=2000,
    )
    return low, high


def ppi_interval(file: File) -> tuple[float, float]:
    """Estimates with ppi-python, which has no place for unreadable verdicts: they are left out."""
    import ppi_py

    read = file.verdict != UNREADABLE_VERDICT
    test = file.labelled & read
    low, high = ppi_py.ppi_mean_ci(
        file.label[test].astype(float),
        file.verdict[test].astype(float),
        file.verdict[~file.labelled & read].astype(float),
        alpha=0.05,
    )
    return float(low[0]), float(high[0])


ESTIMATORS: dict[str, Callable[[File], tuple[float, float]]] = {
    "judge-gym": judge_gym_interval,
    "judgy": judgy_interval,
    "ppi-python": ppi_interval,
}


def measure(estimator: str, files: int) -> dict[str, Any]:
    """Counts, by kind of file, how many intervals hold the true pass rate, and their width."""
    rows = {}
    for kind in KINDS:
        ends = np.array([ESTIMATORS[estimator](draw(kind, number)) for number in range(files)])
        holds = (ends[:, 0] <= PASS_RATE) & (ends[:, 1] >= PASS_RATE)
        rows[kind] = {"coverage": holds.mean(), "width": float(np.diff(ends).mean())}
    return rows


def in_own_environment(estimator: str, files: int) -> dict[str, Any]:
    """Measures a library where it is installed."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*install, *OTHERS], check=True)
    command = [python, __file__, "--files", str(files), "--only", estimator]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    rows: dict[str, Any] = json.loads(result.stdout)
    return rows


def table(results: dict[str, dict[str, Any]], files: int) -> str:
    """Writes the coverage of each estimator as Markdown."""
    error = 100 * 1.96 * (0.95 * 0.05 / files) ** 0.5
    lines = [
        f"`python bench/pass_rates.py --files {files} --write`: {files} files of each kind, so "
        f"that a coverage of 95 % is measured to within {error:.0f} points.",
        "",
        "| files | " + " | ".join(f"{name} (width)" for name in results) + " |",
        "| --- |" + " --- |" * len(results),
    ]
    for kind in KINDS:
        cells = [
            f"{100 * rows[kind]['coverage']:.0f} % ({100 * rows[kind]['width']:.0f} points)"
            for rows in results.values()
        ]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measures every estimator, and prints their coverage side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", choices=ESTIMATORS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        json.dump(measure(options.only, options.files), sys.stdout)
        return
    results = {
        name: measure(name, options.files)
        if name == "judge-gym"
        else in_own_environment(name, options.files)
        for name in ESTIMATORS
    }
    text = table(results, options.files)
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
