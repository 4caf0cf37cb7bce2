"""How analyses grow with the samples: `python bench/analysis.py [SAMPLES ...]`.

A synthetic study of 4 tasks, 2 variants and 5 judges, with subsets, abstentions, swaps and probes,
at several sizes in one run. Each analysis is timed by itself, then the whole report, which works
out once what several of its sections read. Steps are in seconds of CPU, since machines are shared,
with the wall clock of the report; peak memory is that of a process of its own.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import cell_endpoints, judge_endpoints
from judge_gym.analysis.frames import CELL, tidy
from judge_gym.analysis.measures import panel_table
from judge_gym.analysis.measures.consistency import consistency
from judge_gym.analysis.measures.polarization import pairwise, polarization
from judge_gym.analysis.measures.verdict_shapes import display_bias, verdict_shapes
from judge_gym.analysis.report import build_report
from judge_gym.analysis.stats.agreement import nominal_agreement
from judge_gym.analysis.stats.contrasts import contrasts, judge_contrasts, ranking
from judge_gym.axes import CONTESTED
from judge_gym.protocols.conflict import conflict
from judge_gym.protocols.hypotheses import hypotheses
from judge_gym.protocols.regressions import regressions
from judge_gym.protocols.report import METRICS, questions
from judge_gym.protocols.stated_agreement import calibration, probed_verdicts
from judge_gym.protocols.swap_sensitivity import swap_sensitivity
from judge_gym.protocols.validity import validity

PARTS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "endpoints by cell": cell_endpoints,
    "endpoints by judge": judge_endpoints,
    "shapes of verdicts": verdict_shapes,
    "position and label": display_bias,
    "polarization": polarization,
    "pairs of judges": pairwise,
    "conflict": conflict,
    "agreement": nominal_agreement,
    "consistency": consistency,
    "metrics": partial(panel_table, more=METRICS),
    "calibration": lambda frame: calibration(probed_verdicts(frame), CELL),
    "swaps": swap_sensitivity,
    "contrasts": contrasts,
    "judges compared": judge_contrasts,
    "ranks of levels": ranking,
    "regressions": regressions,
    "hypotheses": hypotheses,
    "validity": validity,
}
SIZES = (10_000, 100_000, 1_000_000)
TASKS, JUDGES, METHODS, STAGES = 4, 5, ("single", "subset"), 4
REPLICATES = 10
SWAPPED = 1
"""Rivals' rubrics beside the own."""


def synthetic(samples: int, seed: int = 7) -> pd.DataFrame:
    """Samples as a lab exports them: a judge leans to a stage of its own on each item."""
    rng = np.random.default_rng(seed)
    shape = (TASKS, len(METHODS), JUDGES, 1 + SWAPPED, REPLICATES)
    items = max(2, samples // int(np.prod(shape)))
    grid = np.indices((TASKS, len(METHODS), JUDGES, 1 + SWAPPED, items, REPLICATES))
    task, method, judge, swap, item, replicate = (axis.ravel() for axis in grid)
    n = len(task)
    favoured = rng.integers(0, STAGES, (TASKS, JUDGES, items))[task, judge, item]
    stage = np.where(rng.random(n) < 0.6, favoured, rng.integers(0, STAGES, n))
    more = (method == 1) & (rng.random(n) < 0.4) & (stage < STAGES - 1)
    texts = np.array([str(place + 1) for place in range(STAGES)])
    wider = np.array([f"{place + 1} {place + 2}" for place in range(STAGES)])
    abstained = rng.random(n) < 0.03
    shuffles = [rng.permutation(STAGES) for _ in range(48)]
    displays = np.array(
        [" ".join(f"{'ABCD'[place]}={s + 1}" for place, s in enumerate(one)) for one in shuffles]
    )
    author = np.where(swap == 0, judge, (judge + 1) % JUDGES)
    names = np.array([f"sim:judge-{place}" for place in range(JUDGES)])
    return pd.DataFrame(
        {
            "tag": np.char.add("bench/", task.astype(str)),
            "concept": np.array([f"concept {place}" for place in range(TASKS)])[task],
            "task_type": "ecc",
            "evidence": task * items + item,
            "replicate": replicate,
            "is_swap": swap > 0,
            "status": np.where(abstained, "abstained", "scored"),
            "stages": np.where(abstained, "", np.where(more, wider[stage], texts[stage])),
            "n_stages": STAGES,
            "display": displays[(item * REPLICATES + replicate) % len(displays)],
            "probe": np.where(abstained, np.nan, rng.random(n).round(2)),
            "rubric": task * JUDGES + author,
            "rubric_author": names[author],
            "call_id": np.arange(n),
            "reference": 0.5,
            "judge.model": names[judge],
            "verdict.method": np.array(METHODS)[method],
        }
    )


def measure(samples: int, told: Any) -> None:
    """Time every step on one size, and tell."""
    raw = synthetic(samples)
    taken: dict[str, float] = {"samples": len(raw)}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = work()
        taken[name] = time.process_time() - start
        return found

    frame = timed("tidy", lambda: tidy(raw))
    for name, analysis in PARTS.items():
        timed(name, partial(analysis, frame))
    timed("report: summary", lambda: build_report("bench", raw, None, summary_only=True))
    start = time.perf_counter()
    report = timed("report: every table", lambda: build_report("bench", raw, None))
    timed("report: the page", report.html)
    under = raw.assign(protocol=CONTESTED)
    timed("report: protocol", lambda: build_report("bench", under, None, questions=questions()))
    taken["report: wall"] = time.perf_counter() - start
    taken["MB at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told.send(taken)


def main() -> None:
    """Measure each size in a process of its own, and print them side by side."""
    columns = []
    for samples in [int(size) for size in sys.argv[1:]] or SIZES:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=measure, args=(samples, theirs))
        process.start()
        columns.append(ours.recv())
        process.join()
    for name in columns[0]:
        numbers = "".join(
            f"{column[name]:14,.{0 if column[name] > 100 else 2}f}" for column in columns
        )
        print(f"{name:22}{numbers}", flush=True)


if __name__ == "__main__":
    main()
