"""Writes spans and annotations of Phoenix: FOLDER/phoenix/spans.json and annotations.csv.

Needs `arize-phoenix` and `arize-phoenix-client`. A Phoenix server is started on the loopback
address, with its database in a temporary folder.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

CASES = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
PORT = 16006
ADDRESS = f"http://127.0.0.1:{PORT}"
PROJECT = "capitals"
LABELS = {"C": "correct", "P": "partly", "I": "incorrect"}
SCORES = {"C": 1.0, "P": 0.5, "I": 0.0}


def export(folder: Path) -> None:
    """Logs a span for each case with its annotations, and exports them."""
    from phoenix.client import Client

    client = Client(base_url=ADDRESS)
    spans = [
        {
            "name": "answer",
            "context": {"trace_id": f"{number:032x}", "span_id": f"{number:016x}"},
            "span_kind": "LLM",
            "start_time": "2026-01-01T00:00:00Z",
            "end_time": "2026-01-01T00:00:01Z",
            "status_code": "OK",
            "attributes": {"input.value": case["question"], "output.value": case["answer"]},
        }
        for number, case in enumerate(CASES, 1)
    ]
    client.spans.log_spans(project_identifier=PROJECT, spans=spans)
    while PROJECT not in [project["name"] for project in client.projects.list()]:
        time.sleep(0.2)
    while len(client.spans.get_spans(project_identifier=PROJECT)) < len(CASES):
        time.sleep(0.2)
    for number, case in enumerate(CASES, 1):
        of_span = {"span_id": f"{number:016x}", "annotation_name": "correctness"}
        client.spans.add_span_annotation(
            **of_span,
            annotator_kind="LLM",
            label=LABELS.get(case["grade"]),
            score=SCORES.get(case["grade"]),
            explanation=case["reason"],
            identifier="scripted:grader",
            metadata={"model": "scripted:grader"},
            sync=True,
        )
        client.spans.add_span_annotation(
            **of_span,
            annotator_kind="HUMAN",
            label=case["person"],
            identifier="rater-1",
            sync=True,
        )
    exported = client.spans.get_spans(project_identifier=PROJECT)
    annotations = client.spans.get_span_annotations_dataframe(
        span_ids=[span["context"]["span_id"] for span in spans], project_identifier=PROJECT
    )
    target = folder / "phoenix"
    target.mkdir(parents=True, exist_ok=True)
    (target / "spans.json").write_text(json.dumps(exported), "utf-8")
    annotations.to_csv(target / "annotations.csv")


def main(folder: Path) -> None:
    """Starts a server, exports from it, and stops it."""
    with tempfile.TemporaryDirectory() as store:
        environment = {
            "PHOENIX_WORKING_DIR": store,
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(PORT),
            "PHOENIX_GRPC_PORT": str(PORT + 1),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        server = subprocess.Popen(
            [sys.executable, "-m", "phoenix.server.main", "serve"],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(server)
            export(folder)
        finally:
            server.terminate()
            server.wait(30)


def wait_for(server: subprocess.Popen) -> None:
    """Waits until the server answers."""
    while server.poll() is None:
        try:
            urlopen(f"{ADDRESS}/healthz", timeout=2).close()
            return
        except (URLError, OSError):
            time.sleep(0.5)
    raise SystemExit("Phoenix did not start")


main(Path(sys.argv[1]).resolve())
