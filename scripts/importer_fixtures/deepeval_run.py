"""Writes a test run of DeepEval, whose judge is scripted: FOLDER/deepeval.json.

Needs `deepeval`. The metric is G-Eval with threshold 0.5: a case passes from 5 points of 10.
"""

import json
import os
import shutil
import sys
from pathlib import Path

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "DEEPEVAL_DISABLE_DOTENV": "1"}

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig
from deepeval.metrics import ExactMatchMetric, GEval
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase, LLMTestCaseParams

CASES = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))


class ScriptedJudge(DeepEvalBaseLLM):
    """A model that gives each case its score, in tenths, and its reason."""

    def load_model(self) -> object:
        """Returns the model."""
        return self

    def get_model_name(self) -> str:
        """Returns its name in results."""
        return "scripted-judge"

    def generate(self, prompt: str, **_: object) -> str:
        """Returns the scripted score and reason."""
        case = next(case for case in CASES if case["question"] in prompt)
        return json.dumps({"score": round(case["score"] * 10), "reason": case["reason"]})

    async def a_generate(self, prompt: str, **_: object) -> str:
        """Returns the scripted score and reason."""
        return self.generate(prompt)


def main(folder: Path) -> None:
    """Runs the evaluation."""
    fields = [LLMTestCaseParams.INPUT, LLMTestCaseParams.ACTUAL_OUTPUT]
    judge = GEval(
        name="Correctness",
        evaluation_steps=["Compare the answer with the expected one."],
        evaluation_params=fields,
        model=ScriptedJudge(),
        threshold=0.5,
        async_mode=False,
    )
    evaluate(
        [
            LLMTestCase(
                name=case["id"],
                input=case["question"],
                actual_output=case["answer"],
                expected_output=case["reference"],
            )
            for case in CASES
        ],
        [judge, ExactMatchMetric()],
        hyperparameters={"model": "capitals-v1", "temperature": 0.2},
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(
            show_indicator=False, print_results=False, results_folder=str(folder / "runs")
        ),
    )
    [run] = (folder / "runs").glob("test_run_*.json")
    shutil.move(run, folder / "deepeval.json")
    shutil.rmtree(folder / "runs")


main(Path(sys.argv[1]).resolve())
