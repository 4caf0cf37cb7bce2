"""The items on which judges differ most, with the ends of their answers."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import NAMES_APART, first_rows, own_rows
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.report.page import (
    Disagreement,
    Quote,
    Report,
    ReportInput,
    Section,
    section,
)
from judge_gym.analysis.stats.intervals import Floats
from judge_gym.analysis.verdicts import ratio

CASES = 3
"""The number of disagreements that a report shows."""
LEAST_GAP = 0.25
"""The distance of two setups, from 0 to 1, from which a disagreement is worth a quote."""
LONGEST_QUOTE = 280


def most_disputed_items(given: ReportInput) -> Section | None:
    """Shows the items on which two setups differ most, with a verdict of both."""
    frame = given.frame if given.samples is None else given.samples
    samples = own_rows(frame)
    several = frame["concept"].nunique() > 1
    cases = [
        Disagreement(
            _item_name(rows[0][1]) + (f" ({rows[0][1]['concept']})" if several else ""),
            evidence,
            (_quote(*rows[0]), _quote(*rows[1])),
        )
        for evidence, rows in most_disputed(samples, CASES)
    ]
    subject = "The item" if len(cases) == 1 else f"The {len(cases)} items"
    return section(
        "Most disputed items",
        f"{subject} on which two setups are farthest apart, with a typical verdict of both."
        if cases
        else "No two setups are far apart on any item.",
        cases=cases,
    )


def quoted_calls(report: Report) -> tuple[int, ...]:
    """Lists the calls whose answers a report quotes."""
    cases = (case for part in report.sections for case in part.cases)
    calls = (quote.call_id for case in cases for quote in case.quotes)
    return tuple(call for call in calls if call is not None)


def with_quotes(report: Report, texts: Mapping[int, str]) -> Report:
    """Adds the ends of the quoted answers to a report.

    Args:
        report: a report whose quotes have no text yet.
        texts: the texts of answers, by the number of their call.
    """

    def quote(of: Quote) -> Quote:
        text = "" if of.call_id is None else texts.get(of.call_id, "")
        return replace(of, text=_end_of(text))

    def quoted(part: Section) -> Section:
        cases = (
            replace(case, quotes=(quote(case.quotes[0]), quote(case.quotes[1])))
            for case in part.cases
        )
        return replace(part, cases=tuple(cases))

    questions = (
        replace(question, sections=tuple(map(quoted, question.sections)))
        for question in report.questions
    )
    return replace(report, questions=tuple(questions))


def _item_name(row: pd.Series) -> str:
    title = row["evidence_title"]
    return str(title) if isinstance(title, str) and title else f"item {row['evidence']}"


JUDGED = ("task", "evidence", "rubric_kind", "n_stages")
"""What a setup's verdicts are about, and on which scale."""
Case = tuple[str, tuple[tuple[str, pd.Series], tuple[str, pd.Series]]]


def most_disputed(own: pd.DataFrame, count: int) -> list[Case]:
    """Returns the items on which two setups are farthest apart, with a typical sample of each.

    The distance of ordered stages is that of their means, from 0 to 1; of other rubrics it is the
    share of verdicts that would have to change. Items come once each, the farthest apart first.
    """
    scored = own[own["status"] == "scored"]
    if scored.empty:
        return []
    about = np.asarray(scored.groupby([*JUDGED], observed=True).ngroup(), dtype=np.intp)
    judged = scored[[*JUDGED]].iloc[first_rows(about)]
    tasks, items = judged["task"].tolist(), judged["evidence"].tolist()
    last = judged["n_stages"].to_numpy() - 1
    ordered = (judged["rubric_kind"] == "ordinal").to_numpy()
    setups, samples = setups_of(scored), scored.assign(judged=about)
    rows_of = {setup.name: samples.iloc[setup.index] for setup in setups}
    shares = {
        name: _stage_shares(rows, len(judged), int(last.max()) + 1)
        for name, rows in rows_of.items()
    }
    candidates: list[tuple[float, str, str, str, str]] = []
    for first, other in combinations(shares, 2):
        moved = shares[first] - shares[other]
        means = np.abs(moved @ np.arange(moved.shape[1])) / np.maximum(last, 1)
        gap = np.where(ordered, means, np.abs(moved).sum(axis=1) / 2)
        both = np.flatnonzero(~np.isnan(gap))
        for index in both[np.argsort(-gap[both], kind="stable")[:count]]:
            candidates.append(
                (float(gap[index]), str(tasks[index]), str(items[index]), first, other)
            )
    cases: dict[str, Case] = {}
    for gap, task, item, first, other in sorted(candidates, key=lambda row: (-row[0], *row[1:])):
        if gap >= LEAST_GAP and item not in cases and len(cases) < count:
            left_row, right_row = (_typical(rows_of[name], task, item) for name in (first, other))
            cases[item] = (item, ((first, left_row), (other, right_row)))
    return list(cases.values())


def _stage_shares(rows: pd.DataFrame, judged: int, most: int) -> Floats:
    """Returns the share of each stage among a setup's verdicts on what it judged, NaN elsewhere."""
    code, masks = rows["judged"].to_numpy(), rows["mask"].to_numpy()
    bits = (masks[:, None] >> np.arange(most)) & 1
    each = bits / np.maximum(bits.sum(axis=1, keepdims=True), 1)
    sums = np.column_stack([np.bincount(code, column, judged) for column in each.T])
    return ratio(sums, np.bincount(code, minlength=judged)[:, None])


def _typical(every: pd.DataFrame, task: str, item: str) -> pd.Series:
    """Returns the first sample with the verdict that a setup gives most often on an item.

    Its `times` is how often the setup gives it, `of` how many verdicts there are.
    """
    of_task = every[every["task"] == task]
    rows = of_task[of_task["evidence"].astype(str) == item]
    usual = rows[rows["mask"] == rows["mask"].mode().iloc[0]]
    verdict: pd.Series = usual.assign(times=len(usual), of=len(rows)).iloc[0]
    return verdict


def _quote(setup: str, row: pd.Series) -> Quote:
    """Returns a verdict, without the text of its answer."""
    verdict = verdict_words(row)
    if row["times"] < row["of"]:
        verdict += f", in {row['times']} of {row['of']} verdicts"
    call = int(row["call_id"]) if pd.notna(row["call_id"]) else None
    return Quote(setup, verdict, call_id=call)


SIDES = ("the first is better", "the second is better", "a tie")


def verdict_words(row: pd.Series) -> str:
    """Writes a verdict with the names of its stages; with numbers where they have no names."""
    count, mask = int(row["n_stages"]), int(row["mask"])
    stages = [stage for stage in range(count) if mask >> stage & 1]
    names = tuple(str(row["stage_names"]).split(NAMES_APART))
    if row["pair"] and count <= len(SIDES):
        names = SIDES[:count]
    if len(names) == count:
        return " or ".join(names[stage] for stage in stages)
    listed = ", ".join(str(stage + 1) for stage in stages)
    return f"stage{'s' * (len(stages) > 1)} {listed} of {count}"


def _end_of(text: str) -> str:
    r"""Returns the end of a reasoning, without the line that holds the verdict.

    >>> _end_of("It is rude. The reply blames the user.\n\nVERDICT: B")
    'It is rude. The reply blames the user.'
    """
    lines = [line.strip() for line in text.splitlines()]
    plain = " ".join(line for line in lines if line and "VERDICT:" not in line.upper())
    if len(plain) <= LONGEST_QUOTE:
        return plain
    cut = plain[-LONGEST_QUOTE:]
    return "… " + cut[cut.find(" ") + 1 :]
