"""Reads the evidence, benchmarks and known answers that a study names."""

from dataclasses import replace
from pathlib import Path

from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab.collection import collected_window, window_of
from judge_gym.lab.study_errors import missing_files_at
from judge_gym.models import Registry
from judge_gym.records import Benchmark, Evidence, Pool, Window
from judge_gym.sources import judgebench, load_benchmark, load_files, load_items, vdem_truth
from judge_gym.store import Store
from judge_gym.studies import PoolSpec, Study, TaskSpec, TruthSpec, errors_at, read_knobs

MAX_NOTES = 5
"""Notes on single items of a pool that are passed on."""


def read_benchmark(spec: PoolSpec, folder: Path, models: Registry) -> Benchmark:
    """Reads a benchmark, whose knobs then name models by their full id."""
    if spec.judgebench is not None:
        return judgebench(folder / spec.judgebench)
    benchmark = load_benchmark(folder / str(spec.benchmark))
    return replace(benchmark, design=read_knobs(benchmark.design, resolve=models.resolve))


def read_pool(name: str, study: Study, folder: Path, store: Store, warnings: list[str]) -> Pool:
    """Reads the evidence of a study's pool from its files, or finds it in the lab."""
    spec = study.evidence[name]
    if spec.pool is not None:
        return store.evidence.find_named_pool(spec.pool)
    window = window_of(spec)
    if spec.files is not None or spec.items is not None:
        return _pool_of_files(name, study, folder, store, warnings)
    assert window is not None, "checked with the study"
    searched = spec.searched
    id = collected_window(store, window) if searched else store.evidence.window_id(window)
    items = store.evidence.window_items(id) if id else ()
    if not items:
        reason = "was found" if id else "has been collected yet"
        arguments = f"{study.file} --again" if id else study.file
        if not searched:
            arguments = f"FILES --country {window.country!r} --start ... --end ..."
        raise ConflictError(
            f"evidence {name!r}: nothing {reason} for {_window_text(window)}; collect it with: "
            f"judge-gym evidence add {arguments}"
        )
    return Pool(items, window)


def _pool_of_files(
    name: str, study: Study, folder: Path, store: Store, warnings: list[str]
) -> Pool:
    """Reads the items that a study names or holds, and warns about what is left out."""
    spec, window = study.evidence[name], window_of(study.evidence[name])
    if spec.files is not None:
        cache = _cache(store)
        with missing_files_at(study, ("evidence", name, "files")):
            result = load_files(spec.files, folder, window, columns=spec.labels, cache=cache)
    else:
        with study.locate_errors(), errors_at(("evidence", name, "items")):
            result = load_items(spec.items or (), window, columns=spec.labels)
    left_out = [f"{count} {reason}" for reason, count in result.dropped.items()]
    if not result.items:
        raise DesignError(f"evidence {name!r}: no item is left: {', '.join(left_out)}")
    if left_out:
        warnings.append(f"evidence {name!r}: left out {', '.join(left_out)}")
    items = _without_dropped(result.items, window, store, name, warnings)
    warnings += [f"evidence {name!r}: {note}" for note in result.notes[:MAX_NOTES]]
    if len(result.notes) > MAX_NOTES:
        warnings.append(f"evidence {name!r}: {len(result.notes) - MAX_NOTES} more of these notes")
    return with_draft_ids(Pool(items, window))


def _cache(store: Store) -> Path | None:
    """Locates the folder of filtered evidence, beside a database in a file."""
    file = store.database.file
    return file.with_suffix(".evidence") if file and file.name else None


def _without_dropped(
    items: tuple[Evidence, ...],
    window: Window | None,
    store: Store,
    name: str,
    warnings: list[str],
) -> tuple[Evidence, ...]:
    """Leaves out the items of files that a user dropped from their window."""
    id = store.evidence.window_id(window) if window else None
    if id is None:
        return items
    window_hashes = {item.hash for item in store.evidence.window_items(id)}
    all_hashes = {item.hash for item in store.evidence.window_items(id, dropped=True)}
    dropped_hashes = all_hashes - window_hashes
    remaining = tuple(item for item in items if item.hash not in dropped_hashes)
    if len(remaining) < len(items):
        count = len(items) - len(remaining)
        warnings.append(f"evidence {name!r}: {count} were dropped from window {id}")
    return remaining


def _window_text(window: Window) -> str:
    dates = f" from {window.start}" * bool(window.start) + f" to {window.end}" * bool(window.end)
    return f"{window.country}{dates}" + f" ({window.search})" * bool(window.search)


def with_draft_ids(pool: Pool) -> Pool:
    """Gives the items of a pool negative ids, so that a plan can tell unsaved items apart."""
    numbered = enumerate(pool.items, 1)
    return replace(pool, items=tuple(replace(item, id=-number) for number, item in numbered))


def with_truth(task: TaskSpec, pool: Pool, folder: Path) -> TaskSpec:
    """Looks up a task's reference value in V-Dem's table, if it names one."""
    if task.truth is None or task.truth.vdem is None:
        return task
    window, truth = pool.window, task.truth
    country = truth.country or (window.country if window else "")
    year = truth.year or (window.start.year if window and window.start else None)
    if year is None:
        raise DesignError(f"the truth of {task.concept!r} needs a year: truth: {{year: 2024}}")
    value = vdem_truth(folder / str(truth.vdem), country, year, truth.index, truth.direction)
    return task.model_copy(update={"truth": TruthSpec(**value)})
