"""Writes traces of MLflow with assessments: FOLDER/mlflow.json, a list of `Trace.to_dict()`.

Needs `mlflow-skinny` and `pandas`; the store is a folder.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ |= {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
}

import mlflow
from mlflow.entities import AssessmentSource

CASES = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
JUDGE = AssessmentSource(source_type="LLM_JUDGE", source_id="scripted/grader")
MACHINE = ("mlflow.source", "mlflow.user")
PERSON = AssessmentSource(source_type="HUMAN", source_id="rater-1")


def main(folder: Path) -> None:
    """Traces each case, assesses it as a judge and as a person, and exports all traces."""
    with tempfile.TemporaryDirectory() as store:
        mlflow.set_tracking_uri(f"file:{store}")
        mlflow.set_experiment("capitals")
        for case in CASES:
            with mlflow.start_span("answer") as span:
                span.set_inputs({"question": case["question"]})
                span.set_outputs(case["answer"])
            mlflow.log_feedback(
                trace_id=span.trace_id,
                name="correct",
                value=None if case["grade"] == "N" else case["grade"] == "C",
                rationale=case["reason"],
                source=JUDGE,
            )
            mlflow.log_feedback(
                trace_id=span.trace_id,
                name="correct",
                value=case["person"] == "correct",
                source=PERSON,
            )
            mlflow.log_expectation(
                trace_id=span.trace_id, name="expected_response", value=case["reference"]
            )
        traces = mlflow.search_traces(return_type="list")
        exported = [trace.to_dict() for trace in traces]
        for trace in exported:  # paths and names of this machine
            trace["info"]["tags"].pop("mlflow.artifactLocation", None)
            metadata = trace["info"]["trace_metadata"]
            for name in [name for name in metadata if name.startswith(MACHINE)]:
                del metadata[name]
        Path(folder, "mlflow.json").write_text(json.dumps(exported), "utf-8")


main(Path(sys.argv[1]).resolve())
