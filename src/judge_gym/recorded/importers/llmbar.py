"""LLMBar's tree of evaluators' results (Zeng et al. 2024, arXiv:2310.07641).

Each `SUBSET/evaluators/MODEL/STRATEGY/result.json` has pairs of outputs for an instruction, which
of them is better, and the winner that was read from the model's answer in each order. The winners
are the verdicts; our reading of the same answers stands beside them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.stats.agreement import cohen_kappa
from judge_gym.errors import DesignError, unknown
from judge_gym.recorded.documents import (
    clean_text,
    files_below,
    list_of,
    mapping_of,
    read_head,
    read_json,
    shorten,
    text_of,
)
from judge_gym.recorded.pairs import (
    FIRST,
    OPPOSITE,
    PAIR_CRITERIA,
    PAIR_SCALE,
    SECOND,
    TIE,
    items_table,
    response_text,
)
from judge_gym.recorded.readings import reading_note
from judge_gym.recorded.recording import (
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    Recording,
    complete_columns,
)
from judge_gym.stages.answer_lines import BARE, NEXT_TURN, clean_lines, split_turn

ABOUT = "LLMBar: a tree of SUBSET/evaluators/MODEL/STRATEGY/result.json"
QUESTION = "the better output"
STRATEGY = "foreign.strategy"
RESULTS = "result.json"
EVALUATORS = "evaluators"
ORDERS = ("swap = False", "swap = True")
BASES: Mapping[str, str] = {
    "Vanilla": "Vanilla_NoRules",
    "CoT": "Vanilla",
    "Vanilla_1shot": "Vanilla",
    "Vanilla_2shot": "Vanilla",
    "Rating": "Vanilla",
    "Rating_NoRules": "Vanilla_NoRules",
    "Metrics": "Vanilla",
    "Reference": "Vanilla",
    "Metrics_Reference": "Vanilla",
    "Swap": "CoT",
    "Swap_CoT": "CoT",
    "Rating_Metrics": "Rating",
    "Rating_Reference": "Rating",
    "Rating_Metrics_Reference": "Rating",
}
"""The strategy from which each one differs in a single choice. All but those without rules contain
the rules; `Metrics_Reference` is a bundle of two choices; `Swap` judges twice as `CoT` does and
asks again, with both explanations, where these two differ."""
BUNDLES = ("Metrics_Reference", "Rating_Metrics_Reference")
"""Strategies that change two choices at once."""
PUBLISHED_KAPPAS = ("kappa_False", "kappa_True", "kappa_average")
"""Agreement with the known answers as published, which its code computes wrongly."""
REFUSALS = ("content management policy",)
"""What stands in place of a reason to stop where the provider's filter refused."""

_OUTPUT = r"\boutput\s\(?(?P<{name}>[ab])\)?"
_VERDICT = re.compile(
    r"(?<!nor )(?<!or )(?<!whether )(?<!if )"
    rf"{_OUTPUT.format(name='better')}\sis\s(?:the\s)?better\b"
    r"(?!\s(?:at|for|if|in|when)\b)"  # better in one respect, or on a condition
    rf"|\b(?:choose|select|pick)\s{_OUTPUT.format(name='chosen')}\sas\sthe\sbetter\b",
    re.I,
)
# A heading with a colon repeats the material.
_ALONE = re.compile(rf"[\s*_`\"'\[]*{_OUTPUT.format(name='alone')}[\s*_`\"'\].]*", re.I)


def detect(path: Path) -> bool:
    """Whether a path is a result of LLMBar, or a folder with some."""
    if path.is_dir():
        places = (f"{EVALUATORS}/*/*/{RESULTS}", f"*/{RESULTS}", RESULTS)
        depths = ("", "*/", "*/*/", "*/*/*/")
        files = (file for depth in depths for place in places for file in path.glob(depth + place))
        return any(_is_result(file) for file in islice(files, 3))
    return _is_result(path)


def _is_result(path: Path) -> bool:
    if path.name != RESULTS:
        return False
    head = read_head(path)
    return head.startswith("[") and all(
        f'"{key}"' in head for key in ("input", "output_1", "output_2", "label", "results")
    )


def read(path: Path) -> Sequence[Recording]:
    """Reads all results below a path as one recording, with strategies as a free knob."""
    files = files_below(path, RESULTS) if path.is_dir() else [path]
    if not files:
        raise DesignError(f"{path} has no {RESULTS} below it; {ABOUT}")
    items: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    statistics: list[_Statistics] = []
    for file in files:
        subset, model, strategy = _names(file, path)
        results = list_of(read_json(file), str(file))
        for number, result in enumerate(results):
            where = f"{file}: item {number + 1}"
            id = f"{subset}/{number}"
            item = _item(mapping_of(result, where), where) | {"item": id, "category": subset}
            if items.setdefault(id, item) != item:
                raise DesignError(f"{where} differs from item {number + 1} of another {RESULTS}")
            steps = list_of(result.get("results"), f"{where}: 'results'")
            for verdict in _verdicts(steps, f"{where}: 'results'"):
                rows.append({"judge": model, "item": id, STRATEGY: strategy, **verdict})
        statistics.append(_statistics(file, results))
    recording = Recording(
        source=path.resolve().name,
        format="llmbar",
        question=QUESTION,
        scale=PAIR_SCALE,
        items=items_table(items),
        verdicts=complete_columns(pd.DataFrame(rows), VERDICT_COLUMNS),
        labels=complete_columns(pd.DataFrame(columns=[*LABEL_COLUMNS]), LABEL_COLUMNS),
        criteria=PAIR_CRITERIA,
    )
    return [replace(recording, notes=tuple(_notes(recording, statistics)))]


def _names(file: Path, root: Path) -> tuple[str, str, str]:
    """Returns the subset, the model and the strategy of a result, from the folders above it."""
    folders = file.resolve().parent.parts
    if len(folders) < 4 or folders[-3] != EVALUATORS:
        raise DesignError(f"{file} does not stand in SUBSET/{EVALUATORS}/MODEL/STRATEGY")
    top = len(root.resolve().parts)
    subset = "/".join(folders[top:-3]) or folders[-4]
    return subset, folders[-2], folders[-1]


def _item(result: Mapping[str, Any], where: str) -> dict[str, Any]:
    label = result.get("label")
    if label not in (1, 2) or isinstance(label, bool):
        raise DesignError(f"{where}: {unknown('label', label, ('1', '2'))}", choices=("1", "2"))
    return {
        "text": clean_text(text_of(result, "input", where)),
        "response_a": response_text(text_of(result, "output_1", where, empty=True)),
        "response_b": response_text(text_of(result, "output_2", where, empty=True)),
        "truth": (FIRST, SECOND)[label - 1],
    }


# --- verdicts ------------------------------------------------------------------------------------


def _verdicts(steps: list[Any], where: str) -> Iterator[dict[str, Any]]:
    """Yields the verdict of the last step in each order; of ratings, the comparison of scores."""
    last = mapping_of(steps[-1], where)
    entries = [mapping_of(last.get(order), f"{where}: {order!r}") for order in ORDERS]
    winners = [_winner(entry, where) for entry in entries]
    if "score_1" in last:
        yield _rated(last, winners, where)
        return
    for flipped, (entry, winner) in enumerate(zip(entries, winners, strict=True)):
        text, reason = _completion(entry.get("completion"), where)
        better = read_output(text)
        read_label = OPPOSITE[better] if flipped else better
        yield {
            "flipped": bool(flipped),
            "status": _status(winner, text, reason),
            "label": winner,
            "answer": text,
            "prompt": _prompt(entry.get("prompt"), where),
            "read_status": _status(read_label, text, reason),
            "read_label": read_label,
        }


def _winner(entry: Mapping[str, Any], where: str) -> str:
    """Returns the recorded winner, which names an output whichever was shown first; or none."""
    if "winner" not in entry:
        raise DesignError(f"{where}: 'winner' is missing")
    winner = entry["winner"]
    if winner not in ("1", "2", None):
        raise DesignError(
            f"{where}: {unknown('winner', winner, ('1', '2', 'null'))}", choices=("1", "2", "null")
        )
    return "" if winner is None else (FIRST, SECOND)[int(winner) - 1]


def _completion(value: Any, where: str) -> tuple[str, str]:
    """Returns what a model wrote, and why it stopped."""
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise DesignError(f"{where}: a completion is a text and a reason, not {shorten(value)}")
    return clean_text(value[0]), str(value[1])


def _status(label: str, text: str, reason: str) -> str:
    if label:
        return "scored"
    if reason in REFUSALS and not text:
        return "refused"
    return "truncated" if reason == "length" else "parse_failed"


def _prompt(value: Any, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DesignError(f"{where}: a prompt is a text, not {shorten(value)}")
    return json.dumps([{"role": "user", "content": clean_text(value)}], ensure_ascii=False)


def _rated(last: Mapping[str, Any], winners: list[str], where: str) -> dict[str, Any]:
    """Compares the scores of two outputs that were rated one by one: there is no order.

    The winner of equal scores was recorded as the output shown second, and that of scores that
    could not be read as the one shown first; both differ between the orders.
    """
    answers = [_completion(last.get(f"score_{number}"), where) for number in (1, 2)]
    scores = [int(text) if re.fullmatch(r"\s*\d{1,6}\s*", text) else None for text, _ in answers]
    first, second = scores
    if first is None or second is None:
        better = ""
    else:
        better = TIE if first == second else FIRST if first > second else SECOND
    label = winners[0] if winners[0] == winners[1] else TIE if better == TIE else ""
    text = "\n".join(f"score_{n}: {answer}" for n, (answer, _) in enumerate(answers, 1))
    reason = next((reason for answer, reason in answers if not answer), "")
    return {
        "flipped": False,
        "status": _status(label, "" if reason else text, reason),
        "label": label,
        "answer": text,
        "prompt": "",
        "read_status": _status(better, "" if reason else text, reason),
        "read_label": better,
    }


def read_output(text: str) -> str:
    r"""Reads which output an answer calls better, by the place in which it was shown.

    The last "Output (a) is better" decides. Two in a row that differ decide nothing, and what the
    model wrote for the next speaker is not its answer. A line that only names an output is a
    verdict too.

    >>> read_output("Output (a) is short. Therefore, Output (b) is better. It is more specific.")
    'second'
    >>> read_output("Output (a)"), read_output("Neither Output (a) nor Output (b) is better.")
    ('first', '')
    """
    lines = clean_lines(split_turn(text)[0])
    first = next((n for n, line in enumerate(lines) if _names_output(line)), len(lines))
    turns = (n for n, line in enumerate(lines) if n > first and NEXT_TURN.match(line))
    lines = lines[: next(turns, len(lines))]
    answer = "\n".join(lines)
    verdicts = [*_VERDICT.finditer(answer)]
    if not verdicts:
        alone = [match for line in lines if (match := _ALONE.fullmatch(line))]
        return _place(alone[-1]["alone"]) if alone else ""
    together = {_place(verdicts[-1]["better"] or verdicts[-1]["chosen"])}
    for earlier, later in zip(reversed(verdicts[:-1]), reversed(verdicts), strict=False):
        if not BARE.match(answer[earlier.end() : later.start()]):
            break
        together.add(_place(earlier["better"] or earlier["chosen"]))
    return together.pop() if len(together) == 1 else ""


def _names_output(line: str) -> bool:
    return bool(_VERDICT.search(line) or _ALONE.fullmatch(line))


def _place(letter: str) -> str:
    return FIRST if letter.lower() == "a" else SECOND


# --- the published statistics --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Statistics:
    """The published statistics of a result beside those of its winners."""

    published: bool
    same: bool
    published_kappa: float
    right_kappa: float


def published_statistics(results: Sequence[Mapping[str, Any]]) -> dict[str, str | float]:
    """Computes `statistics.json` from recorded winners, as the publication does.

    Its kappas with the known answers code the winner 1 as 1 and everything else as 0, and compare
    these codes with answers that are 1 or 2, so that they are far too low: `agreement_kappas`
    has them right. `kappa_agreement` between the orders does not tell the winner 2 from none.
    """
    unswapped, swapped = (_winners(results, order) for order in ORDERS)
    labels = [str(result["label"]) for result in results]
    right = [
        [left == label for left, label in zip(side, labels, strict=True)]
        for side in (unswapped, swapped)
    ]
    total = len(results)

    def share(count: int) -> str:
        return f"{count} / {total} = {count / total * 100}%"

    codes = [np.array([int(winner == "1") for winner in side]) for side in (unswapped, swapped)]
    answers = np.array([int(label) for label in labels])
    kappas = [_kappa(side, answers) for side in codes]
    return {
        "correct_False": share(sum(right[0])),
        "correct_True": share(sum(right[1])),
        "correct_average": f"{(sum(right[0]) + sum(right[1])) / 2 / total * 100}%",
        "correct_both": share(sum(map(all, zip(*right, strict=True)))),
        "equal": share(sum(a == b for a, b in zip(unswapped, swapped, strict=True))),
        "kappa_False": kappas[0],
        "kappa_True": kappas[1],
        "kappa_average": sum(kappas) / 2,
        "kappa_agreement": _kappa(*codes),
    }


def agreement_kappas(results: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Computes Cohen's kappa of recorded winners and known answers, in each order."""
    answers = np.array([int(result["label"]) for result in results])
    unswapped, swapped = (
        _kappa(np.array([int(winner or 0) for winner in _winners(results, order)]), answers)
        for order in ORDERS
    )
    return unswapped, swapped


def _winners(results: Sequence[Mapping[str, Any]], order: str) -> list[str | None]:
    return [result["results"][-1][order]["winner"] for result in results]


def _kappa(left: Any, right: Any) -> float:
    return float(cohen_kappa(np.column_stack([left, right]).astype(float), 0).value)


def _statistics(file: Path, results: list[Any]) -> _Statistics:
    """Compares `statistics.json` beside a result with what its winners give."""
    ours = published_statistics(results)
    beside = file.with_name("statistics.json")
    published = beside.is_file()
    same = False
    if published:
        theirs = mapping_of(read_json(beside), str(beside))
        same = theirs.keys() == ours.keys() and all(
            _equal(theirs[name], value) for name, value in ours.items()
        )
    return _Statistics(
        published, same, float(ours["kappa_average"]), sum(agreement_kappas(results)) / 2
    )


def _equal(theirs: Any, ours: str | float) -> bool:
    if isinstance(ours, str):
        return bool(theirs == ours)
    if not isinstance(theirs, float | int) or abs(theirs) > 1:
        return bool(theirs != theirs and ours != ours)  # both undefined
    return abs(theirs - ours) < 1e-9


def _mean(values: Iterable[float]) -> str:
    """Writes the mean of the values that are defined."""
    defined = [value for value in values if not np.isnan(value)]
    return f"{sum(defined) / len(defined):.3f}" if defined else "undefined"


def _notes(recording: Recording, statistics: Sequence[_Statistics]) -> Iterator[str]:
    """Yields what was taken for granted, and what differs from the publication."""
    files = [file for file in statistics if file.published]
    if files:
        same = sum(file.same for file in files)
        yield f"{same} of {len(files)} statistics.json follow from the recorded winners."
        yield (
            "Their kappas with the known answers are wrong: they code one output as 1 and the "
            "other as 0, and compare these codes with answers 1 and 2. On average over files they "
            f"are {_mean(file.published_kappa for file in files)}; right they are "
            f"{_mean(file.right_kappa for file in files)}."
        )
    if note := reading_note(recording):
        yield note
    verdicts = recording.verdicts
    empty = verdicts[(verdicts["answer"] == "") & (verdicts["status"] == "parse_failed")]
    for judge, count in empty.groupby("judge").size().items():
        yield f"Empty answers of {judge} without a reason, which count as unreadable: {count}."
    strategies = set(verdicts[STRATEGY])
    if any(name.startswith("Rating") for name in strategies):
        yield (
            "Rating scores each output by itself, so that there is no order: equal scores count "
            "one half, though the publication records the output shown second."
        )
    yield (
        "Strategies differ in the token limit and, for some models, in a bias of the verdict's "
        "tokens too, which the files do not record."
    )
    if unknown_names := sorted(strategies - {*BASES, *BASES.values()}):
        yield f"No strategy to compare with is known for {', '.join(unknown_names)}."
