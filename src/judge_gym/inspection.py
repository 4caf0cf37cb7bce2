"""Inspection: the verbs that look into the lab itself: how it stands, its tables, log, studies."""

import os
from importlib import metadata
from typing import Any

from judge_gym.archive import Archive
from judge_gym.errors import NotFoundError, unknown
from judge_gym.store import Mark, Progress, Rows
from judge_gym.store.database import ENVIRONMENT

SOURCES = {
    ENVIRONMENT: "the lab's database",
    "FIRECRAWL_API_KEY": "key of the source firecrawl",
}


class Inspection(Archive):
    """An archive that tells how it stands; nothing here pays or changes anything."""

    def status(self, target: str | None = None, *, limit: int = 20) -> dict[str, Any]:
        """How far runs are: those of a study or an experiment, or the newest; first what goes on.

        Args:
            target: the study or tag.
            limit: experiments at most.
        """
        all_tags = [row["tag"] for row in self._rows([target] if target is not None else [])]
        going = set(self.store.logs.going()) & set(all_tags)
        others = self.store.logs.recent(limit) if target is None else all_tags
        tags = [*sorted(going), *(tag for tag in others if tag not in going)][:limit]
        runs = [_run(one) for tag in tags for one in self.store.progress.of_tag(tag)]
        told = {
            "version": metadata.version("judge-gym"),
            "database": self.store.database.engine.dialect.name,
            "somebody_is_at_work": self.store.progress.attended(),
            "experiments": len(all_tags),
            "shown": len(tags),
            "going_on": len(going) > limit or any(run["going_on"] for run in runs),
            "runs": runs,
        }
        if target is not None:
            told["usd"] = sum(row["usd"] or 0 for row in self.usage(target, by=["study"]))
        return told

    def logs(
        self, target: str | None = None, *, below: Mark | None = None, limit: int = 100
    ) -> tuple[list[dict[str, Any]], Mark | None]:
        """What happened to runs and which attempts failed, newest first; where to go on."""
        if target is not None:
            self._rows([target])
        return self.store.logs.page(target, below=below, limit=limit)

    def tables(self) -> list[dict[str, Any]]:
        """The lab's tables that can be read, with columns, keys and rows; no tokens."""
        return self.store.questions.tables()

    def query(self, sql: str, *, limit: int = 100) -> Rows:
        """One SELECT of the reader's own, answered by a database that lets it change nothing."""
        return self.store.questions.ask(sql, limit=limit)

    def environment(self) -> list[dict[str, Any]]:
        """Which variables the lab looks at, and whether each is set; never what they hold."""
        entries = self.models.entries
        known = dict(SOURCES)
        for name, provider in entries.providers.items():
            known |= dict.fromkeys(provider.key_env, f"key of {name}")
            known |= {provider.base_url_env: f"address of {name}"} if provider.base_url_env else {}
        for name, endpoint in entries.endpoints.items():
            known |= {endpoint.key_env: f"key of {name}"} if endpoint.key_env else {}
        return [
            {"name": name, "set": bool(os.environ.get(name, "").strip()), "for": what}
            for name, what in known.items()
        ]

    def list_studies(self) -> list[dict[str, Any]]:
        """Studies with their number of experiments, and whether their file is kept."""
        return self.store.logs.studies()

    def show_study(self, name: str) -> dict[str, Any]:
        """A study file as it was last run, and the budget as it is now."""
        text = self.store.logs.study_file(name)
        if text is None:
            kept = [row["study"] for row in self.list_studies() if row["file"]]
            raise NotFoundError(unknown("study file", name, kept), choices=kept)
        return {"study": name, "text": text, "budget": dict(self.store.runs.find_budget(name))}


def _run(progress: Progress) -> dict[str, Any]:
    event = progress.event
    going = event is not None and event.kind == "started" and not progress.ended
    return {
        "tag": progress.tag,
        "run": progress.run_id,
        "series": progress.series,
        "status": progress.status,
        "going_on": going,
        "wanted": dict(progress.wanted),
        "done": dict(progress.done),
        "failed": dict(progress.failed),
        "verdicts": dict(progress.statuses),
        "said": event.said if event is not None else "",
    }
