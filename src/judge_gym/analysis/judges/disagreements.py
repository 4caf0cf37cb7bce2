"""The items on which a setup and people differ, in an order that shows every kind early."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import pandas as pd

from judge_gym.analysis.frames import own_rows
from judge_gym.records import digest


class SetupDisagreement(NamedTuple):
    """An item on which the usual verdict of a setup is not people's usual label."""

    evidence: int
    people: str
    """People's labels in words, the most frequent first."""
    verdict: str
    call_id: int | None
    """A call whose answer is this verdict."""


def setup_disagreements(
    frame: pd.DataFrame,
    people: pd.DataFrame,
    names: Sequence[str],
    items: Collection[int],
    seed: int,
) -> list[SetupDisagreement]:
    """Lists the items on which a setup differs from people, or from a known answer.

    Items on which people are divided evenly are left out. Kinds of disagreement (a label with a
    verdict) take turns, the most frequent first.

    Args:
        frame: the tidy samples of one setup.
        people: raters' stages, with columns evidence, rater, stage.
        names: the labels of the stages.
        items: the items that may be listed.
        seed: decides the order within a kind.
    """
    own = own_rows(frame)
    own = own[own["evidence"].isin(items) & (own["status"] != "provider_error")]
    labels = _labels(own, people)
    kinds: dict[tuple[str, str], list[SetupDisagreement]] = {}
    by_item: Any = own.groupby("evidence", sort=True)
    for evidence, rows in by_item:
        counts = labels.get(int(evidence), Counter())
        usual = _most_frequent(counts)
        if usual is None:
            continue
        masks = rows["mask"].where(rows["status"] == "scored", 0)
        verdicts = [
            _words(int(mask), names) if mask else str(status).replace("_", " ")
            for mask, status in zip(masks, rows["status"], strict=True)
        ]
        verdict = Counter(verdicts).most_common(1)[0][0]
        label = names[usual - 1]
        if verdict == label:
            continue
        call = rows["call_id"].iloc[verdicts.index(verdict)]
        kinds.setdefault((label, verdict), []).append(
            SetupDisagreement(
                int(evidence),
                _counted(counts, names),
                verdict,
                None if pd.isna(call) else int(call),
            )
        )
    ordered = [
        sorted(kind, key=lambda each: digest(["disagreement", seed, each.evidence]))
        for _, kind in sorted(kinds.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    ]
    return [each for turn in zip_longest(*ordered) for each in turn if each is not None]


def _labels(own: pd.DataFrame, people: pd.DataFrame) -> Mapping[int, Counter[int]]:
    """Counts the labels of each item; a known answer counts where nobody labelled it."""
    known = own.assign(truth=pd.to_numeric(own["truth"], errors="coerce")).dropna(subset="truth")
    labels = {
        int(evidence): Counter([int(truth)])
        for evidence, truth in known[["evidence", "truth"]].to_numpy()
    }
    raters = people.drop_duplicates(["evidence", "rater"], keep="last")
    by_item: dict[int, Counter[int]] = {}
    for evidence, stage in raters[["evidence", "stage"]].to_numpy():
        by_item.setdefault(int(evidence), Counter())[int(stage)] += 1
    return labels | by_item


def _most_frequent(counts: Counter[int]) -> int | None:
    """The most frequent stage; None where two are, or there is none."""
    ranked: list[tuple[Any, int]] = counts.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return int(ranked[0][0])


def _counted(counts: Counter[int], names: Sequence[str]) -> str:
    total = counts.total()
    ranked = counts.most_common()
    if len(ranked) == 1:
        return names[ranked[0][0] - 1]
    return ", ".join(f"{names[stage - 1]} ({count} of {total})" for stage, count in ranked)


def _words(mask: int, names: Sequence[str]) -> str:
    stages = [stage for stage in range(mask.bit_length()) if mask >> stage & 1]
    return " or ".join(names[stage] for stage in stages)
