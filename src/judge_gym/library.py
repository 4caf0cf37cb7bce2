"""Library: the verbs over what is judged: windows of evidence, frozen pools, people's labels."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.gathering import Gathered, collected, gather, window_of
from judge_gym.models import Registry
from judge_gym.preparing import STUDY_SUFFIXES, read_file
from judge_gym.records import Evidence, Pool, Window
from judge_gym.sources import Watch, judgebench, load_benchmark, load_files, read_labels
from judge_gym.store import Page, Store
from judge_gym.studies import SEARCHES, PoolSpec, check_pool


class Library:
    """Evidence and what people say of it, in one database."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.models = Registry()

    # --- windows ---------------------------------------------------------------------------------

    def create_window(self, start_date: str, end_date: str, country: str) -> int:
        """A window for evidence."""
        try:
            start, end = date.fromisoformat(start_date), date.fromisoformat(end_date)
        except ValueError as fault:
            raise DesignError(f"a date is YYYY-MM-DD: {fault}") from fault
        if start > end:
            raise DesignError(f"a window ends after it starts, not {start} to {end}")
        if not country.strip():
            raise DesignError("a window has a country")
        return self.store.evidence.save_window(Window(country, start, end))

    def collect(
        self,
        spec: PoolSpec,
        *,
        folder: Path = Path(),
        window_id: int | None = None,
        allow_private: bool = False,
        watch: Watch = lambda done, wanted: None,
    ) -> Gathered:
        """Search for evidence and keep what is new, also if the search breaks off.

        Args:
            spec: where to search, for what, and in which window.
            folder: where the paths of files begin.
            window_id: add to this window.
            allow_private: fetch from addresses of the user's own network, too.
            watch: told how many articles are done, and of how many.
        """
        if window_id is None:
            check_pool(spec, ())
        return gather(
            self.store,
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
        watch: Watch = lambda done, wanted: None,
    ) -> dict[str, Gathered]:
        """Collect what a study file searches for; once, unless `again`, so that a study stays."""
        study = read_file(path, self.models)
        gathered = {}
        for name, spec in study.evidence.items():
            window = window_of(spec)
            if window is None or spec.origin not in SEARCHES:
                continue
            if again or collected(self.store, window) is None:
                gathered[name] = self.collect(
                    spec, folder=path.parent, allow_private=allow_private, watch=watch
                )
                if gathered[name].found.fault or gathered[name].found.interrupted:
                    break
        return gathered

    def uncollected(self, path: Path) -> list[str]:
        """The evidence that a study file searches for and that was never collected."""
        study = read_file(path, self.models)
        windows = {
            name: window_of(spec)
            for name, spec in study.evidence.items()
            if spec.origin in SEARCHES
        }
        return [
            name for name, window in windows.items() if window and not collected(self.store, window)
        ]

    def load_evidence(
        self, window_id: int, files: str | Sequence[str], *, folder: Path = Path()
    ) -> int:
        """Load files into a window; how many texts it then holds."""
        listed = files if isinstance(files, str) else list(files)
        return self.collect(PoolSpec(files=listed), folder=folder, window_id=window_id).held

    def load_benchmark_evidence(self, window_id: int, dataset_path: str | Path) -> int:
        """Load a benchmark's items with their known answers; how many the window then holds.

        A folder is a benchmark in judge-gym's format, a file JudgeBench's pairs as published.
        """
        self.store.evidence.find_window(window_id)
        path = Path(dataset_path)
        benchmark = load_benchmark(path) if path.is_dir() else judgebench(path)
        added = self.store.evidence.add_to_window(window_id, benchmark.items)
        self.store.evidence.record_collection(window_id, benchmark.name, added, {}, "")
        return len(self.store.evidence.window_items(window_id))

    def list_windows(self) -> list[dict[str, Any]]:
        """Every window, what it holds and how it was filled."""
        rows = self.store.evidence.list_windows()
        for row in rows:
            made = self.store.evidence.collections(row["window"])
            row["collections"] = [
                {name: entry[name] for name in ("at", "source", "added", "dropped", "fault")}
                for entry in made
            ]
        # A search that failed from the start is on record, and no window to look at.
        empty = [
            row["window"]
            for row in rows
            if row["collections"]
            and not row["items"] + row["dropped"]
            and all(made["fault"] for made in row["collections"])
        ]
        return [row for row in rows if row["window"] not in empty]

    def list_evidence(self, window_id: int) -> list[dict[str, Any]]:
        """The items of a window."""
        self.store.evidence.find_window(window_id)
        kept = {item.id for item in self.store.evidence.window_items(window_id)}
        return [
            {**_described(item), "dropped": item.id not in kept}
            for item in self.store.evidence.window_items(window_id, dropped=True)
        ]

    def show_evidence(self, id: int) -> dict[str, Any]:
        """An item with its text and all its views."""
        item = self.store.evidence.find_evidence(id)
        return {
            **_described(item),
            "hash": item.hash,
            "metadata": dict(item.metadata),
            "text": item.text,
            "responses": list(item.responses),
            "views": self.store.evidence.find_views(id),
        }

    def page_evidence(
        self,
        *,
        window_id: int | None = None,
        pool: str | None = None,
        experiment_tag: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> Page:
        """Items of a window, of a frozen pool or of an experiment, so many at once.

        Args:
            window_id: what a window holds.
            pool: what is frozen under a name.
            experiment_tag: what an experiment judges.
            after: the place of the last of the page before.
            limit: how many at most.
        """
        evidence = self.store.evidence
        if sum(one is not None for one in (window_id, pool, experiment_tag)) != 1:
            raise DesignError("items are those of one window, of one pool or of one experiment")
        if experiment_tag is not None:
            [row] = self.store.queries.tags(tags=[experiment_tag])
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

    def evidence_holders(self, id: int, most: int = 50) -> dict[str, list[Any]]:
        """The windows, frozen pools and experiments that an item is in, so many of each."""
        return self.store.evidence.holders(id, most)

    def drop_evidence(
        self, ids: Collection[int], *, window_id: int | None = None, undo: bool = False
    ) -> int:
        """Take evidence out of its window, for good; frozen pools keep it. `undo` puts it back."""
        if window_id is None:
            windows = self.store.evidence.windows_of(ids)
            if len(windows) != 1:
                where = f"windows {', '.join(map(str, windows))}" if windows else "no window"
                raise DesignError(f"that evidence is in {where}; name one with --window ID")
            [window_id] = windows
        return self.store.evidence.drop(window_id, ids, undo=undo)

    # --- pools -----------------------------------------------------------------------------------

    def freeze_pool(
        self,
        name: str,
        *,
        window_id: int | None = None,
        files: Sequence[str] = (),
        experiment_tag: str | None = None,
        folder: Path = Path(),
    ) -> Pool:
        """Freeze what a window or files hold, or an experiment judges, under a name that stays."""
        if not name.strip():
            raise DesignError("a pool needs a name")
        if [window_id is None, not files, experiment_tag is None].count(False) != 1:
            raise DesignError("a pool is frozen from one window, from files or from an experiment")
        if experiment_tag is not None:
            [row] = self.store.queries.tags(tags=[experiment_tag])
            pool = self.store.evidence.find_pool(row["pool_id"])
        elif window_id is not None:
            window = self.store.evidence.find_window(window_id)
            pool = Pool(self.store.evidence.window_items(window_id), window)
        else:
            pool = Pool(load_files(list(files), folder).items)
        if not pool.items:
            raise ConflictError(f"the window {window_id} holds nothing to freeze")
        if any(row["name"] == name for row in self.list_pools()):
            frozen = self.store.evidence.find_named_pool(name)
            if _contents(frozen) != _contents(pool):
                raise ConflictError(
                    f"the pool {name!r} is frozen with other evidence; choose another name"
                )
        saved = self.store.evidence.save_pool(pool)
        self.store.evidence.name_pool(name, saved)  # which refuses it if another was quicker
        return saved

    def list_pools(self) -> list[dict[str, Any]]:
        """The frozen pools."""
        return self.store.evidence.list_pools()

    def list_pool(self, name: str) -> list[dict[str, Any]]:
        """The items of a frozen pool, in its order."""
        return [_described(item) for item in self.store.evidence.find_named_pool(name).items]

    def diff_pools(self, before: str, after: str) -> dict[str, Any]:
        """What one frozen pool has and the other has not."""
        old, new = (self.store.evidence.find_named_pool(name) for name in (before, after))
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

    # --- people ----------------------------------------------------------------------------------

    def import_labels(
        self, path: Path, *, target: str | None = None, concept: str = "", replace: bool = False
    ) -> dict[str, int]:
        """Import people's stages from a CSV with item, rater, stage; all of it or nothing.

        Args:
            path: the file.
            target: a study or tag whose evidence is meant; else everything that the lab holds.
            concept: what the raters judged; else whatever the items are judged for.
            replace: take a stage that differs from what the rater said before.
        """
        items, stages = self._labelled(target)
        labels = read_labels(path)
        names = _names(items)
        found = {label.item: _identified(label.item, names, path) for label in labels}
        said: dict[tuple[int, str], str] = {}
        rows = []
        for label in labels:
            key = (found[label.item], label.rater)
            if said.setdefault(key, label.stage) != label.stage:
                raise DesignError(
                    f"{path}: {label.rater} gives evidence {key[0]}, by two names, the stages "
                    f"{said[key]!r} and {label.stage!r}"
                )
            if stages and label.stage not in stages:
                raise DesignError(
                    f"{path}: {label.rater} gives {label.item!r} the stage {label.stage!r}; "
                    f"choose {', '.join(stages)}",
                    choices=stages,
                )
            rows.append(
                {
                    "evidence_id": found[label.item],
                    "concept": concept,
                    "rater": label.rater,
                    "stage": label.stage,
                }
            )
        return self.store.evidence.save_labels(rows, replace=replace)

    def _labelled(self, target: str | None) -> tuple[tuple[Evidence, ...], list[str]]:
        """The items that labels may be about, and the stages that they may name."""
        if target is None:
            return self.store.evidence.all_evidence(), []
        if Path(target).suffix in STUDY_SUFFIXES:
            target = read_file(Path(target), self.models).study
        rows = self.store.queries.tags(study=target) or self.store.queries.tags(tags=[target])
        experiments = [self.store.runs.find_experiment(row["tag"])[0] for row in rows]
        items = {item.id: item for made in experiments for item in made.task.pool.items}
        stages: dict[str, None] = {}
        for made in experiments:
            rubric = made.task.rubric
            scale = rubric.scale if rubric else made.design.rubric.scale
            stages |= dict.fromkeys(str(number) for number in range(1, scale + 1))
            stages |= dict.fromkeys(stage.label for stage in rubric.stages) if rubric else {}
        return tuple(items.values()), list(stages)

    def list_labels(self) -> list[dict[str, Any]]:
        """People's stages."""
        return self.store.evidence.labels()


def _contents(pool: Pool) -> tuple[Any, ...]:
    return pool.hash, pool.window, [item.truth for item in pool.items]


def _described(item: Evidence) -> dict[str, Any]:
    fields = ("id", "title", "url", "date", "source")
    described = {name: getattr(item, name) for name in fields}
    return described | {"words": len(item.text.split()), "truth": item.truth}


def _names(items: Sequence[Evidence]) -> dict[str, set[int]]:
    """What an item may be called: its number, address, hash, published id or title."""
    names: dict[str, set[int]] = {}
    for item in items:
        published = str(item.metadata.get("id", ""))
        for name in {str(item.id), item.url, item.hash, published, item.title} - {""}:
            names.setdefault(name, set()).add(item.id)
    return names


def _identified(name: str, names: Mapping[str, set[int]], path: Path) -> int:
    """The one item that a label is about."""
    found = names.get(name, set())
    if len(found) > 1:
        listed = ", ".join(map(str, sorted(found)))
        raise DesignError(
            f"{path}: {name!r} may be evidence {listed}; name it by number or by an address, hash "
            "or id that is its own, or narrow it with --study"
        )
    if not found:
        raise NotFoundError(
            f"{path}: there is no evidence {name!r}, by number, address, published id or title; "
            "nothing was imported"
        )
    return next(iter(found))
