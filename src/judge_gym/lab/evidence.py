"""The noun `lab.evidence`: windows, items and frozen pools."""

import json
from collections.abc import Collection as AnyOf
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from judge_gym.axes import Design
from judge_gym.engine import WORKFLOWS, Engine
from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab.collection import (
    CollectionResult,
    collect,
    collected_window,
    window_of,
)
from judge_gym.lab.studies import Studies, Target
from judge_gym.lab.texts import files_of
from judge_gym.records import Evidence, Pool, Window
from judge_gym.records.requests import LOCAL, Day, Id, Items, Name, Sent
from judge_gym.records.responses import (
    Collected,
    Collection,
    FrozenPool,
    ItemDetail,
    ItemSummary,
    PoolDifference,
    PoolRow,
    ViewText,
    WindowItem,
    WindowRow,
    as_record,
    as_records,
)
from judge_gym.sources import OnProgress, load_benchmark, load_files
from judge_gym.sources import judgebench as judgebench_file
from judge_gym.store import Store
from judge_gym.studies import PoolSpec, Study, WindowSpec, check_pool

ITEMS, PAIRS = "items.jsonl", "pairs.jsonl"
NO_RUBRIC: Mapping[str, Any] = {}


class EvidenceLibrary:
    """Collects, shows and freezes evidence."""

    def __init__(self, store: Store, engine: Engine, studies: Studies) -> None:
        self._store = store
        self._engine = engine
        self._studies = studies

    # --- windows ---------------------------------------------------------------------------------

    def create_window(self, start_date: Day, end_date: Day, country: Name) -> int:
        """Creates a window for evidence, or finds the same one, and returns its number."""
        start, end = _period(start_date, end_date)
        if not country.strip():
            raise DesignError("a window has a country")
        return self._store.evidence.save_window(Window(country, start, end))

    def list_windows(self) -> Sequence[WindowRow]:
        """Lists windows with their number of items and how they were filled."""
        rows = [
            {**row, "collections": self._collections(row["window"])}
            for row in self._store.evidence.list_windows()
        ]
        # A search that failed at once is on record, but its empty window is not worth showing.
        failed = [
            row["window"]
            for row in rows
            if row["collections"]
            and not row["items"] + row["dropped"]
            and all(entry["error"] for entry in row["collections"])
        ]
        return [as_record(WindowRow, row) for row in rows if row["window"] not in failed]

    def _collections(self, window_id: int) -> Sequence[Collection]:
        return as_records(Collection, self._store.evidence.collections(window_id))

    def collect(
        self,
        start_date: Day,
        end_date: Day,
        country: Name,
        *,
        origin: Annotated[Name, Field(description="The name of a search, such as gdelt.")],
        query: Annotated[str, Field(max_length=500, description="What to search for.")] = "",
        addresses: Annotated[
            Sequence[Name],
            Field(max_length=100, description="Where an origin such as feeds looks."),
        ] = (),
        limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    ) -> Collected:
        """Searches the web for texts of a window and keeps what is new, even if it ends early."""
        start, end = _period(start_date, end_date)
        window = WindowSpec(country=country, start=start, end=end)
        search = PoolSpec.for_search(origin, query, addresses, limit=limit, window=window)
        result = self.collect_pool(search)
        result.raise_error()
        return {
            "window_id": result.window_id,
            "added": result.added,
            "held": result.held,
            "left_out": dict(result.found.dropped),
            "notes": [*result.found.notes],
        }

    def collect_pool(
        self,
        spec: PoolSpec,
        *,
        folder: Path = Path(),
        window_id: int | None = None,
        allow_private: bool = False,
        watch: OnProgress = lambda done, total: None,
    ) -> CollectionResult:
        """Collects what a pool's specification says and keeps what is new."""
        if window_id is None:
            check_pool(spec, ())
        return collect(
            self._store,
            spec,
            folder,
            window_id=window_id,
            allow_private=allow_private,
            watch=watch,
        )

    def collect_study(
        self,
        target: Target,
        *,
        again: bool = False,
        allow_private: bool = False,
        watch: OnProgress = lambda done, total: None,
    ) -> dict[str, CollectionResult]:
        """Runs the unfinished searches of a study file, with `again` all of them."""
        file = self._studies.read(target)
        if isinstance(file, str):
            raise DesignError(f"{file!r} is no study file")
        results = {}
        for name, spec in file.study.evidence.items():
            window = window_of(spec)
            if window is None or not spec.searched:
                continue
            if again or collected_window(self._store, window) is None:
                results[name] = self.collect_pool(
                    spec, folder=file.folder, allow_private=allow_private, watch=watch
                )
                if results[name].found.error or results[name].found.interrupted:
                    break
        return results

    def collect_missing(
        self,
        target: Target,
        *,
        allow_private: bool = False,
        watch: OnProgress = lambda done, total: None,
    ) -> dict[str, CollectionResult]:
        """Runs the searches of a study file that have not finished yet.

        Models that cannot be called are refused before any search is paid for.
        """
        file = self._studies.read(target)
        if isinstance(file, str) or not self._has_unfinished_search(file.study):
            return {}
        for judge in file.study.judges:
            design = Design.of({**file.study.design, "judge.model": judge})
            self._engine.refuse_uncallable(design, file.study.rivals(design), WORKFLOWS)
        with self._engine.lock():  # two searches at once would find different evidence
            return self.collect_study(file, allow_private=allow_private, watch=watch)

    def _has_unfinished_search(self, study: Study) -> bool:
        """Whether a study searches for evidence and none of its searches has finished."""
        windows = [window_of(spec) for spec in study.evidence.values() if spec.searched]
        return any(window and not collected_window(self._store, window) for window in windows)

    # --- items -----------------------------------------------------------------------------------

    def load(self, window_id: Id, items: Annotated[Items, Field(min_length=1)]) -> int:
        """Adds new items to a window and returns how many it then holds."""
        with files_of({ITEMS: _lines(items)}) as folder:
            return self.load_files(window_id, ITEMS, folder=folder)

    def load_files(
        self, window_id: int, files: str | Sequence[str], *, folder: Path = Path()
    ) -> int:
        """Loads files into a window and returns how many items it then holds."""
        patterns = files if isinstance(files, str) else [*files]
        return self.collect_pool(PoolSpec(files=patterns), folder=folder, window_id=window_id).held

    def load_benchmark(
        self,
        window_id: Id,
        *,
        concept: Name = "the better response",
        items: Items = (),
        rubric: Mapping[str, Any] = NO_RUBRIC,
        judgebench: Annotated[
            str | None, Field(description="The text of the published file.")
        ] = None,
    ) -> int:
        """Adds a benchmark's items and known answers to a window and returns its item count."""
        if judgebench is not None:
            with files_of({PAIRS: judgebench}) as folder:
                return self.load_benchmark_files(window_id, folder / PAIRS)
        texts = {
            "benchmark.toml": f"concept = {json.dumps(concept)}",
            ITEMS: _lines(items),
            "rubric.json": json.dumps(dict(rubric)),
        }
        with files_of(texts) as folder:
            return self.load_benchmark_files(window_id, folder)

    def load_benchmark_files(self, window_id: int, dataset_path: str | Path) -> int:
        """Loads a benchmark from a folder, or from JudgeBench's published file."""
        self._store.evidence.find_window(window_id)
        path = Path(dataset_path)
        benchmark = load_benchmark(path) if path.is_dir() else judgebench_file(path)
        added = self._store.evidence.add_to_window(window_id, benchmark.items)
        self._store.evidence.record_collection(window_id, benchmark.name, added, {}, "")
        return len(self._store.evidence.window_items(window_id))

    def list(self, window_id: Id) -> Sequence[WindowItem]:
        """Lists the items of a window."""
        self._store.evidence.find_window(window_id)
        in_window = {item.id for item in self._store.evidence.window_items(window_id)}
        return [
            {**summarize_item(item), "dropped": item.id not in in_window}
            for item in self._store.evidence.window_items(window_id, dropped=True)
        ]

    def show(self, id: Id) -> ItemDetail:
        """Shows an item with its text and all its views."""
        item = self._store.evidence.find_evidence(id)
        return {
            **summarize_item(item),
            "hash": item.hash,
            "metadata": dict(item.metadata),
            "text": item.text,
            "responses": [*item.responses],
            "views": as_records(ViewText, self._store.evidence.find_views(id)),
        }

    def drop(
        self,
        ids: Annotated[AnyOf[int], Sent(Sequence[Id]), Field(min_length=1, max_length=10_000)],
        *,
        window_id: Annotated[int | None, Sent(Id)] = None,
        undo: bool = False,
    ) -> int:
        """Removes items from their window, or restores them. Frozen pools keep them."""
        if window_id is None:
            windows = self._store.evidence.windows_of(ids)
            if len(windows) != 1:
                where = f"windows {', '.join(map(str, windows))}" if windows else "no window"
                raise DesignError(f"that evidence is in {where}; name one of them")
            [window_id] = windows
        return self._store.evidence.drop(window_id, ids, undo=undo)

    # --- pools -----------------------------------------------------------------------------------

    def freeze_pool(
        self,
        name: Name,
        *,
        window_id: Id | None = None,
        files: Annotated[Sequence[str], LOCAL] = (),
        tag: Annotated[Name | None, Field(description="Freeze its evidence.")] = None,
        folder: Annotated[Path, LOCAL] = Path(),
    ) -> FrozenPool:
        """Freezes the items of a window, of files or of an experiment under a permanent name."""
        if not name.strip():
            raise DesignError("a pool needs a name")
        if [window_id is None, not files, tag is None].count(False) != 1:
            raise DesignError("a pool is frozen from one window, from files or from an experiment")
        if tag is not None:
            [row] = self._store.experiments.rows(tags=[tag])
            pool = self._store.evidence.find_pool(row["pool_id"])
        elif window_id is not None:
            window = self._store.evidence.find_window(window_id)
            pool = Pool(self._store.evidence.window_items(window_id), window)
        else:
            pool = Pool(load_files([*files], folder).items)
        if not pool.items:
            raise ConflictError(f"the window {window_id} holds nothing to freeze")
        if any(row["name"] == name for row in self.list_pools()):
            frozen = self._store.evidence.find_named_pool(name)
            if _contents(frozen) != _contents(pool):
                raise ConflictError(
                    f"the pool {name!r} is frozen with other evidence; choose another name"
                )
        saved = self._store.evidence.save_pool(pool)
        self._store.evidence.name_pool(name, saved)  # raises if another process took the name
        return {"name": name, "items": len(saved.items), "hash": saved.hash}

    def list_pools(self) -> Sequence[PoolRow]:
        """Lists the frozen pools."""
        return as_records(PoolRow, self._store.evidence.list_pools())

    def list_pool_items(self, name: Name) -> Sequence[ItemSummary]:
        """Lists the items of a frozen pool, in its order."""
        return [summarize_item(item) for item in self._store.evidence.find_named_pool(name).items]

    def diff_pools(self, before: Name, after: Name) -> PoolDifference:
        """Compares two frozen pools: items added, removed, reordered and relabelled."""
        old, new = (self._store.evidence.find_named_pool(name) for name in (before, after))
        olds, news = ({item.hash: item for item in pool.items} for pool in (old, new))
        shared = [hash for hash in olds if hash in news]
        return {
            "same": old.hash == new.hash,
            "shared": len(shared),
            "added": [summarize_item(news[hash]) for hash in news if hash not in olds],
            "removed": [summarize_item(olds[hash]) for hash in olds if hash not in news],
            "reordered": shared != [hash for hash in news if hash in olds],
            "truths_changed": [
                {**summarize_item(news[hash]), "was": olds[hash].truth}
                for hash in shared
                if olds[hash].truth != news[hash].truth
            ],
        }


def _contents(pool: Pool) -> tuple[Any, ...]:
    return pool.hash, pool.window, [item.truth for item in pool.items]


def summarize_item(item: Evidence) -> ItemSummary:
    """Describes an item without its text."""
    return {
        "id": item.id,
        "title": item.title,
        "url": item.url,
        "date": item.date,
        "source": item.source,
        "cluster": item.cluster,
        "words": len(item.text.split()),
        "truth": item.truth,
    }


def _period(first: date | str, last: date | str) -> tuple[date, date]:
    """The first and the last day of a window."""
    start, end = _day(first), _day(last)
    if start > end:
        raise DesignError(f"a window ends after it starts, not {start} to {end}")
    return start, end


def _day(given: date | str) -> date:
    if isinstance(given, date):
        return given
    try:
        return date.fromisoformat(given)
    except ValueError as error:
        raise DesignError(f"a date is YYYY-MM-DD: {error}") from error


def _lines(items: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(json.dumps(item) for item in items)
