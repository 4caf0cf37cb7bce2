"""A lab somewhere else: the verbs of `Lab` for reading and starting, against its HTTP API.

What a server refuses is raised as the same errors as `Lab` raises. To start is to order: a worker
of the server carries it out, and `follow` tells how far it is.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import urllib3

from judge_gym.client.connection import fields
from judge_gym.client.suites import Suites
from judge_gym.records import TaskType

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Client"]


class Client(Suites):
    """A remote lab.

    Args:
        url: where it is: `http://HOST:PORT`, or the address that `judge-gym lab` prints.
        token: what `judge-gym token create` printed; else that of the address, else
            `JUDGE_GYM_TOKEN`.
        timeout: seconds to wait for an answer.
    """

    # --- what is judged --------------------------------------------------------------------------

    def create_window(self, start_date: str, end_date: str, country: str) -> int:
        """A window for evidence."""
        sent = {"start_date": start_date, "end_date": end_date, "country": country}
        return int(self._post("windows", sent)["window_id"])

    def load_items(self, window_id: int, items: Sequence[Mapping[str, Any]]) -> int:
        """Put texts into a window, each with title and text; how many it then holds."""
        return int(self._post(f"windows/{window_id}/evidence", {"items": list(items)})["held"])

    def collect(
        self, start_date: str, end_date: str, country: str, **search: Any
    ) -> dict[str, Any]:
        """Have the server search for texts: `feeds`, `gdelt` or `firecrawl`, `query`, `limit`."""
        window = {"start_date": start_date, "end_date": end_date, "country": country}
        return self._post("windows/search", {**window, **search})

    def list_windows(self) -> list[dict[str, Any]]:
        """Every window, what it holds and how it was filled."""
        return list(self._rows("windows"))

    def list_evidence(self, window_id: int) -> list[dict[str, Any]]:
        """The items of a window."""
        return list(self._rows(f"windows/{window_id}/evidence"))

    def show_evidence(self, id: int) -> dict[str, Any]:
        """An item with its text and all its views."""
        return self._get(f"evidence/{id}")

    def freeze_pool(
        self, name: str, *, window_id: int | None = None, experiment_tag: str | None = None
    ) -> dict[str, Any]:
        """Freeze what a window holds now or an experiment judges: name, items, hash."""
        source = {"window_id": window_id, "experiment_tag": experiment_tag}
        return self._post("pools", {"name": name, **source})

    def list_pools(self) -> list[dict[str, Any]]:
        """The frozen pools."""
        return list(self._rows("pools"))

    def list_pool(self, name: str) -> list[dict[str, Any]]:
        """The items of a frozen pool, in its order."""
        return list(self._rows("pools/items", name=name))

    def diff_pools(self, before: str, after: str) -> dict[str, Any]:
        """What one frozen pool has and the other has not."""
        return self._get("pools/difference", before=before, after=after)

    def list_labels(self) -> list[dict[str, Any]]:
        """People's stages."""
        rows = self._rows("labels")
        return [{name: row[name] for name in row if name != "label"} for row in rows]

    # --- what was judged -------------------------------------------------------------------------

    def create_experiment(
        self,
        experiment_tag: str,
        window_id: int,
        model_id: str,
        task_type: TaskType,
        concept: str,
        config: Mapping[str, Any],
        ground_truth: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
    ) -> str:
        """One point of the design space, on the evidence that its window holds now."""
        sent = {
            "experiment_tag": experiment_tag,
            "window_id": window_id,
            "model_id": model_id,
            "task_type": task_type,
            "concept": concept,
            "config": dict(config),
            "ground_truth": dict(ground_truth) if ground_truth else None,
            "seed": seed,
        }
        return str(self._post("experiments", sent)["digest"])

    def get_experiment_summary(self, experiment_tag: str) -> dict[str, Any]:
        """What an experiment is and how far its runs are."""
        return self._get(f"experiments/{quote(experiment_tag, safe='')}")

    def list_experiments(
        self, *, study: str | None = None, task_type: str | None = None
    ) -> list[dict[str, Any]]:
        """Experiments with the status of their newest run."""
        return list(self._rows("experiments", study=study, task_type=task_type))

    def list_experiments_by_task_type(self, task_type: TaskType) -> list[dict[str, Any]]:
        """All experiments of a type."""
        return self.list_experiments(task_type=task_type)

    def list_experiment_rubrics(self, experiment_tag: str) -> list[dict[str, Any]]:
        """Rubrics with the critic's scores."""
        return list(self._rows("rubrics", target=experiment_tag))

    def list_experiment_samples(self, experiment_tag: str) -> list[dict[str, Any]]:
        """Samples with decoded stages."""
        return list(self._rows("samples", target=experiment_tag))

    def list_experiment_probes(self, experiment_tag: str) -> list[dict[str, Any]]:
        """Probes with the probability of expert agreement; null where it could not be read."""
        return list(self._rows("probes", target=experiment_tag))

    def export_experiment_csv(self, experiment_tag: str) -> str:
        """Tidy rows of one experiment."""
        return self.export_design_space_csv([experiment_tag])

    def export_design_space_csv(self, experiment_tags: Sequence[str]) -> str:
        """Tidy rows of several experiments."""
        sent = {"target": list(experiment_tags), "format": "csv"}
        return self._ask("GET", "samples", sent).data.decode("utf-8")

    def samples(self, *targets: str) -> "pd.DataFrame":
        """One tidy row per sample and a column per knob, of tags, studies, or everything."""
        import pandas as pd

        made = self._ask("GET", "samples", {"target": list(targets), "format": "parquet"})
        return pd.read_parquet(io.BytesIO(made.data))

    def usage(
        self, target: str | None = None, *, by: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """What was paid, of a study, a tag, or everything."""
        return list(self._rows("usage", paged=False, target=target, by=list(by) if by else None))

    def cleanup(self, tag: str, *, ledger: bool = False, force: bool = False) -> dict[str, int]:
        """Forget an experiment's runs; the ledger keeps every answer unless `ledger` is given."""
        path = f"experiments/{quote(tag, safe='')}"
        return dict(self._ask("DELETE", path, {"ledger": ledger, "force": force}).json())

    # --- looking after it ------------------------------------------------------------------------

    def status(self, target: str | None = None, *, limit: int = 20) -> dict[str, Any]:
        """How far runs are: those of a study or an experiment, or the newest."""
        return self._get("status", target=target, limit=limit)

    def list_studies(self) -> list[dict[str, Any]]:
        """Studies with their number of experiments, and whether their file is kept."""
        return list(self._rows("studies"))

    def show_study(self, name: str) -> dict[str, Any]:
        """A study file as it was last run, and the budget as it is now."""
        return self._get(f"studies/{quote(name, safe='')}")

    def tables(self) -> list[dict[str, Any]]:
        """The lab's tables that can be read, with columns, keys and rows."""
        return list(self._rows("tables", paged=False))

    def query(self, sql: str, *, limit: int = 100) -> dict[str, Any]:
        """The answer to one SELECT: columns, rows, and whether there is more."""
        return self._get("query", sql=sql, limit=limit)

    def environment(self) -> list[dict[str, Any]]:
        """Which variables the lab looks at, and whether each is set; never what they hold."""
        return list(self._rows("environment", paged=False))

    # --- putting evidence before judges ----------------------------------------------------------

    def start(
        self, target: str | None = None, *, study: str | None = None, **given: Any
    ) -> list[str]:
        """Order a study or an experiment and return at once: the tags.

        Args:
            target: a study's name or an experiment's tag.
            study: in its place the text of a study file, whose files lie on the server.
            given: overrides, series, new_run, workflows, samples, rivals, budget, pause_after and
                only_failed, as `Lab.start` takes them.
        """
        sent = {"target": target, "study": study, **given}
        return list(self._post("runs", sent)["started"])

    def plan(
        self, target: str | None = None, *, study: str | None = None, **given: Any
    ) -> dict[str, Any]:
        """What a study would ask, what it would cost, and what is in the ledger."""
        return self._post("plan", {"target": target, "study": study, **given})

    def start_evidence_pipeline(self, experiment_tag: str) -> list[str]:
        """W1: make the views that an experiment's judge reads."""
        return self.start(experiment_tag, workflows=["evidence"])

    def start_rubric_generation(self, experiment_tag: str) -> list[str]:
        """W2: have the rubric written and criticised."""
        return self.start(experiment_tag, workflows=["rubric"])

    def start_scoring_trial(self, experiment_tag: str, samples: int | None = None) -> list[str]:
        """W3: score."""
        return self.start(experiment_tag, workflows=["score"], samples=samples)

    def start_swap_trial(self, experiment_tag: str, swap_rubric_from: str) -> list[str]:
        """W4: score under a rival's rubric."""
        return self.start(experiment_tag, workflows=["swap"], rivals=[swap_rubric_from])

    def start_probing_trial(self, experiment_tag: str) -> list[str]:
        """W5: probe every scored sample."""
        return self.start(experiment_tag, workflows=["probe"])

    def resume(self, target: str, *, budget: Mapping[str, Any] | None = None) -> list[str]:
        """Go on with what was paused, interrupted or over its budget."""
        return list(self._post("runs/resume", {"target": target, "budget": budget})["started"])

    def retry(self, target: str) -> list[str]:
        """Ask again for what no attempt brought an answer to, and for nothing else."""
        return list(self._post("runs/retry", {"target": target})["started"])

    def reparse(self, target: str, *, write: bool = False) -> dict[str, Any]:
        """Read stored answers with today's parsers; what changes."""
        return self._post("reparse", {"target": target, "write": write})

    def pause(self, target: str) -> list[str]:
        """Begin no further call of unfinished runs; the tags of these."""
        return list(self._post("runs/pause", {"target": target})["paused"])

    def cancel(self, target: str) -> list[str]:
        """The same, for good."""
        return list(self._post("runs/cancel", {"target": target})["cancelled"])

    def retune(
        self,
        target: str,
        *,
        budget: Mapping[str, Any] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Change the budget of a study, or limits, while its runs go on; what holds now."""
        return self._post("runs/retune", {"target": target, "budget": budget, "limits": limits})

    def follow(
        self, target: str | None = None, *, after: int = 0
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """What goes on until all has ended: `event`, `status` and at last `end`, each with data.

        Args:
            target: a study's name or an experiment's tag; everything where none is given.
            after: the last event that is known already.
        """
        while True:  # a connection that breaks off is made anew, and goes on where it was
            headers = {"Last-Event-ID": str(after)} if after else {}
            stream = self._ask("GET", "events", {"target": target}, headers=headers, stream=True)
            kind = ""
            try:
                for name, value in fields(stream):
                    if name == "event":
                        kind = value
                    elif name == "id":
                        after = int(value)
                    elif name == "data":
                        yield kind, json.loads(value)
                        if kind == "end":
                            return
            except urllib3.exceptions.HTTPError:
                continue
            finally:
                stream.close()
