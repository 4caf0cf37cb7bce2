"""Verbs over benchmarks with known answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.axes import Design
from judge_gym.cli.app import (
    AsJson,
    NoSet,
    Set,
    app,
    carry_out,
    end,
    given,
    notes,
    open_lab,
    same_command,
    show_result,
)
from judge_gym.errors import ConflictError, DesignError

if TYPE_CHECKING:
    from judge_gym.analysis.judges.pairs import Comparison, JudgedPair, PairScore
    from judge_gym.engine import Result
    from judge_gym.sources.judgebench import Judgments

benchmark_app = typer.Typer(help="Judge what has a known answer.", no_args_is_help=True)
app.add_typer(benchmark_app, name="benchmark")

Judges = Annotated[
    list[str] | None, typer.Option("--judge", help="A model to run as a judge; repeat it.")
]
LISTED = 20
"""So many disagreements are printed."""


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
    from judge_gym.analysis.judges.pairs import score_pairs
    from judge_gym.analysis.report.pairs import build_pair_report
    from judge_gym.cli import display
    from judge_gym.sources.judgebench import read_judged

    if not judge and not judged:
        raise DesignError("name a judge with --judge MODEL, or recorded judgments with --judged")
    if judge and pairs is None:
        raise DesignError("--judge needs the pairs: judge-gym benchmark judgebench PAIRS.jsonl")
    recorded = _named([(path, read_judged(path)) for path in judged or []])
    found: dict[str, Sequence[JudgedPair]] = {n: one.pairs for n, one in recorded.items()}
    result = None
    if judge and pairs is not None:
        result, run_now = _run(pairs, judge, set, found, quiet=json)
        found |= run_now
    scores = {name: score_pairs(judged_pairs) for name, judged_pairs in found.items()}
    comparison = _compared(found)
    if out is not None:
        page = build_pair_report("JudgeBench", scores, comparison).html()
        out.write_text(page, encoding="utf-8")
    if json:
        display.print_json(_json(scores, comparison, recorded, result))
    else:
        for name, score in scores.items():
            _show_score(name, score)
        for name, one in recorded.items():
            _show_reading(name, one)
        if comparison is not None:
            _show_comparison(comparison)
    if result is not None:
        end(result, same_command(), quiet=json)


def _compared(found: "Mapping[str, Sequence[JudgedPair]]") -> "Comparison | None":
    """How judges compare; those that share no pair have their scores, and no comparison."""
    from judge_gym.analysis.judges.pairs import compare_judges

    if len(found) < 2:
        return None
    if not set.intersection(*({pair.item for pair in pairs} for pairs in found.values())):
        notes(f"{' and '.join(found)} share no pair, so they are not compared")
        return None
    return compare_judges(found)


def _named(recorded: "Sequence[tuple[Path, Judgments]]") -> "dict[str, Judgments]":
    """Recorded judgments by judge; those of one judge are told apart by their files."""
    names = [one.judge for _, one in recorded]
    return {
        one.judge if names.count(one.judge) == 1 else f"{one.judge} ({path})": one
        for path, one in recorded
    }


def _run(
    path: Path,
    judges: Sequence[str],
    set: Sequence[str],
    recorded: "Mapping[str, Sequence[JudgedPair]]",
    *,
    quiet: bool,
) -> "tuple[Result, dict[str, Sequence[JudgedPair]]]":
    with open_lab() as lab:
        prepared = lab.experiments.prepare_benchmark(path, judges, overrides=given("--set", set))
        here = {item.metadata.get("id") for item in prepared.sweep.experiments[0].task.pool.items}
        for name, pairs in recorded.items():
            if here.isdisjoint(pair.item for pair in pairs):
                raise DesignError(f"{path} and {name} share no pair; nothing was asked")
        result = carry_out(lambda watch: lab.runs.run(prepared, watch=watch), quiet=quiet)
        if not quiet:
            show_result(result, False)
        if result.stopped is not None:
            end(result, same_command(), quiet=quiet)
        found: dict[str, Sequence[JudgedPair]] = dict(lab.reports.judged_pairs(prepared))
        if not found:
            raise ConflictError(f"no verdict came of {path}; see judge-gym status")
        return result, found


def _json(
    scores: "Mapping[str, PairScore]",
    comparison: "Comparison | None",
    recorded: "Mapping[str, Judgments]",
    result: "Result | None",
) -> dict[str, Any]:
    """One judge's score as it is; of several, each by name, and how they compare."""
    reading = {
        name: {
            "read": one.read,
            "unread": one.unread,
            "disagreements": [
                {"pair": d.pair, "order": d.order, "recorded": d.recorded, "read": d.read}
                for d in one.disagreements
            ],
        }
        for name, one in recorded.items()
    }
    extra = {"reading": reading} if reading else {}
    if result is not None:
        extra["run"] = result.to_json()
    if len(scores) == 1:
        [(name, score)] = scores.items()
        return {"judge": name, **score.to_json(), **extra}
    judges = {name: score.to_json() for name, score in scores.items()}
    told = comparison.to_json() if comparison else None
    return {"judges": judges, "comparison": told, **extra}


def _show_score(name: str, score: "PairScore") -> None:
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


def _show_reading(name: str, one: "Judgments") -> None:
    from judge_gym.cli import display

    total, otherwise = one.read + one.unread, len(one.disagreements)
    if not one.read:
        notes(
            f"{name}: none of {total} recorded answers carries a text with a verdict to read again"
        )
        return
    notes(
        f"{name}: {one.read} of {total} recorded answers carry a verdict in their text; we read "
        f"{one.read - otherwise} as recorded, {otherwise} otherwise"
    )
    display.table(
        "read otherwise than recorded (–: two verdicts stand together, so none)",
        [
            {"pair": d.pair, "order": d.order, "recorded": d.recorded, "read": d.read}
            for d in one.disagreements[:LISTED]
        ],
        note=f"and {otherwise - LISTED} more; --json lists all" if otherwise > LISTED else "",
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

    _refuse_no_folder(folder)
    with open_lab() as lab:
        prepared = lab.experiments.prepare_benchmark(folder, ["sim:balanced"])
    [experiment] = prepared.sweep.experiments
    task = experiment.task
    assert task.rubric is not None
    answers = [item.truth for item in task.pool.items]
    truths = {
        stage.label: answers.count(number) for number, stage in enumerate(task.rubric.stages, 1)
    }
    told: dict[str, Any] = {
        "study": prepared.study,
        "concept": task.concept,
        "items": len(answers),
        "pairs": task.pool.paired,
        "rubric": task.rubric.kind,
        "truths": truths,
        "without truth": answers.count(None),
    }
    if json:
        display.print_json(told)
        return
    shown = {**told, "truths": ", ".join(f"{n} {label}" for label, n in truths.items())}
    display.table("", [{"": name, " ": display.cell(value)} for name, value in shown.items()])
    persona = experiment.design.prompt.slots.scorer.persona
    if persona == Design.knobs()["prompt.slots.scorer.persona"].default:
        notes(f"judges are told that they are {persona}; [design] may say otherwise")


def _refuse_no_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise DesignError(f"there is no folder {folder}; a benchmark of one's own is a folder")


@benchmark_app.command("run")
def run(
    folder: Annotated[Path, typer.Argument(help="A folder with items, rubric and settings.")],
    judge: Judges = None,
    set: Set = NoSet,
    json: AsJson = False,
) -> None:
    """Run judges on a benchmark of one's own; one verdict an item."""
    from judge_gym.analysis.judges.pairs import score_pairs
    from judge_gym.cli import display

    _refuse_no_folder(folder)
    if not judge:
        raise DesignError("name a judge with --judge MODEL")
    with open_lab() as lab:
        prepared = lab.experiments.prepare_benchmark(folder, judge, overrides=given("--set", set))
        paired = prepared.sweep.experiments[0].task.pool.paired
        result = carry_out(lambda watch: lab.runs.run(prepared, watch=watch), quiet=json)
        known = lab.reports.known_answers(prepared)
        scores: Any = known.astype(object).where(known.notna(), None).to_dict("records")
        pairs = lab.reports.judged_pairs(prepared) if paired else {}
    if json:
        told = {name: score_pairs(found).to_json() for name, found in pairs.items()}
        display.print_json({**result.to_json(), "scores": scores, "pairs": told})
    elif paired:
        show_result(result, False)
        for name, found in pairs.items():
            _show_score(name, score_pairs(found))
    else:
        show_result(result, False)
        display.table("agreement with known answers", scores)
    end(result, same_command(), quiet=json)
