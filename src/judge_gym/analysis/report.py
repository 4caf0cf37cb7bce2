"""The report: tables and figures of a study, as a page that needs nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import (
    accuracy,
    distributions,
    expected_stage,
    known_answers,
    status_rates,
)
from judge_gym.analysis.frames import JUDGE, once_per_call, varied_knobs, with_variant
from judge_gym.analysis.pair_frames import pair_table
from judge_gym.analysis.pairs import PAIR_RULE
from judge_gym.analysis.polarization import raw_polarization
from judge_gym.analysis.views import views_table
from judge_gym.errors import DesignError
from judge_gym.records import STATUSES
from judge_gym.stages.evidence import MAX_WORDS

SIMULATED = "All judges were simulated: these numbers show the instrument, not any real model."
PARTLY_SIMULATED = "Some judges were simulated: {models}."
BIASED = (
    "Divided by log2 of judges or stages, whichever are fewer; not every panel can reach 1. Raw P "
    "is biased upward at few replicates: identical judges do not come out at 0, so compare rows "
    "with equal replicates only. Own rubrics only."
)
OWN_RUBRICS = " Judges used their own rubrics, so P measures judge and rubric together."
CELL = ["task", "variant", JUDGE]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report."""

    title: str
    note: str
    frame: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says, before it is set as a page or as text."""

    title: str
    banner: str
    """Says that judges were simulated; empty where none was."""
    facts: dict[str, str]
    warnings: tuple[str, ...]
    tables: tuple[Table, ...]
    charts: tuple[tuple[str, Any], ...]
    """Title and chart."""

    def html(self) -> str:
        """The report as one self-contained page."""
        from jinja2 import Environment

        template = (files("judge_gym.analysis") / "report.html.j2").read_text(encoding="utf-8")
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        pictures = [(title, figures.svg(chart)) for title, chart in self.charts]
        return environment.from_string(template).render(report=self, pictures=pictures, cell=_shown)


def build_report(
    title: str,
    samples: pd.DataFrame,
    usage: pd.DataFrame,
    *,
    views: Sequence[Mapping[str, Any]] = (),
    people: pd.DataFrame | None = None,
    warnings: tuple[str, ...] = (),
) -> Report:
    """A report on samples of one or more experiments.

    Args:
        title: its heading.
        samples: a row per sample and a column per knob, as `Lab.samples` gives them.
        usage: what was paid, by experiment, stage and model.
        views: the views that judges read, with editor, status and checks.
        people: raters' stages, with columns tag, evidence, rater, stage.
        warnings: what the reader should know beside the numbers.
    """
    if samples.empty:
        raise DesignError(f"{title} has no samples yet; run it first")
    frame = with_variant(samples.assign(task=_task(samples)))
    own = frame[~frame["is_swap"]]
    rates = status_rates(frame, CELL)
    shares = distributions(own, CELL)
    polarization = raw_polarization(own, ["task", "variant"])
    pairs = pair_table(own[own["pair"]], CELL)
    ordinal = own[own["rubric_kind"] == "ordinal"]
    means = (
        expected_stage(ordinal, CELL) if (ordinal["status"] == "scored").any() else pd.DataFrame()
    )
    tables = [
        Table(
            "How answers ended",
            "All samples, under own and rivals' rubrics. A status without a column never occurred; "
            "nothing is coerced into a score.",
            _rates_table(rates),
        ),
        Table(
            "Expected stage",
            "0 is the first stage, 1 the last; 95 % t interval over evidence items.",
            means,
        ),
        Table(
            "Own and rivals' rubrics",
            "Expected stage and mean stated agreement by whose rubric was used; rivals together.",
            _swaps(frame),
        ),
        Table(
            "Known answers",
            "Share of scored verdicts on the right stage; 95 % interval over items, Wilson's where "
            "each is simply right or wrong, else t.",
            known_answers(own[~own["pair"]], CELL),
        ),
        Table(
            "Pairs with a known better response",
            f"Shares. {PAIR_RULE}",
            pairs,
        ),
        Table(
            "Agreement with people",
            "Share of scored verdicts on the stage that most raters gave; items on which raters "
            "tie are left out. 95 % interval over items.",
            _with_people(own, people),
        ),
        Table(
            "Raw polarization",
            BIASED + (OWN_RUBRICS if (own["rubric.author"] == "own").any() else ""),
            polarization,
        ),
        Table(
            "Views",
            f"Summaries that judges read in place of the text. Flagged: longer than {MAX_WORDS} "
            "words, or with a number or a name that the source does not hold; look at them with "
            "judge-gym evidence show.",
            views_table(views),
        ),
        Table(
            "Rubric quality",
            "A critic's scores; null where the rubric was given or the critic gave none.",
            _quality(frame),
        ),
        Table(
            "Cost",
            "What was paid for, by stage and model; reused answers cost nothing.",
            _cost(usage),
        ),
    ]
    return Report(
        title=title,
        banner=_banner(frame),
        facts=_facts(frame, usage),
        warnings=warnings,
        tables=tuple(table for table in tables if not table.frame.empty),
        charts=tuple(_charts(frame, own, ordinal, rates, shares, polarization, pairs)),
    )


def _with_people(own: pd.DataFrame, people: pd.DataFrame | None) -> pd.DataFrame:
    """How often a judge gives the stage that most raters give."""
    if people is None or people.empty:
        return pd.DataFrame()
    votes = people.groupby(["tag", "evidence", "stage"]).size().rename("votes").reset_index()
    most = votes.groupby(["tag", "evidence"])["votes"].transform("max")
    top = votes[votes["votes"] == most].drop_duplicates(["tag", "evidence"], keep=False)
    agreed = top.rename(columns={"stage": "consensus"})[["tag", "evidence", "consensus"]]
    judged = own.merge(agreed, on=["tag", "evidence"])
    judged = judged.assign(truth=judged["consensus"])
    if not _graded(judged):
        return pd.DataFrame()
    raters = people.merge(own[["tag", *CELL]].drop_duplicates(), on="tag")
    counted = raters.groupby(CELL)["rater"].nunique().rename("raters").reset_index()
    return accuracy(judged, CELL).merge(counted, on=CELL)


def _task(frame: pd.DataFrame) -> pd.Series:
    """The name of a row's task: concept, type, country, and the pool where there are several."""
    country, pool = frame["country"], frame["pool"]
    pools = frame.groupby(["concept", "task_type", "country"])["pool"].transform("nunique")
    place = country.where(pools == 1, country + ", " + pool).where(country != "", pool)
    return frame["concept"] + " (" + frame["task_type"] + ", " + place + ")"


def _charts(
    frame: pd.DataFrame,
    own: pd.DataFrame,
    ordinal: pd.DataFrame,
    rates: pd.DataFrame,
    shares: pd.DataFrame,
    polarization: pd.DataFrame,
    pairs: pd.DataFrame,
) -> list[tuple[str, Any]]:
    charts: list[tuple[str, Any]] = []
    if not shares.empty:
        charts.append(
            (
                "Where each judge places the evidence",
                figures.distribution_figure(shares, _most(polarization)),
            )
        )
    if not pairs.empty:
        best: Any = pairs.sort_values("accuracy").iloc[-1]
        told = f"{best[JUDGE]} is right most often: {best['accuracy']:.1%} of {best['n']} pairs"
        if (pairs["accuracy"] == best["accuracy"]).sum() > 1:
            told = f"How often each is right; the best, {best['accuracy']:.1%} of {best['n']} pairs"
        charts.append(
            (
                "Pairs with a known better response",
                figures.accuracy_figure(figures.panels(pairs), told),
            )
        )
    items = _items(ordinal)
    if not items.empty:
        charts.append(
            (
                "Item by item",
                figures.heat_figure(
                    items,
                    "Items by expected stage, strongest on top (the first variant of each task)",
                ),
            )
        )
    if polarization["p"].notna().any():
        charts.append(
            (
                "How far judges lie apart",
                figures.polarization_figure(polarization, "Raw polarization by task"),
            )
        )
    unread = 1 - _scored(frame)
    charts.append(
        (
            "How answers ended",
            figures.status_figure(rates, f"{unread:.1%} of verdicts carry no score"),
        )
    )
    probed = frame[frame["probe"].notna()].drop_duplicates(["task", "probe_call_id"])
    if not probed.empty:
        used = probed["is_swap"].map({True: "rival's", False: "own"})
        used = used.where(probed["rubric_author"] != "provided", "given")
        named = probed.assign(**{"rubric used": used})[["task", JUDGE, "probe", "rubric used"]]
        charts.append(
            ("What judges say of experts", figures.probe_figure(named, "Stated expert agreement"))
        )
    return charts


def _most(polarization: pd.DataFrame) -> str:
    """A title that says what the distributions show."""
    ranked = (
        polarization.dropna(subset=["p"]).groupby("task")["p"].mean().sort_values(ascending=False)
    )
    if len(ranked) < 2:
        return "Distribution of verdicts over stages"
    return f"Judges lie farthest apart on {ranked.index[0]}, closest on {ranked.index[-1]}"


def _items(ordinal: pd.DataFrame) -> pd.DataFrame:
    if not (ordinal["status"] == "scored").any():
        return pd.DataFrame()
    base = ordinal.groupby("task")["variant"].transform("first")
    first = ordinal[ordinal["variant"] == base]
    if not (first["status"] == "scored").any():
        return pd.DataFrame()
    titles = first.drop_duplicates("evidence").set_index("evidence")["evidence_title"]
    repeated = titles.duplicated(keep=False)
    item = titles.where(~repeated, titles + " (" + titles.index.astype(str) + ")")
    return expected_stage(first.assign(item=first["evidence"].map(item)), ["task", "item", JUDGE])


def _rates_table(rates: pd.DataFrame) -> pd.DataFrame:
    """Shares in percent; a status that never occurred has no column: none is out of sight."""
    seen = [status for status in STATUSES if status == "scored" or (rates[status] > 0).any()]
    shares = {status: rates[f"share_{status}"].map("{:.1%}".format) for status in seen}
    return rates[[*CELL, "n"]].assign(**shares)


def _swaps(frame: pd.DataFrame) -> pd.DataFrame:
    """What a judge says under its own and under rivals' rubrics; empty without a swap."""
    swapped = frame[frame["rubric_kind"] == "ordinal"]
    if not (swapped["is_swap"] & (swapped["status"] == "scored")).any():
        return pd.DataFrame()
    by = [*CELL, "rubric used"]
    named = swapped.assign(
        **{"rubric used": swapped["is_swap"].map({True: "rival's", False: "own"})}
    )
    calls = named.drop_duplicates([*by, "probe_call_id"])
    probes = calls.groupby(by, observed=True)["probe"].mean().reset_index()
    return expected_stage(named, by).merge(probes, on=by, how="left")


def _quality(frame: pd.DataFrame) -> pd.DataFrame:
    columns = [
        "task",
        "rubric",
        "rubric_author",
        "rubric_draw",
        "n_stages",
        "observability",
        "discriminability",
    ]
    # Their rows are numbered as they came, which is not the same in every lab.
    by = ["task", "rubric_author", "n_stages", "rubric_draw", "rubric"]
    return frame[columns].drop_duplicates().sort_values(by, ignore_index=True)


def _cost(usage: pd.DataFrame) -> pd.DataFrame:
    if usage.empty:
        return usage
    numbers = ["calls", "input_tokens", "output_tokens", "usd"]
    return usage.groupby(["stage", "model"], as_index=False)[numbers].sum(min_count=1)


def _banner(frame: pd.DataFrame) -> str:
    # Where no call was answered, no model was reported: the judge that was asked must do.
    models = frame["reported_model"].fillna(frame[JUDGE]).unique()
    simulated = sorted(model for model in models if model.startswith("sim:"))
    if not simulated:
        return ""
    every = len(simulated) == len(models)
    return SIMULATED if every else PARTLY_SIMULATED.format(models=", ".join(simulated))


def _facts(frame: pd.DataFrame, usage: pd.DataFrame) -> dict[str, str]:
    return {
        "experiments": str(frame["tag"].nunique()),
        "judges": ", ".join(sorted(frame[JUDGE].unique())),
        "tasks": ", ".join(sorted(frame["task"].unique())),
        "varied": ", ".join(_varied(frame)) or "nothing",
        "series": ", ".join(sorted(frame["series"].unique())),
        "evidence items": str(frame["evidence"].nunique()),
        "samples": f"{len(frame):,} ({frame['is_swap'].sum():,} under a rival's rubric)",
        "scored": f"{_scored(frame):.1%}",
        "probes": f"{frame.loc[frame['probe'].notna(), 'probe_call_id'].nunique():,}",
        "calls paid": _paid(usage),
        "cost": _spent(usage),
    }


def _varied(frame: pd.DataFrame) -> list[str]:
    """What varies within any task."""
    parts = [varied_knobs(part) for _, part in frame.groupby("task")]
    return list(dict.fromkeys(knob for knobs in parts for knob in knobs))


def _graded(frame: pd.DataFrame) -> bool:
    """Whether any scored verdict is about an item with a known answer."""
    return bool((frame["truth"].notna() & (frame["status"] == "scored")).any())


def _scored(frame: pd.DataFrame) -> float:
    """The share of scored verdicts; a call that experiments share counts once."""
    return float((once_per_call(frame, [])["status"] == "scored").mean())


def _paid(usage: pd.DataFrame) -> str:
    """How many calls a study took, and how many of them another lab paid for."""
    if usage.empty:
        return "0"
    imported = int(usage.loc[usage["imported"], "calls"].sum())
    paid = f"{int(usage['calls'].sum()):,}"
    return f"{paid} ({imported:,} of them elsewhere, and imported)" if imported else paid


def _spent(usage: pd.DataFrame) -> str:
    """The cost, as far as prices are known."""
    usage = usage[usage["calls"] > 0] if len(usage) else usage  # a failed call has no price
    unknown = int(usage["usd"].isna().sum()) if len(usage) else 0
    if unknown and unknown == len(usage):
        return "– (no price is known)"
    known = f"{float(usage['usd'].sum()) if len(usage) else 0.0:.4f} USD"
    return f"at least {known} (some prices are unknown)" if unknown else known


def _shown(value: Any) -> str:
    """A cell of a table; undefined is a dash, never 0."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
