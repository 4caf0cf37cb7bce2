"""Writes samples of lm-evaluation-harness with a scripted model: FOLDER/samples_capitals.jsonl.

Needs `lm-eval`. The task's metrics are exact match and a score between 0 and 1.
"""

import json
import shutil
import sys
from pathlib import Path

from datasets import Dataset
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.loggers import EvaluationTracker

CASES = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))


class ScriptedModel(LM):
    """A model that gives the scripted answers."""

    def generate_until(self, requests: list, **_: object) -> list[str]:
        """Returns the scripted answer to each request."""
        texts = [request.args[0] for request in requests]
        return [
            next(case["answer"] for case in CASES if case["question"] in text) for text in texts
        ]

    def loglikelihood(self, requests: list, **_: object) -> list:
        """Is not needed."""
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def judged(doc: dict, results: list[str]) -> dict[str, float]:
    """Scores an answer as a judge would: by the scripted score."""
    return {"exact_match": float(results[0] == doc["reference"]), "judge_score": doc["score"]}


def main(folder: Path) -> None:
    """Runs the task and writes its samples."""
    task = ConfigurableTask(
        config={
            "task": "capitals",
            "custom_dataset": lambda **_: {"test": Dataset.from_list(CASES)},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": "{{question}}",
            "doc_to_target": "{{reference}}",
            "process_results": judged,
            "generation_kwargs": {"until": ["\n\n"]},
            "metric_list": [
                {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True},
                {"metric": "judge_score", "aggregation": "mean", "higher_is_better": True},
            ],
        }
    )
    results = simple_evaluate(ScriptedModel(), tasks=[task], log_samples=True, bootstrap_iters=0)
    samples = results.pop("samples")
    tracker = EvaluationTracker(output_path=str(folder / "lm_eval"))
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name="capitals", samples=samples["capitals"])
    [written] = (folder / "lm_eval").rglob("samples_*.jsonl")
    shutil.move(written, folder / "samples_capitals.jsonl")
    shutil.rmtree(folder / "lm_eval")


main(Path(sys.argv[1]).resolve())
