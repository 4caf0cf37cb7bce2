"""Verbs over benchmarks with known answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import (
    AsJson,
    NoSet,
    Set,
    app,
    carry_out,
    end,
    notes,
    open_lab,
    overrides,
    same_command,
    show_result,
)
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from judge_gym.analysis.pairs import Comparison, JudgedPair, PairScores
    from judge_gym.engine import Result
    from judge_gym.sources.judgebench import Judgments

benchmark_app = typer.Typer(help="Judge what has a known answer.", no_args_is_help=True)
app.add_typer(benchmark_app, name="benchmark")

Judges = Annotated[
    list[str] | None, typer.Option("--judge", help="A model to run as a judge; repeat it.")
]
SHARES = ("accuracy", "both_correct", "inconsistent", "position_bias")


@benchmark_app.command("judgebench")
def judgebench(
    pairs: Annotated[
        Path | None, typer.Argument(help="JudgeBench's pairs as published, for --judge.")
    ] = None,
    judge: Judges = None,
    judged: Annotated[
        list[Path] | None,
        typer.Option(help="A file of recorded judgments as published; scored without a call."),
    ] = None,
    set: Set = NoSet,
    out: Annotated[Path | None, typer.Option(help="Write a page with tables and figure.")] = None,
    json: AsJson = False,
) -> None:
    """Score judges on JudgeBench's pairs, run now or recorded; several are compared."""
    from judge_gym.analysis.pair_report import build_pair_report
    from judge_gym.analysis.pairs import compare, score_pairs
    from judge_gym.cli import display
    from judge_gym.sources.judgebench import read_judged

    if not judge and not judged:
        raise DesignError("name a judge with --judge MODEL, or recorded judgments with --judged")
    if judge and pairs is None:
        raise DesignError("--judge needs the pairs: judge-gym benchmark judgebench PAIRS.jsonl")
    recorded = [read_judged(path) for path in judged or []]
    names = [one.judge for one in recorded]
    found: dict[str, Sequence[JudgedPair]] = {
        one.judge if names.count(one.judge) == 1 else f"{one.judge} ({path})": one.pairs
        for one, path in zip(recorded, judged or [], strict=True)
    }
    result = None
    if judge and pairs is not None:
        result, run_now = _run(pairs, judge, set, quiet=json)
        found |= run_now
    scores = {name: score_pairs(judged_pairs) for name, judged_pairs in found.items()}
    comparison = compare(found) if len(found) > 1 else None
    if out is not None:
        page = build_pair_report("JudgeBench", scores, comparison).html()
        out.write_text(page, encoding="utf-8")
    if json:
        display.print_json(_json(scores, comparison, recorded, result))
    else:
        for name, score in scores.items():
            _show_score(name, score)
        for one in recorded:
            _show_reading(one)
        if comparison is not None:
            _show_comparison(comparison)
    if result is not None:
        end(result, same_command(), quiet=json)


def _run(
    path: Path, judges: Sequence[str], set: Sequence[str], *, quiet: bool
) -> "tuple[Result, dict[str, Sequence[JudgedPair]]]":
    with open_lab() as lab:
        prepared = lab.prepare_benchmark(path, judges, overrides=overrides(set))
        result = carry_out(lambda watch: lab.run(prepared, watch=watch), quiet=quiet)
        if not quiet:
            show_result(result, False)
        if result.stopped is not None:
            end(result, same_command(), quiet=quiet)
        return result, dict(lab.judged_pairs(prepared))


def _json(
    scores: "Mapping[str, PairScores]",
    comparison: "Comparison | None",
    recorded: "Sequence[Judgments]",
    result: "Result | None",
) -> dict[str, Any]:
    """One judge's score as it is; of several, each by name, and how they compare."""
    reading = {
        one.judge: {
            "read": one.read,
            "unread": one.unread,
            "disagreements": [
                {"pair": d.pair, "order": d.order, "recorded": d.recorded, "read": d.read}
                for d in one.disagreements
            ],
        }
        for one in recorded
    }
    extra = {"reading": reading} if reading else {}
    if result is not None:
        extra["run"] = result.to_json()
    if comparison is None:
        [(name, score)] = scores.items()
        return {"judge": name, **score.to_json(), **extra}
    judges = {name: score.to_json() for name, score in scores.items()}
    return {"judges": judges, "comparison": comparison.to_json(), **extra}


def _show_score(name: str, score: "PairScores") -> None:
    from judge_gym.cli import display

    told = score.to_json()
    rows = [{"category": "all", **told}]
    rows += [{"category": name, **part} for name, part in told["by_category"].items()]
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
        note="percent; right: +1 per order that names the better response, -1 for the other, "
        "above 0 in sum; position bias: first minus second",
    )


def _show_reading(one: "Judgments") -> None:
    from judge_gym.cli import display

    total = one.read + one.unread
    agree = one.read - len(one.disagreements)
    notes(
        f"{one.judge}: of {total} recorded answers {one.read} hold a verdict that we can read, "
        f"{agree} of them as recorded"
    )
    display.table(
        "read otherwise than recorded",
        [
            {"pair": d.pair, "order": d.order, "recorded": d.recorded, "read": d.read}
            for d in one.disagreements
        ],
    )


def _show_comparison(comparison: "Comparison") -> None:
    from judge_gym.cli import display

    display.table(
        f"compared on {comparison.shared} shared pairs ({comparison.left_out} left out)",
        [
            {
                "judge": row["judge"],
                "other": row["other"],
                "difference": _share(row["difference"]),
                "95 %": _interval(row["interval"]),
                "McNemar p": row["p"],
                "only judge": row["only_judge"],
                "only other": row["only_other"],
                "agreement": _share(row["agreement"]),
                "alpha": row["alpha"],
            }
            for row in (contrast.to_json() for contrast in comparison.contrasts)
        ],
        note="difference of accuracies in points; only: pairs that this judge alone has right; "
        "agreement and Krippendorff's alpha of decisions",
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _interval(bounds: Sequence[float] | None) -> str:
    return "–" if bounds is None else f"{bounds[0]:.1f} to {bounds[1]:.1f}"


@benchmark_app.command("check")
def check(
    folder: Annotated[Path, typer.Argument(help="A folder with items, rubric and settings.")],
    json: AsJson = False,
) -> None:
    """Check a benchmark of one's own, and say what it holds."""
    from judge_gym.cli import display

    with open_lab() as lab:
        prepared = lab.prepare_benchmark(folder, ["sim:balanced"])
    [experiment] = prepared.sweep.experiments
    task = experiment.task
    assert task.rubric is not None
    answers = [item.truth for item in task.pool.items]
    told = {
        "study": prepared.study,
        "concept": task.concept,
        "items": len(answers),
        "pairs": task.pool.paired,
        "rubric": task.rubric.kind,
        "truths": {
            stage.label: answers.count(number) for number, stage in enumerate(task.rubric.stages, 1)
        },
        "without truth": answers.count(None),
    }
    if json:
        display.print_json(told)
        return
    display.table("", [{"": name, " ": str(value)} for name, value in told.items()])


@benchmark_app.command("run")
def run(
    folder: Annotated[Path, typer.Argument(help="A folder with items, rubric and settings.")],
    judge: Judges = None,
    set: Set = NoSet,
    json: AsJson = False,
) -> None:
    """Run judges on a benchmark of one's own; one verdict an item."""
    from judge_gym.cli import display

    if not judge:
        raise DesignError("name a judge with --judge MODEL")
    with open_lab() as lab:
        prepared = lab.prepare_benchmark(folder, judge, overrides=overrides(set))
        result = carry_out(lambda watch: lab.run(prepared, watch=watch), quiet=json)
        scores: Any = lab.known_answers(prepared).to_dict("records")
    if json:
        display.print_json({**result.to_json(), "scores": scores})
    else:
        show_result(result, False)
        display.table("agreement with known answers", scores)
    end(result, same_command(), quiet=json)
