"""The peak of memory of a small and of a large run: `python bench/memory.py`.

Targets are made, asked and written in chunks, so it should not grow with the samples. Each run has
a process of its own, with simulated judges in it.
"""

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor

from rig import laboratory

SMALL, LARGE = 1_000, 50_000


def measured(samples: int) -> tuple[float, float]:
    """The peak of resident memory in MB, and the seconds."""
    with laboratory("sim:balanced", samples) as (lab, prepared):
        start = time.perf_counter()
        [run] = lab.runs.run(prepared).runs
        seconds = time.perf_counter() - start
    assert sum(run.counts.values()) == samples, run
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds


def main() -> None:
    """Measure and print."""
    print(f"{'samples':>9} {'peak MB':>9} {'seconds':>9}")
    peaks = []
    for samples in (SMALL, LARGE):
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            peak, seconds = pool.submit(measured, samples).result()
        peaks.append(peak)
        print(f"{samples:9,} {peak:9.0f} {seconds:9.1f}", flush=True)
    print(f"{LARGE // SMALL} times the samples take {peaks[1] / peaks[0]:.2f} times the memory.")


if __name__ == "__main__":
    main()
