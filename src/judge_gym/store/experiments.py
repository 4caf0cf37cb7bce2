"""Experiments, the tags that name them, and the studies that they belong to."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.axes import NONE, Design, complete, template_digest
from judge_gym.errors import NotFoundError, Remedy
from judge_gym.records import Pool, Rubric, content_hash
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.evidence import EvidenceRecords
from judge_gym.store.ledger import Ledger
from judge_gym.store.rubrics import Rubrics
from judge_gym.studies import Declarations, Experiment, StudyVersion, Task, declarations

DIGEST = re.compile(r"[0-9a-f]{12}")
NO_EVIDENCE = Pool(()).hash
"""The hash of a pool without items: an experiment on it is a draft."""


class Page(NamedTuple):
    """A page of rows, and the cursors of the pages before and after it."""

    rows: Sequence[Mapping[str, Any]]
    next: str | None
    """The cursor of the next page; None on the last."""
    previous: str | None = None
    """The cursor of the previous page, where pages can be read backwards; None on the first."""


class Experiments:
    """Saves, finds, lists and deletes experiments."""

    def __init__(self, database: Database, evidence: EvidenceRecords, rubrics: Rubrics) -> None:
        self._database = database
        self._evidence = evidence
        self._rubrics = rubrics

    def save(self, experiment: Experiment, study: str) -> None:
        """Saves an experiment under its tag; what the tag meant before is kept as `tag@digest`."""
        task = experiment.task
        with self._database.begin() as connection:
            row = {
                "digest": experiment.digest,
                "task_type": task.type,
                "concept": task.concept,
                "country": task.country,
                "pool_id": task.pool.id,
                "rubric_id": task.rubric.id if task.rubric else None,
                "seed": experiment.seed,
                "design": experiment.design.values(),
            }
            self._database.insert_new(connection, t.experiments, [row])
            if experiment.template:
                text = {"hash": content_hash(experiment.template), "body": experiment.template}
                self._database.insert_new(connection, t.texts, [text])
            this = t.tags.c.tag == experiment.tag
            older = connection.execute(sa.select(t.tags).where(this)).mappings().first()
            if older and older["digest"] != experiment.digest:
                older_tag = dict(older) | {
                    "tag": f"{experiment.tag}@{older['digest'][:8]}",
                    "study": "",
                }
                self._database.insert_new(connection, t.tags, [older_tag])
                connection.execute(t.tags.delete().where(this))
                older = None
            tag = {
                "tag": experiment.tag,
                "digest": experiment.digest,
                "study": study,
                "owner": older["owner"] if older and not study else study,
                "pool_name": task.pool_name,
                "pool_id": task.pool.id,
                "dose": task.dose,
                "truth": dict(task.truth) if task.truth else None,
                "protocol": task.protocol,
            }
            insert = self._database.insert(t.tags).values(tag)
            connection.execute(insert.on_conflict_do_update(index_elements=["tag"], set_=tag))

    def find(self, tag: str) -> tuple[Experiment, str]:
        """Returns the experiment of a tag, and the study that named it."""
        named = [column for column in t.tags.c if column.name not in ("digest", "pool_id")]
        query = (
            sa.select(t.experiments, *named, t.tags.c.pool_id.label("tag_pool"))
            .join(t.tags, t.tags.c.digest == t.experiments.c.digest)
            .where(t.tags.c.tag == tag)
        )
        row = self._database.first(query)
        if row is None:
            raise self._not_found(tag)
        rubric = self._rubrics.find(id=row.rubric_id) if row.rubric_id else None
        task = Task(
            type=row.task_type,
            concept=row.concept,
            pool_name=row.pool_name,
            pool=self._evidence.find_pool(row.tag_pool),
            rubric=rubric if isinstance(rubric, Rubric) else None,
            dose=row.dose,
            truth=row.truth,
            protocol=row.protocol,
        )
        design = Design.of(complete(row.design))
        return Experiment(tag, task, design, row.seed, self.template(design)), row.study

    def template(self, design: Design) -> str:
        """Returns the text of a design's own prompt, which is stored with its experiments."""
        digest, h = template_digest(design.prompt.template), t.texts.c.hash
        if design.prompt.template == NONE or not DIGEST.fullmatch(digest):
            return ""
        # A range uses the index; "g" follows every hexadecimal digit.
        query = sa.select(t.texts.c.body).where(h >= digest, h < digest + "g")
        return str(self._database.scalar(query) or "")

    def rows(
        self,
        *,
        study: str | None = None,
        task_type: str | None = None,
        tags: Sequence[str] = (),
        pool_name: str | None = None,
    ) -> list[dict[str, Any]]:
        """Returns experiments by their tags, with annotations and the value of every knob."""
        e = t.experiments.c
        draft = (t.pools.c.hash == NO_EVIDENCE).label("draft")
        query = (
            sa.select(
                t.tags,
                e.task_type,
                e.concept,
                e.country,
                e.seed,
                e.design,
                t.pools.c.window_id,
                draft,
            )
            .join(t.experiments, e.digest == t.tags.c.digest)
            .join(t.pools, t.pools.c.id == t.tags.c.pool_id)
        )
        if study is not None:
            query = query.where(t.tags.c.study == study)
        if task_type is not None:
            query = query.where(e.task_type == task_type)
        if tags:
            query = query.where(t.tags.c.tag.in_(tags))
        if pool_name is not None:
            query = query.where(t.tags.c.pool_name == pool_name)
        rows = self._database.rows(query.order_by(t.tags.c.tag))
        for row in rows:
            row["design"] = complete(row["design"])
        for tag in sorted(set(tags) - {row["tag"] for row in rows}):
            raise self._not_found(tag)
        return rows

    def page(
        self,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int,
        study: str | None = None,
        task_type: str | None = None,
        judge: str | None = None,
    ) -> Page:
        """Returns a page of tags in order: the first page, or the one after or before a tag."""
        tag = t.tags.c.tag
        query = sa.select(tag).order_by(tag if before is None else tag.desc()).limit(limit + 1)
        if before is not None:
            query = query.where(tag < before)
        elif after is not None:
            query = query.where(tag > after)
        if study is not None:
            query = query.where(t.tags.c.study == study)
        e = t.experiments.c
        query = query.join(t.experiments, e.digest == t.tags.c.digest)
        if task_type is not None:
            query = query.where(e.task_type == task_type)
        if judge is not None:
            query = query.where(e.design["judge.model"].as_string() == judge)
        tags_found = self._database.scalars(query)
        more, tags = len(tags_found) > limit, tags_found[:limit]
        has_next, has_previous = more, after is not None
        if before is not None:
            tags.reverse()
            has_next, has_previous = True, more
        if not tags:
            return Page([], None)
        rows = [{"tag": tag} for tag in tags]
        return Page(rows, tags[-1] if has_next else None, tags[0] if has_previous else None)

    def judges(self) -> list[str]:
        """Returns every model that judges in an experiment."""
        judge = t.experiments.c.design["judge.model"].as_string()
        return [
            str(model) for model in self._database.scalars(sa.select(judge).distinct()) if model
        ]

    def task_types(self) -> list[str]:
        """Returns every type of task that an experiment has; a neutral task has none."""
        types = sa.select(t.experiments.c.task_type).distinct()
        return [type for type in self._database.scalars(types) if type]

    def delete(self, tag: str, *, ledger: bool, forget: bool) -> dict[str, int]:
        """Deletes an experiment's runs; with `ledger`, the calls that only it used too.

        Runs that another tag names stay, and so do those of other studies. With `forget` the tag
        is deleted, too; else it stays, with the time.
        """
        this = t.tags.c.tag == tag
        row = self._database.first(sa.select(t.tags).where(this))
        if row is None:
            raise self._not_found(tag)
        digest = row.digest
        with self._database.begin() as connection:
            named = sa.and_(t.runs.c.digest == digest, t.runs.c.owner == row.owner)
            runs = sa.select(t.runs.c.id).where(named)
            samples = sa.select(t.samples.c.call_id).where(t.samples.c.run_id.in_(runs))
            probes = (
                sa.select(t.probes.c.call_id).join(t.samples).where(t.samples.c.run_id.in_(runs))
            )
            queries = {"runs": runs, "samples": samples, "probes": probes}
            counts = {name: _count(connection, query) for name, query in queries.items()}
            counts["calls"] = 0
            calls = list(connection.scalars(sa.union(samples, probes))) if ledger else []
            if forget:
                connection.execute(t.tags.delete().where(this))
            else:
                now = datetime.now(UTC)
                connection.execute(t.tags.update().where(this).values(cleaned_up=now))
            other_tags = sa.select(t.tags.c.owner, t.tags.c.cleaned_up, t.tags.c.tag).where(
                t.tags.c.digest == digest
            )
            left = connection.execute(other_tags).all()
            if any(
                other.owner == row.owner and other.tag != tag and other.cleaned_up is None
                for other in left
            ):
                return dict.fromkeys(counts, 0)
            connection.execute(t.events.delete().where(t.events.c.run_id.in_(runs)))
            connection.execute(t.runs.delete().where(named))
            if not left:
                connection.execute(t.experiments.delete().where(t.experiments.c.digest == digest))
            if calls:
                counts["calls"] = _delete_unused_calls(connection, calls)
        return counts

    def _not_found(self, tag: str) -> NotFoundError:
        """Returns the error for an unknown tag, with similar tags."""
        like = t.tags.c.tag.contains(tag, autoescape=True)
        near = self._database.scalars(sa.select(t.tags.c.tag).where(like).limit(5))
        if not near:
            columns = (t.tags.c.tag, t.tags.c.study)
            names = [
                name for column in columns for name in self._database.scalars(sa.select(column))
            ]
            near = get_close_matches(tag, dict.fromkeys(filter(None, names)), 3)
        if not near:
            return NotFoundError(f"there is no experiment {tag!r}", remedy=Remedy("runs.status"))
        hint = f"did you mean {' or '.join(map(repr, near))}?"
        return NotFoundError(f"there is no experiment {tag!r}; {hint}", choices=near)


def _count(connection: sa.Connection, query: sa.Select[Any]) -> int:
    return int(connection.scalar(sa.select(sa.func.count()).select_from(query.subquery())) or 0)


def _delete_unused_calls(connection: sa.Connection, ids: list[int]) -> int:
    """Deletes calls that no record refers to, and returns how many."""
    owners = (t.samples, t.probes, t.views, t.rubrics, t.critiques)
    deleted = 0
    for start in range(0, len(ids), 500):
        free = sa.and_(
            t.calls.c.id.in_(ids[start : start + 500]),
            *(~sa.exists().where(owner.c.call_id == t.calls.c.id) for owner in owners),
        )
        gone = [id for (id,) in connection.execute(sa.select(t.calls.c.id).where(free))]
        connection.execute(t.attempts.delete().where(t.attempts.c.call_id.in_(gone)))
        connection.execute(t.calls.delete().where(t.calls.c.id.in_(gone)))
        deleted += len(gone)
    return deleted


class Studies:
    """The records of studies."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    def save(
        self,
        name: str,
        budget: Mapping[str, Any],
        file: str | None = None,
        declared: Mapping[str, Any] | None = None,
    ) -> None:
        """Saves the budget of a study and, where they are given, its file and what it declares.

        A text that differs from the last one is a new version; older versions are kept.
        """
        with self._database.begin() as connection:
            hash = self._ledger.save_text(connection, file or "")
            if file is not None:
                version: dict[str, Any] = {"file": hash, "declared": dict(declared or {})}
                last = connection.execute(_versions(name).limit(1)).mappings().first()
                if last is None or {key: last[key] for key in version} != version:
                    version |= {"study": name, "saved": datetime.now(UTC)}
                    connection.execute(t.study_versions.insert().values(version))
            row = {"name": name, "file": hash, "budget": budget}
            changes = row if file is not None else {"budget": budget}
            insert = self._database.insert(t.studies).values(row)
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=changes))

    def is_saved(self, study: str) -> bool:
        """Returns whether a study has a file or a budget."""
        query = sa.select(t.studies.c.name).where(t.studies.c.name == study)
        return self._database.scalar(query) is not None

    def budget(self, study: str) -> Mapping[str, Any]:
        """Returns the budget of a study; empty if it has none."""
        query = sa.select(t.studies.c.budget).where(t.studies.c.name == study)
        return self._database.scalar(query) or {}

    def file(self, name: str) -> str | None:
        """Returns the text of a study file as it was last run; None if none was stored."""
        query = (
            sa.select(t.texts.c.body)
            .join(t.studies, t.studies.c.file == t.texts.c.hash)
            .where(t.studies.c.name == name)
        )
        return self._database.scalar(query) or None

    def declarations(self, name: str) -> Declarations:
        """Returns what a study declares about its analysis, and how many answers it had then."""
        rows = self._database.rows(_versions(name))
        versions = [StudyVersion(row["declared"], row["saved"]) for row in reversed(rows)]
        return declarations(versions, partial(self._answers_before, name))

    def margin(self, name: str) -> float | None:
        """Returns the size below which a study calls a difference negligible."""
        row = self._database.first(_versions(name).limit(1))
        return row.declared.get("margin") if row else None

    def _answers_before(self, name: str, times: Sequence[datetime]) -> tuple[int, list[int]]:
        """Returns how many verdicts of a study are answered, and how many were at each time.

        An answer that another study had asked for counts from the time when it came.
        """
        answered = (
            sa.select(sa.func.min(t.attempts.c.at).label("at"))
            .join(t.samples, t.samples.c.call_id == t.attempts.c.call_id)
            .where(t.samples.c.run_id.in_(_active_runs(name)), t.attempts.c.completed)
            .group_by(t.samples.c.id)
            .subquery()
        )
        earlier = [sa.func.count().filter(answered.c.at < time) for time in times]
        with self._database.read() as connection:
            total, *counts = connection.execute(
                sa.select(sa.func.count(answered.c.at), *earlier)
            ).one()
        return total, counts

    def rows(self) -> list[dict[str, Any]]:
        """Returns studies with their number of experiments, and whether their file is stored."""
        files = (
            sa.select(sa.func.length(t.texts.c.body) > 0)
            .join(t.studies, t.studies.c.file == t.texts.c.hash)
            .where(t.studies.c.name == t.tags.c.study)
            .scalar_subquery()
        )
        query = (
            sa.select(
                t.tags.c.study,
                sa.func.count().label("experiments"),
                sa.func.coalesce(files, sa.false()).label("file"),
            )
            .where(t.tags.c.study != "")
            .group_by(t.tags.c.study)
            .order_by(t.tags.c.study)
        )
        return [{**row, "file": bool(row["file"])} for row in self._database.rows(query)]

    def counts(self) -> dict[str, int]:
        """Returns the number of experiments by study, the study that was started last first.

        "" stands for experiments without a study.
        """
        versions = t.study_versions
        newest = (
            sa.select(sa.func.coalesce(sa.func.max(versions.c.id), 0))
            .where(versions.c.study == t.tags.c.study)
            .scalar_subquery()
        )
        query = sa.select(t.tags.c.study, sa.func.count()).group_by(t.tags.c.study)
        return self._database.pairs(query.order_by(newest.desc(), t.tags.c.study))

    def fingerprint(self, study: str) -> tuple[int, ...]:
        """Returns numbers that change when what a study's report shows changes."""
        mine = sa.select(t.tags.c.digest).where(t.tags.c.study == study)
        runs = _active_runs(study)
        counted = (t.samples, t.probes, t.events)
        queries = [sa.select(sa.func.count()).where(table.c.run_id.in_(runs)) for table in counted]
        queries += [
            sa.select(sa.func.count()).select_from(mine.subquery()),
            sa.select(sa.func.count()).select_from(t.labels),
            sa.select(sa.func.count()).select_from(t.label_queues),
            sa.select(sa.func.count()).select_from(_versions(study).subquery()),
            sa.select(sa.func.count()).select_from(t.corrections),
        ]
        with self._database.read() as connection:
            return tuple(int(connection.scalar(query) or 0) for query in queries)


def _versions(study: str) -> sa.Select[Any]:
    """Returns the query for the saved versions of a study, the newest first."""
    versions = t.study_versions
    return sa.select(versions).where(versions.c.study == study).order_by(versions.c.id.desc())


def _active_runs(study: str) -> sa.Select[Any]:
    """Returns the query for the runs whose samples a study's report shows."""
    return (
        sa.select(t.runs.c.id)
        .join(t.tags, t.NAMED_RUNS)
        .where(t.tags.c.study == study, t.runs.c.superseded.is_(None))
    )
