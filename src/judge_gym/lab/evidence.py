"""The noun `lab.evidence`: windows, items and frozen pools."""

import json
import threading
from collections.abc import Collection as AnyOf
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field

from judge_gym.axes import Design
from judge_gym.engine import WORKFLOWS, Engine
from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab.collection import (
    CollectionResult,
    LabSearch,
    collect,
    collected_window,
    window_of,
)
from judge_gym.lab.prepare import read_file
from judge_gym.lab.texts import files_of
from judge_gym.models import Registry
from judge_gym.records import Evidence, Pool, Window
from judge_gym.records.environment import SEARCH
from judge_gym.records.inputs import STUDY_SUFFIXES
from judge_gym.records.requests import LOCAL, Day, Id, Items, Name, Sent
from judge_gym.records.responses import (
    Collected,
    Collection,
    FrozenPool,
    ItemDetail,
    ItemSummary,
    PoolDifference,
    PoolRow,
    WindowItem,
    WindowRow,
)
from judge_gym.sources import OnProgress, load_benchmark, load_files
from judge_gym.sources import judgebench as judgebench_file
from judge_gym.store import Page, Store
from judge_gym.studies import PoolSpec, WindowSpec, check_pool

ITEMS, PAIRS = "items.jsonl", "pairs.jsonl"
NO_RUBRIC: Mapping[str, Any] = {}


class EvidenceLibrary:
    """Collects, shows and freezes evidence."""

    def __init__(self, store: Store, models: Registry, engine: Engine) -> None:
        self._store = store
        self._models = models
        self._engine = engine
        self._searching = threading.Lock()

    # --- windows ---------------------------------------------------------------------------------

    def create_window(self, start_date: Day, end_date: Day, country: Name) -> int:
        """Creates a window for evidence, or finds the same one, and returns its number."""
        start, end = _period(start_date, end_date)
        if not country.strip():
            raise DesignError("a window has a country")
        return self._store.evidence.save_window(Window(country, start, end))

    def find_window(self, window_id: int) -> tuple[Window, Sequence[Collection]]:
        """Returns a window and the collections that filled it, oldest first."""
        return self._store.evidence.find_window(window_id), self._collections(window_id)

    def list_windows(self) -> Sequence[WindowRow]:
        """Returns every window with its number of items and how it was filled."""
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
        return [cast(WindowRow, row) for row in rows if row["window"] not in failed]

    def _collections(self, window_id: int) -> Sequence[Collection]:
        return cast(Sequence[Collection], self._store.evidence.collections(window_id))

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
        path: Path,
        *,
        again: bool = False,
        allow_private: bool = False,
        watch: OnProgress = lambda done, total: None,
    ) -> dict[str, CollectionResult]:
        """Runs the searches of a study file; finished ones only if `again` is given."""
        study = read_file(path, self._models)
        results = {}
        for name, spec in study.evidence.items():
            window = window_of(spec)
            if window is None or not spec.searched:
                continue
            if again or collected_window(self._store, window) is None:
                results[name] = self.collect_pool(
                    spec, folder=path.parent, allow_private=allow_private, watch=watch
                )
                if results[name].found.error or results[name].found.interrupted:
                    break
        return results

    def collect_missing(
        self,
        target: str | Path,
        *,
        allow_private: bool = False,
        watch: OnProgress = lambda done, total: None,
    ) -> dict[str, CollectionResult]:
        """Runs the searches of a study file that have not finished yet.

        Models that cannot be called are refused before any search is paid for.
        """
        path = Path(target)
        if path.suffix not in STUDY_SUFFIXES or not self._uncollected(path):
            return {}
        study = read_file(path, self._models)
        for judge in study.judges:
            design = Design.of({**study.design, "judge.model": judge})
            self._engine.refuse_uncallable(design, study.rivals(design), WORKFLOWS)
        with self._engine.lock():  # two searches at once would find different evidence
            return self.collect_study(path, allow_private=allow_private, watch=watch)

    def _uncollected(self, path: Path) -> Sequence[str]:
        """Returns the evidence of a study file whose search has not finished."""
        study = read_file(path, self._models)
        windows = {name: window_of(spec) for name, spec in study.evidence.items() if spec.searched}
        return [
            name
            for name, window in windows.items()
            if window and not collected_window(self._store, window)
        ]

    def search(
        self,
        concept: str,
        window: Window,
        *,
        limit: int,
        watch: OnProgress = lambda done, total: None,
    ) -> Pool:
        """Searches a window for a concept with the lab's source; a finished search is not repeated.

        Each concept has a window of its own, so that what was found for one is not judged for
        another.
        """
        source = LabSearch.configured()
        spec = source.spec(concept, window, limit)
        check_pool(spec, ())
        searched = window_of(spec)
        assert searched is not None, "a search has a window"
        with self._searching:  # two searches at once would find different evidence
            id = collected_window(self._store, searched)
            items = self._store.evidence.window_items(id) if id else ()
            if not items:
                result = self.collect_pool(spec, allow_private=source.allow_private, watch=watch)
                result.raise_error()
                if result.found.interrupted:
                    raise KeyboardInterrupt
                items = self._store.evidence.window_items(result.window_id)
        if not items:
            left_out = ", ".join(f"{n} {reason}" for reason, n in result.found.dropped.items())
            raise ConflictError(
                f"the search ({searched.search}) found nothing for {window.country} from "
                f"{window.start} to {window.end}"
                + (f" (left out: {left_out})" if left_out else "")
                + f"; change the lab's source ({SEARCH}), or load evidence into the window"
            )
        return Pool(items, searched)

    # --- items -----------------------------------------------------------------------------------

    def load(self, window_id: Id, items: Annotated[Items, Field(min_length=1)]) -> int:
        """Loads items into a window and returns how many it then holds; known ones are skipped."""
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
        """Loads a benchmark's items with their known answers; returns the window's item count."""
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
        """Returns the items of a window."""
        self._store.evidence.find_window(window_id)
        kept = {item.id for item in self._store.evidence.window_items(window_id)}
        return [
            {**_described(item), "dropped": item.id not in kept}
            for item in self._store.evidence.window_items(window_id, dropped=True)
        ]

    def page(
        self,
        *,
        window_id: int | None = None,
        pool: str | None = None,
        tag: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> Page:
        """Returns a page of the items of a window, of a frozen pool or of an experiment."""
        evidence = self._store.evidence
        if sum(given is not None for given in (window_id, pool, tag)) != 1:
            raise DesignError("items are those of one window, of one pool or of one experiment")
        if tag is not None:
            [row] = self._store.experiments.rows(tags=[tag])
            found = evidence.some_of_pool(row["pool_id"], after, limit + 1)
        elif window_id is not None:
            evidence.find_window(window_id)
            found = evidence.some_of_window(window_id, after, limit + 1)
        else:
            found = evidence.some_of_pool(evidence.named_pool(str(pool)), after, limit + 1)
        rows = [
            {**_described(item), "pair": bool(item.responses), "dropped": dropped}
            for _, item, dropped in found[:limit]
        ]
        return Page(rows, str(found[limit - 1][0]) if len(found) > limit else None)

    def show(self, id: Id) -> ItemDetail:
        """Returns an item with its text and all its views."""
        item = self._store.evidence.find_evidence(id)
        return {
            **_described(item),
            "hash": item.hash,
            "metadata": dict(item.metadata),
            "text": item.text,
            "responses": [*item.responses],
            "views": cast(Any, self._store.evidence.find_views(id)),
        }

    def uses(self, id: int, limit: int = 50) -> dict[str, Any]:
        """Returns the windows, frozen pools and experiments that hold an item, `limit` of each."""
        return self._store.evidence.holders(id, limit)

    def drop(
        self,
        ids: Annotated[AnyOf[int], Sent(Sequence[Id]), Field(min_length=1, max_length=10_000)],
        *,
        window_id: Annotated[int | None, Sent(Id)] = None,
        undo: bool = False,
    ) -> int:
        """Removes items from their window, or restores them; frozen pools keep them."""
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

    def list_judged(self, *, limit: int) -> Sequence[dict[str, Any]]:
        """Returns the pools that runs judged, by study, the most recently judged first."""
        return self._store.items.judged_pools(limit)

    def list_pools(self) -> Sequence[PoolRow]:
        """Returns the frozen pools."""
        return cast(Sequence[PoolRow], self._store.evidence.list_pools())

    def list_pool_items(self, name: Name) -> Sequence[ItemSummary]:
        """Returns the items of a frozen pool, in its order."""
        return [_described(item) for item in self._store.evidence.find_named_pool(name).items]

    def diff_pools(self, before: Name, after: Name) -> PoolDifference:
        """Returns what was added, removed, reordered and relabelled between two frozen pools."""
        old, new = (self._store.evidence.find_named_pool(name) for name in (before, after))
        olds, news = ({item.hash: item for item in pool.items} for pool in (old, new))
        shared = [hash for hash in olds if hash in news]
        return {
            "same": old.hash == new.hash,
            "shared": len(shared),
            "added": [_described(news[hash]) for hash in news if hash not in olds],
            "removed": [_described(olds[hash]) for hash in olds if hash not in news],
            "reordered": shared != [hash for hash in news if hash in olds],
            "truths_changed": [
                {**_described(news[hash]), "was": olds[hash].truth}
                for hash in shared
                if olds[hash].truth != news[hash].truth
            ],
        }


def _contents(pool: Pool) -> tuple[Any, ...]:
    return pool.hash, pool.window, [item.truth for item in pool.items]


def _described(item: Evidence) -> ItemSummary:
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
    """Returns the first and the last day of a window."""
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
