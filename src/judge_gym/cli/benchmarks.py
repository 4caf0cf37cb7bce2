"""Commands over benchmarks with known answers: benchmark judgebench, check and run."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab
from judge_gym.cli.options import NONE, AsJson, Set, parse_pairs
from judge_gym.cli.results import end, execute, show_result
from judge_gym.errors import ConflictError, DesignError

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.judges.pairs import Comparison, PairScore
    from judge_gym.engine import Result
    from judge_gym.sources.judgebench import Judgments

benchmark_app = typer.Typer(help="Judge items with known answers.", no_args_is_help=True)
app.add_typer(benchmark_app, name="benchmark")

Judges = Annotated[
    list[str], typer.Option("--judge", help="A model to run as a judge; repeatable.")
]
Folder = Annotated[Path, typer.Argument(help="A folder with items, rubric and settings.")]
LISTED = 20
"""Disagreements that are printed."""


@benchmark_app.command("judgebench")
def judgebench(
    pairs: Annotated[
        Path | None, typer.Argument(help="JudgeBench's pairs as published, for --judge.")
    ] = None,
    judge: Judges = NONE,
    judged: Annotated[
        list[Path] | None,
        typer.Option(help="A file of recorded judgments as published; scored without a call."),
    ] = None,
    set: Set = NONE,
    out: Annotated[Path | None, typer.Option(help="Write a page with tables and a figure.")] = None,
    json: AsJson = False,
) -> None:
    """Score judges on JudgeBench's pairs, run now or recorded, and compare several."""
    from judge_gym.analysis.judges.pairs import PUBLISHED, recorded_samples
    from judge_gym.analysis.report.pairs import build_pair_report
    from judge_gym.lab.texts import check_folder
    from judge_gym.sources.judgebench import read_judgments

    if not judge and not judged:
        raise DesignError("name a judge with --judge MODEL, or recorded judgments with --judged")
    if judge and pairs is None:
        raise DesignError("--judge needs the pairs: judge-gym benchmark judgebench PAIRS.jsonl")
    if out is not None:
        check_folder(out)
    recorded = _by_judge([(path, read_judgments(path)) for path in judged or []])
    by_judge = {
        name: recorded_samples(name, judgments.decisions) for name, judgments in recorded.items()
    }
    result = None
    if judge and pairs is not None:
        result, run_now = _run(pairs, judge, set, by_judge, quiet=json)
        by_judge |= run_now
    scores = _scores(by_judge)
    comparison = _compare(by_judge)
    if out is not None:
        page = build_pair_report("JudgeBench", scores, comparison).html()
        out.write_text(page, encoding="utf-8")
    if json:
        display.print_json(_json(scores, comparison, recorded, result))
    else:
        for name, score in scores.items():
            _show_score(name, score)
        display.text(PUBLISHED)
        for name, judgments in recorded.items():
            _show_reading(name, judgments)
        if comparison is not None:
            _show_comparison(comparison)
    if result is not None:
        end(result, quiet=json)


def _scores(by_judge: "Mapping[str, pd.DataFrame]") -> "dict[str, PairScore]":
    from judge_gym.analysis.judges.pairs import pair_verdicts, score_pairs

    verdicts = pair_verdicts(by_judge)
    return {name: score_pairs(verdicts, number) for number, name in enumerate(verdicts.setups)}


def _compare(by_judge: "Mapping[str, pd.DataFrame]") -> "Comparison | None":
    """Compares judges, if they share a pair."""
    from judge_gym.analysis.judges.pairs import compare_judges, pair_verdicts

    if len(by_judge) < 2:
        return None
    if not set.intersection(*({*samples["evidence"]} for samples in by_judge.values())):
        notes(f"{' and '.join(by_judge)} share no pair, so they are not compared")
        return None
    return compare_judges(pair_verdicts(by_judge))


def _by_judge(recorded: "Sequence[tuple[Path, Judgments]]") -> "dict[str, Judgments]":
    """Groups recorded judgments by judge, and names several of one judge with their files."""
    names = [judgments.judge for _, judgments in recorded]
    return {
        judgments.judge
        if names.count(judgments.judge) == 1
        else f"{judgments.judge} ({path})": judgments
        for path, judgments in recorded
    }


def _run(
    path: Path,
    judges: Sequence[str],
    set: Sequence[str],
    recorded: "Mapping[str, pd.DataFrame]",
    *,
    quiet: bool,
) -> "tuple[Result, dict[str, pd.DataFrame]]":
    with open_lab() as lab:
        prepared = lab.benchmarks.prepare(path, judges, overrides=parse_pairs("--set", set))
        items = {item.metadata.get("id") for item in prepared.sweep.experiments[0].task.pool.items}
        for name, samples in recorded.items():
            if items.isdisjoint(samples["evidence"]):
                raise DesignError(f"{path} and {name} share no pair; nothing was asked")
        result = execute(lambda watch: lab.runs.run(prepared, watch=watch), quiet)
        if not quiet:
            show_result(result, False)
        if result.stopped is not None:
            end(result, quiet=quiet)
        judged = lab.benchmarks.judged_pairs(prepared)
        if not judged:
            raise ConflictError(f"{path} has no verdicts; see judge-gym status")
        return result, judged


def _json(
    scores: "Mapping[str, PairScore]",
    comparison: "Comparison | None",
    recorded: "Mapping[str, Judgments]",
    result: "Result | None",
) -> dict[str, Any]:
    """Collects the score of one judge, or the scores of several with their comparison."""
    reading = {
        name: {
            "read": judgments.read,
            "unread": judgments.unread,
            "disagreements": [asdict(disagreement) for disagreement in judgments.disagreements],
        }
        for name, judgments in recorded.items()
    }
    extra = {"reading": reading} if reading else {}
    if result is not None:
        extra["run"] = result.to_json()
    if len(scores) == 1:
        [(name, score)] = scores.items()
        return {"judge": name, **score.to_json(), **extra}
    judges = {name: score.to_json() for name, score in scores.items()}
    compared = comparison.to_json() if comparison else None
    return {"judges": judges, "comparison": compared, **extra}


def _show_score(name: str, score: "PairScore") -> None:
    total = score.to_json()
    rows = [{"category": "all", **total}]
    rows += [{"category": name, **part} for name, part in total["by_category"].items()]
    display.table(
        name,
        [
            {
                "category": row["category"],
                "n": row["n"],
                "accuracy": _share(row["accuracy"]),
                "95 %": _interval(row["interval"]),
                "both right": _share(row["both_correct"]),
                "inconsistent": _share(row["inconsistent"]),
                "nulls": row["nulls"],
                "position bias": _share(row["position_bias"]),
            }
            for row in rows
        ],
        note="percent. A pair is right if its orders sum to above 0: +1 for one that names the "
        "better response, -1 for one that names the other. Position bias: first minus second.",
    )


def _show_reading(name: str, judgments: "Judgments") -> None:
    """Prints how often our parser reads recorded answers as they were recorded."""
    read, differ = judgments.read, len(judgments.disagreements)
    total = read + judgments.unread
    if not read:
        notes(f"{name}: none of {total} recorded answers has a text with a verdict to parse")
        return
    notes(
        f"{name}: {read} of {total} recorded answers have a verdict in their text; our parser "
        f"reads {read - differ} as recorded and {differ} differently"
    )
    display.table(
        "read differently than recorded (–: two verdicts in one place count as none)",
        [asdict(disagreement) for disagreement in judgments.disagreements[:LISTED]],
        note=f"and {differ - LISTED} more; --json lists all" if differ > LISTED else "",
    )


def _show_comparison(comparison: "Comparison") -> None:
    display.table(
        f"compared on {comparison.shared} shared pairs ({comparison.left_out} left out)",
        [
            {
                "judge": row["judge"],
                "other": row["other"],
                "difference": _share(row["difference"]),
                "95 %": _interval(row["interval"]),
                "McNemar p": row["p"],
                "q": row["q"],
                "only judge": row["only_judge"],
                "only other": row["only_other"],
                "agreement": _share(row["agreement"]),
                "alpha": row["alpha"],
            }
            for row in (contrast.to_json() for contrast in comparison.contrasts)
        ],
        note="difference: of accuracies, in points; q: p corrected over all pairs of judges "
        "(Benjamini-Hochberg); only: pairs that only this judge has right; "
        "agreement and Krippendorff's alpha: of decisions",
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _interval(bounds: Sequence[float] | None) -> str:
    return "–" if bounds is None else f"[{bounds[0]:.1f}, {bounds[1]:.1f}]"


@benchmark_app.command("check")
def check(
    folder: Folder,
    json: AsJson = False,
) -> None:
    """Check your own benchmark, and show what it contains."""
    from judge_gym.axes import Design

    _check_folder(folder)
    with open_lab() as lab:
        prepared = lab.benchmarks.prepare(folder, ["sim:balanced"])
    [experiment] = prepared.sweep.experiments
    task = experiment.task
    assert task.rubric is not None
    answers = [item.truth for item in task.pool.items]
    truths = {
        stage.label: answers.count(number) for number, stage in enumerate(task.rubric.stages, 1)
    }
    content: dict[str, Any] = {
        "study": prepared.study,
        "concept": task.concept,
        "items": len(answers),
        "pairs": task.pool.paired,
        "rubric": task.rubric.kind,
        "truths": truths,
        "without truth": answers.count(None),
    }
    if json:
        display.print_json(content)
        return
    facts = {**content, "truths": ", ".join(f"{n} {label}" for label, n in truths.items())}
    display.facts("", {name: display.cell(value) for name, value in facts.items()})
    persona = experiment.design.prompt.slots.scorer.persona
    if persona == Design.knobs()["prompt.slots.scorer.persona"].default:
        notes(f"the prompt tells judges that they are {persona}; change it in [design]")


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise DesignError(f"there is no folder {folder}; your own benchmark is a folder")


@benchmark_app.command("run")
def run(
    folder: Folder,
    judge: Judges = NONE,
    set: Set = NONE,
    json: AsJson = False,
) -> None:
    """Run judges on your own benchmark, one verdict per item."""
    _check_folder(folder)
    if not judge:
        raise DesignError("name a judge with --judge MODEL")
    with open_lab() as lab:
        prepared = lab.benchmarks.prepare(folder, judge, overrides=parse_pairs("--set", set))
        paired = prepared.sweep.experiments[0].task.pool.paired
        result = execute(lambda watch: lab.runs.run(prepared, watch=watch), json)
        scores = display.records(lab.benchmarks.known_answers(prepared))
        pairs = _scores(lab.benchmarks.judged_pairs(prepared)) if paired else {}
    if json:
        by_judge = {name: score.to_json() for name, score in pairs.items()}
        display.print_json({**result.to_json(), "scores": scores, "pairs": by_judge})
    else:
        show_result(result, False)
        for name, score in pairs.items():
            _show_score(name, score)
        if not paired:
            display.table("agreement with known answers", scores)
    end(result, quiet=json)
