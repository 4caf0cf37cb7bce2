"""Writes logs of Inspect AI with scripted models: FOLDER/inspect.eval and FOLDER/inspect.json.

Needs `inspect-ai`. The archive has two epochs of each case. The grader gives the grade of the
case, and an answer without a grade for the case with grade N. A second scorer compares texts.
"""

import json
import shutil
import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import ProvenanceData, edit_score, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import ScoreEdit, includes, model_graded_qa

CASES = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))

TEMPLATE = "{question}\nAnswer: {answer}\nExpected: {criterion}\n{instructions}"
INSTRUCTIONS = "Write your reasons, then GRADE: C, GRADE: P or GRADE: I."


def answer(messages: list[ChatMessage], *_: object) -> ModelOutput:
    """Returns the scripted answer to a question."""
    case = next(case for case in CASES if case["question"] in messages[-1].text)
    return output("capitals", case["answer"])


def grade(messages: list[ChatMessage], *_: object) -> ModelOutput:
    """Returns the scripted grade of the answer to a question."""
    case = next(case for case in CASES if case["question"] in messages[-1].text)
    verdict = "" if case["grade"] == "N" else f"\n\nGRADE: {case['grade']}"
    return output("grader", case["reason"] + verdict)


def output(model: str, text: str) -> ModelOutput:
    """Returns what a model writes; without a usage, Inspect would fetch a tokenizer."""
    made = ModelOutput.from_content(model, text)
    made.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return made


def main(folder: Path) -> None:
    """Runs the evaluation, with and without repeats, and edits a score as a person would."""
    samples = [
        Sample(id=case["id"], input=case["question"], target=case["reference"]) for case in CASES
    ]
    grader = get_model("mockllm/grader", custom_outputs=grade)
    for kind, epochs in (("eval", 2), ("json", 1)):
        [log] = eval(
            Task(
                name="capitals",
                dataset=samples,
                scorer=[model_graded_qa(TEMPLATE, INSTRUCTIONS), includes()],
                epochs=epochs,
            ),
            model=get_model("mockllm/capitals", custom_outputs=answer),
            model_roles={"grader": grader},
            log_dir=str(folder / "logs"),
            log_format=kind,
            display="none",
        )
        file = folder / f"inspect.{kind}"
        shutil.move(log.location, file)
    shutil.rmtree(folder / "logs")
    log = read_eval_log(str(file))
    for sample in log.samples or []:
        sample.events = []  # they are most of the file, and no reader needs them
        sample.attachments = {}
    edit = ScoreEdit(
        value="I", provenance=ProvenanceData(author="rater-1", reason="Canberra is the capital.")
    )
    edit_score(log, "australia", "model_graded_qa", edit)
    write_eval_log(log, str(file), format="json")


main(Path(sys.argv[1]).resolve())
