"""Writes scores as Langfuse exports them: FOLDER/langfuse.json and FOLDER/langfuse/.

Langfuse's server needs databases of its own, so these files are written to its documented formats:
`langfuse.json` is a page of `GET /api/public/v2/scores`, made of the types of its SDK (`langfuse`);
the folder has tables of the blob storage export, `scores.csv` and `traces.jsonl`.
"""

import csv
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from langfuse.api.commons.types.score import Score_Categorical, Score_Numeric

CASES = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
LABELS = {"C": "correct", "P": "partly", "I": "incorrect"}
SCORES = {"C": 1.0, "P": 0.5, "I": 0.0}
TIME = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = (
    *("id", "timestamp", "project_id", "environment", "trace_id", "observation_id", "session_id"),
    *("dataset_run_id", "name", "value", "source", "comment", "data_type", "string_value"),
    *("created_at", "updated_at", "author_user_id", "evaluator_id"),
)


def scores() -> list[Score_Categorical | Score_Numeric]:
    """Returns a judge's grade and number, and a person's grade, for each case."""
    listed = []
    for case in CASES:
        shared = {
            "trace_id": f"trace-{case['id']}",
            "timestamp": TIME,
            "created_at": TIME,
            "updated_at": TIME,
            "environment": "default",
        }
        judge = {**shared, "source": "EVAL", "comment": case["reason"]}
        if case["grade"] in LABELS:
            listed.append(
                Score_Categorical(
                    id=f"grade-{case['id']}",
                    name="correctness",
                    value=SCORES[case["grade"]],
                    string_value=LABELS[case["grade"]],
                    **judge,
                )
            )
        listed.append(
            Score_Numeric(id=f"number-{case['id']}", name="quality", value=case["score"], **judge)
        )
        listed.append(
            Score_Categorical(
                id=f"person-{case['id']}",
                name="correctness",
                value=float(case["person"] == "correct"),
                string_value=case["person"],
                source="ANNOTATION",
                author_user_id="rater-1",
                **shared,
            )
        )
    return listed


def main(folder: Path) -> None:
    """Writes the files."""
    page = [json.loads(score.json()) for score in scores()]
    meta = {"page": 1, "limit": 100, "totalItems": len(page), "totalPages": 1}
    (folder / "langfuse.json").write_text(json.dumps({"data": page, "meta": meta}), "utf-8")
    tables = folder / "langfuse"
    tables.mkdir(parents=True, exist_ok=True)
    with (tables / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for case in CASES:
            row = {"trace_id": f"trace-{case['id']}", "name": "correct", "data_type": "BOOLEAN"}
            judged = {"id": f"e-{case['id']}", "source": "EVAL", "evaluator_id": "capitals-judge"}
            passed = case["grade"] == "C"
            value = {"value": int(passed), "string_value": str(passed)}
            table.writerow({**row, **judged, **value, "comment": case["reason"]})
            label = {"id": f"p-{case['id']}", "source": "ANNOTATION", "author_user_id": "rater-1"}
            right = case["person"] == "correct"
            value = {"value": int(right), "string_value": str(right)}
            table.writerow({**row, **label, **value})
    with (tables / "traces.jsonl").open("w", encoding="utf-8") as file:
        for case in CASES:
            trace = {"id": f"trace-{case['id']}", "name": "answer", "user_id": None}
            texts = {"input": case["question"], "output": case["answer"]}
            file.write(json.dumps({**trace, **texts}) + "\n")


main(Path(sys.argv[1]).resolve())
