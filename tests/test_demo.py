"""`judge-gym demo`: the whole pipeline on simulated judges, run twice."""

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from filelock import FileLock
from nbclient import NotebookClient
from scipy.stats import entropy

from judge_gym.analysis.frames import tidy
from judge_gym.protocols.validity import validity
from judge_gym.triage import lint_report

pytestmark = pytest.mark.slow

JUDGE, METHOD = "judge.model", "verdict.method"
CONCEPTS = ("fascism", "democratic backsliding", "democracy quality")
BENCHMARK = "review severity"
FILES = ("lab.db", "samples.csv", "samples.parquet", "report.html")
# As export promises it: DESIGN section 7.
COLUMNS = (
    "tag concept evidence series replicate flipped is_swap status stages n_stages probe call_id"
).split()


@dataclass(frozen=True)
class Demo:
    out: Path
    answers: tuple[Mapping[str, Any], ...]
    """What the first call printed, and the second, which could not run the tool ruff."""
    pages: tuple[str, ...]
    samples: pd.DataFrame


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo, run twice into one folder without keys and proxies, then also without ruff.

    Built once per session: the other workers wait for the one that builds it.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, printed = shared / "demo", shared / "demo.json"
    with FileLock(shared / "demo.lock"):
        if not printed.exists():
            printed.write_text(json.dumps(run_twice(folder)))
    answers, pages = json.loads(printed.read_text())
    out = folder / "out"
    frame = pd.read_csv(out / "samples.csv", dtype={"stages": str})
    return Demo(out, tuple(answers), tuple(pages), frame)


def run_twice(folder: Path) -> tuple[list[Any], list[str]]:
    """Runs the demo into a new folder; returns what each call printed, and its page."""
    without_ruff = folder.with_name("without-ruff")
    (without_ruff / "ruff").mkdir(parents=True)
    (without_ruff / "ruff" / "__init__.py").write_text("raise ImportError\n")
    folder.mkdir()
    out = folder / "out"
    kept = {k: v for k, v in os.environ.items() if not k.upper().endswith(("_KEY", "_PROXY"))}
    answers, pages = [], []
    for modules in ("", str(without_ruff)):
        done = subprocess.run(
            [sys.executable, "-m", "judge_gym", "demo", "--out", str(out), "--json"],
            capture_output=True,
            text=True,
            cwd=folder,
            env={**kept, "PYTHONWARNINGS": "error", "PYTHONPATH": modules},
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
        pages.append((out / "report.html").read_text(encoding="utf-8"))
    return answers, pages


@pytest.fixture(scope="module")
def samples(demo: Demo) -> pd.DataFrame:
    return demo.samples


def test_the_demo_completes_and_says_that_it_was_simulated(demo: Demo) -> None:
    answer = demo.answers[0]
    assert (answer["study"], answer["status"], answer["simulated"]) == ("demo", "complete", True)
    keys = {"tag", "run", "status", "counts", "calls", "reused", "usd", "saved"}
    assert all(run.keys() == keys for run in answer["runs"])
    assert {run["status"] for run in answer["runs"]} == {"complete"}
    assert sum(run["usd"] for run in answer["runs"]) == 0


def test_the_demo_keeps_what_it_made_in_its_folder(demo: Demo) -> None:
    assert set(demo.answers[0]["files"]) == set(FILES)
    assert all((demo.out / name).stat().st_size > 10_000 for name in FILES)
    assert {path.name for path in demo.out.parent.iterdir()} == {"out"}, "and nothing beside it"


def test_running_it_again_pays_nothing_and_changes_nothing(demo: Demo) -> None:
    first, second = demo.answers
    assert sum(run["calls"] for run in first["runs"]) > 1000
    assert sum(run["calls"] for run in second["runs"]) == 0
    same = ("tag", "run", "status", "counts")
    assert [[run[name] for name in same] for run in second["runs"]] == [
        [run[name] for name in same] for run in first["runs"]
    ]
    assert demo.pages[1] == demo.pages[0]


def test_it_ends_with_code_that_a_simulated_model_wrote_for_a_part_of_the_suite(demo: Demo) -> None:
    first = demo.answers[0]["suite"]
    assert (first["model"], first["status"], first["whole"]) == (
        "sim:coder-weak",
        "complete",
        False,
    )
    assert first["targets"] == first["calls"] == sum(first["counts"].values()) >= 12
    assert min(first["counts"]["passed"], first["counts"]["failed"]) > 0


def test_it_says_why_that_code_failed_in_a_report_that_adds_up(demo: Demo) -> None:
    first = demo.answers[0]["analysis"]
    counts = demo.answers[0]["suite"]["counts"]
    assert (first["counts"], len(first["findings"])) == (counts, counts["failed"])
    assert {row["class"] for row in first["findings"]} >= {"MODEL_FAULT"}
    assert any(row["differ"] for row in first["findings"]), "a hasty judge conflicts with another"
    path = Path(first["report"])
    assert path.is_relative_to(demo.out / "reports")
    text = path.read_text(encoding="utf-8")
    assert lint_report(text) == []
    assert "(all simulated)" in text
    assert text.count("The model's code (from the candidate's files)") >= 3


def test_without_the_tools_that_grade_it_says_what_it_leaves_out(demo: Demo) -> None:
    first, second = demo.answers
    assert first["left_out"] is None
    assert (second["status"], second["suite"], second["analysis"]) == ("complete", None, None)
    assert "; run " in second["left_out"] and "[suites]'" in second["left_out"]


def test_its_page_says_at_both_ends_that_judges_were_simulated(demo: Demo) -> None:
    page = demo.pages[0]
    said = "All judges were simulated"
    assert page.count(said) == 2
    assert page.index(said) < page.index("<svg") < page.rindex("</table>") < page.rindex(said)


def test_its_evidence_is_spread_over_the_scale() -> None:
    pools = {}
    for pool in ("valdoria", "norvessa"):
        text = (files("judge_gym.demo") / f"{pool}.jsonl").read_text(encoding="utf-8")
        pools[pool] = [json.loads(line) for line in text.splitlines()]
    contested = sorted(item["metadata"]["latent"] for item in pools["valdoria"])
    assert len(contested) >= 12
    assert contested[0] < 0.1 and contested[-1] > 0.9
    assert max(np.diff(contested)) < 0.15, "no part of the scale is left out"
    everything = [item for items in pools.values() for item in items]
    assert len({item["text"] for item in everything}) == len(everything)
    assert all(80 < len(item["text"].split()) < 250 for item in everything)


def test_three_judges_four_tasks_both_methods_on_all_the_evidence(samples: pd.DataFrame) -> None:
    cells = samples[~samples["is_swap"]].groupby(["concept", JUDGE, METHOD])["evidence"].nunique()
    assert len(cells) == 4 * 3 * 2
    assert set(samples["concept"]) == {*CONCEPTS, BENCHMARK}
    assert set(samples[METHOD]) == {"single", "subset"}
    assert samples[JUDGE].nunique() == 3 and samples["n_stages"].unique().tolist() == [4]
    assert (cells >= 12).all()
    types = samples.groupby("concept")["task_type"].first().to_dict()
    named = (*CONCEPTS, BENCHMARK)
    assert types == dict(zip(named, ("ecc", "ecc", "control", "benchmark"), strict=True))
    doses = samples.groupby("concept")["dose"].first()
    assert [doses[concept] for concept in CONCEPTS] == [2, 1, 0]


def test_every_judge_also_scores_under_the_others_rubrics(samples: pd.DataFrame) -> None:
    samples = samples[samples["concept"] != BENCHMARK]  # its rubric is given
    own, swapped = samples[~samples["is_swap"]], samples[samples["is_swap"]]
    assert (own["rubric_author"] == own[JUDGE]).all()
    assert (swapped["rubric_author"] != swapped[JUDGE]).all()
    cell = ["concept", METHOD, JUDGE, "rubric_author"]
    sizes = samples.groupby(["concept", *cell[1:]]).size()
    assert len(sizes) == 3 * 2 * 3 * 4, "own, two rivals', a third party's"
    assert sizes.groupby(level="concept").nunique().eq(1).all(), "equal samples on every side"


def test_every_scored_verdict_is_probed_and_no_other(samples: pd.DataFrame) -> None:
    scored = samples["status"] == "scored"
    assert samples.loc[scored, "probe"].between(0, 1).all()
    assert samples.loc[~scored, "probe"].isna().all()
    assert samples.loc[scored, "probe"].nunique() > 10
    assert (~scored).any(), "somewhere a judge abstains"


def test_every_validity_check_has_data(samples: pd.DataFrame) -> None:
    found = validity(tidy(samples)).set_index("check")
    assert len(found) == 5 and set(found["result"]) <= {"pass", "undecided", "too few items"}
    assert found["needs"].ne("").equals(found["result"] != "pass")


def test_stages_are_chosen_as_the_method_allows(samples: pd.DataFrame) -> None:
    scored = samples[samples["status"] == "scored"]
    sizes = scored["stages"].str.count(" ") + 1
    assert (sizes[scored[METHOD] == "single"] == 1).all()
    assert sizes[scored[METHOD] == "subset"].max() > 1
    assert scored["stages"].str.split().explode().astype(int).between(1, 4).all()
    assert samples.loc[samples["status"] != "scored", "stages"].isna().all()


def test_exports_hold_the_same_rows_and_the_promised_columns(demo: Demo) -> None:
    parquet = pd.read_parquet(demo.out / "samples.parquet")
    assert {*COLUMNS, JUDGE, METHOD, "evidence.view", "rubric.scale"} <= set(parquet.columns)
    assert parquet.columns.tolist() == demo.samples.columns.tolist()
    keys = ["tag", "sample", "status", "call_id", "probe"]
    pd.testing.assert_frame_equal(
        parquet[keys], demo.samples[keys], check_dtype=False, check_column_type=False
    )
    assert parquet["stages"].tolist() == demo.samples["stages"].fillna("").tolist()


def polarization(samples: pd.DataFrame, concept: str, method: str) -> float:
    """Raw P as methods.md defines it, computed here from the exported rows."""
    part = samples[(samples["concept"] == concept) & (samples[METHOD] == method)]
    part = part[(part["status"] == "scored") & ~part["is_swap"]]
    values = []
    for _, item in part.groupby("evidence"):
        shares = []
        for _, verdicts in item.groupby(JUDGE)["stages"]:
            mass = np.zeros(4)
            for stages in verdicts.str.split():
                mass[[int(stage) - 1 for stage in stages]] += 1 / len(stages)
            shares.append(mass / mass.sum())
        if len(shares) == 3:
            divergence = entropy(np.mean(shares, axis=0), base=2) - np.mean(
                [entropy(share, base=2) for share in shares]
            )
            values.append(divergence / np.log2(3))
    return float(np.mean(values))


@pytest.mark.parametrize("method", ["single", "subset"])
def test_judges_lie_farther_apart_the_more_contested_the_concept(
    samples: pd.DataFrame, method: str
) -> None:
    most, some, least = (polarization(samples, concept, method) for concept in CONCEPTS)
    assert most > some + 0.1 and some > least + 0.1


def test_the_alarmist_places_evidence_higher_than_the_strict_judge_and_most_so_on_fascism(
    samples: pd.DataFrame,
) -> None:
    scored = samples[(samples["status"] == "scored") & ~samples["is_swap"]]
    scored = scored[scored[METHOD] == "single"].astype({"stages": int})
    means = scored.groupby(["concept", JUDGE])["stages"].mean().unstack()
    gap = (means["sim:alarmist"] - means["sim:strict"]).to_dict()
    assert gap["fascism"] > gap["democratic backsliding"] > abs(gap["democracy quality"])


# --- what the analysis makes of it ---------------------------------------------------------------

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def tables(demo: Demo) -> Mapping[str, pd.DataFrame]:
    """The tables of the demo's report as CSV files, by name."""
    folder = demo.out.parent / "report"
    subprocess.run(
        [sys.executable, "-m", "judge_gym", "report", "demo", "--out", str(folder)],
        capture_output=True,
        env={**os.environ, "JUDGE_GYM_DATABASE_URL": f"sqlite:///{demo.out / 'lab.db'}"},
        timeout=120,
        check=True,
    )
    return {path.stem: pd.read_csv(path) for path in (folder / "tables").glob("*.csv")}


def test_the_table_of_polarization_has_what_its_formula_gives(
    demo: Demo, tables: Mapping[str, pd.DataFrame]
) -> None:
    table = tables["polarization"]
    for concept, method in itertools.product(CONCEPTS, ("single", "subset")):
        [row] = table.index[
            table["task"].str.startswith(concept) & (table["variant"] == f"{METHOD}={method}")
        ]
        expected = polarization(demo.samples, concept, method)
        assert table.loc[row, "p"] == pytest.approx(expected, abs=1e-9)


def test_the_folder_holds_every_table_and_figure_of_the_page_and_more(
    demo: Demo, tables: Mapping[str, pd.DataFrame]
) -> None:
    folder = demo.out.parent / "report"
    assert (folder / "report.html").read_text(encoding="utf-8") == demo.pages[0]
    drawn = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert drawn == {path.stem for path in (folder / "figures").glob("*.png")}
    text = (folder / "report.md").read_text(encoding="utf-8")
    for name in drawn:
        assert f'<figure id="{name}">' in demo.pages[0] and f"figures/{name}.svg)" in text
    on_page = set(re.findall(r'<(?:div|details) id="([^"]+)"', demo.pages[0]))
    assert on_page < {*tables}, "further tables are in the folder alone"
    assert len(drawn) >= 9 and len(tables) >= 25


def test_what_the_simulated_judges_do_is_found(tables: Mapping[str, pd.DataFrame]) -> None:
    """Judges part by bias, the more contested the concept; two of three are too sure."""
    verdicts: dict[str, str] = dict(
        tables["hypotheses"][["hypothesis", "outcome"]].itertuples(index=False)
    )
    assert verdicts["H1 entrenchment"] == "supported"
    assert verdicts["H2 consensus hallucination"] == "supported"
    checks = tables["validity-of-the-instrument"].set_index("check")["result"]
    assert checks["dose-response"] == "pass"
    stages = tables["expected-stage"].pivot(index=["task", "variant"], columns=JUDGE, values="mean")
    contested = stages[stages.index.get_level_values("task").str.contains("fascism")]
    assert (contested["sim:alarmist"] > contested["sim:balanced"]).all()
    assert (contested["sim:balanced"] > contested["sim:strict"]).all()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_on_the_demo(demo: Demo, tmp_path: Path, path: Path) -> None:
    (tmp_path / "demo-out").symlink_to(demo.out)
    notebook: Any = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in shown if output.get("name") == "stderr"]
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 2


def test_there_is_a_notebook_for_each_question() -> None:
    names = {path.stem for path in NOTEBOOKS}
    assert names == {"polarization", "entrenchment", "swap", "regression"}
