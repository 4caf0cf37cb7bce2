"""What the check of a file says in words: the answer, and what the file does not support."""

from collections.abc import Iterator, Sequence

import numpy as np

from judge_gym.analysis.judges.sentence import (
    MEASURES,
    gap_text,
    label_rates,
    no_better_than_constant,
    reference,
)
from judge_gym.analysis.judges.systems import SystemDifference
from judge_gym.analysis.stats.intervals import Estimate
from judge_gym.recorded.options import FileReading
from judge_gym.records.judge_table import MIN_CLUSTERS, Decider, JudgeRow, JudgeTable, Quantity
from judge_gym.records.numbers import decimal, share, signed, signed_hundredths, with_interval

NAMED = 3
"""The number of judges with a sentence of their own; the others stand in the table."""
LABELS = 60
"""The number of labelled items that is asked for where there are none."""
RATED_TWICE = 50
"""The number of items with two labels that is asked for where there are none."""
WAYS = {
    "people": "--human COLUMN",
    "truth": "--truth COLUMN",
    "repeat": "--repeat COLUMN",
    "text": "--text COLUMN",
    "length": "--text or --length COLUMN",
    "cluster": "--cluster COLUMN",
    "usd": "--usd COLUMN",
}
"""How a user names the column that helps."""
EXPORT_WAYS = {
    "people": "a column label.NAME",
    "truth": "a column truth",
    "repeat": "replicates 0, 1, ...",
    "text": "a column text",
    "length": "a column text or length",
    "cluster": "a column cluster",
    "usd": "a column usd",
}
"""The column that helps in an export, where columns have fixed names."""
MOST_LABELS = 20_000
"""The number of labels above which it is not said how many would decide."""


# --- the answer ----------------------------------------------------------------------------------


def answer(table: JudgeTable) -> Iterator[str]:
    """Yields how good each judge is, and whether two of them are told apart."""
    rows = table["rows"]
    if table["kind"] is None:
        yield "Accuracy unknown: no judged item has a known answer or a person's label."
    else:
        for row in rows[:NAMED]:
            yield _quality(table, row)
        if constant := no_better_than_constant(table):
            yield f"{table['chosen']} is {constant}."
        if text := _comparison(table):
            yield text
    for row in rows[:NAMED]:
        if steady := row["consistency"]:
            note = f" ({steady['note']})" if steady.get("note") else ""
            yield f"{row['setup']} repeats itself in {share(steady)}{note}."
    for row in rows[:NAMED]:
        if bias := row["position_bias"]:
            yield _position(row, bias)


def _quality(table: JudgeTable, row: JudgeRow) -> str:
    """States the measures that fit the scale of the labels."""
    scale, measures = table["scale"], row["measures"]
    people = table["people"]["measures"] if table["people"] else {}
    if "exact" not in measures:
        return f"{row['setup']} has no verdict on an item with a label."

    def beyond_chance(name: str, title: str) -> str:
        if name not in measures:
            return ""
        text = f"{title} {with_interval(measures[name], decimal)}"
        among = people.get(name)
        return f"{text}, people with each other {decimal(among['value'])}" if among else text

    exact = f"gives {share(measures['exact'])} of {reference(table)}"
    if scale is None:
        parts = [exact]
    elif scale["kind"] == "binary":
        parts = [label_rates(table, row) or exact, beyond_chance("kappa", "kappa")]
    elif scale["kind"] == "ordinal":
        near = measures.get("within_one")
        within = f"within one stage in {share(near)}" if near and len(scale["labels"]) > 3 else ""
        parts = [exact, within, beyond_chance("weighted_kappa", "weighted kappa")]
        parts.append(_bias(measures.get("bias"), table))
    else:
        f1 = f"macro F1 {share(measures['macro_f1'])}" if "macro_f1" in measures else ""
        parts = [exact, beyond_chance("kappa", "kappa"), f1]
    return f"{row['setup']} {'; '.join(filter(None, parts))}."


def _bias(bias: Quantity | None, table: JudgeTable) -> str:
    if bias is None:
        return ""
    than = "people" if table["kind"] == "agreement" else "the known answers"
    if bias["low"] is None or bias["high"] is None:
        return ""
    if bias["low"] <= 0 <= bias["high"]:
        ends = ", ".join(map(signed_hundredths, (bias["low"], bias["high"])))
        text = f"{signed_hundredths(bias['value'])} [{ends}] stages"
        return f"not clearly higher or lower than {than} ({text})"
    direction = "higher" if bias["value"] > 0 else "lower"
    ends = ", ".join(f"{end:.2f}" for end in sorted((abs(bias["low"]), abs(bias["high"]))))
    return f"{direction} than {than} by {abs(bias['value']):.2f} [{ends}] stages"


def _position(row: JudgeRow, bias: Quantity) -> str:
    text = f"{100 * bias['value']:+.0f} points"
    if bias["low"] is None or bias["high"] is None:
        return f"{row['setup']}: position bias {text}, without an interval."
    ends = f"[{100 * bias['low']:+.0f}, {100 * bias['high']:+.0f}]"
    if bias["low"] <= 0 <= bias["high"]:
        return f"{row['setup']}: position bias not clear yet, {text} {ends}."
    side = "first" if bias["value"] > 0 else "second"
    return f"{row['setup']} favours the response shown {side}: position bias {text} {ends}."


def _comparison(table: JudgeTable) -> str:
    """Says which judges are told apart by the measure that decides."""
    rows, decider = table["rows"], table["measure"]
    if len(rows) < 2 or any(row["standing"] == "unknown" for row in rows[:2]):
        return ""
    best, *others = [row for row in rows if row["standing"] != "unknown"]
    tied = [row for row in others if row["standing"] in ("tied", "best")]
    worse = [row for row in others if row["standing"] == "worse"]
    name = "agreement" if decider == "exact" else MEASURES[decider]
    parts = []
    if tied:
        behind = max(row["at_most_worse"] or 0.0 for row in tied)
        limit = f" (at most {gap_text(decider, behind)})" if behind else ""
        names = _listed([best["setup"], *(row["setup"] for row in tied)])
        parts.append(f"{names} are not told apart in {name}{limit}")
    for row in worse[:NAMED]:
        gap = row["difference"]
        by = f" by {_size(decider, gap)}" if gap else ""
        parts.append(f"{row['setup']} is worse than {best['setup']} in {name}{by}")
    if len(worse) > NAMED:
        parts.append(f"{len(worse) - NAMED} further judges are worse")
    return ". ".join(parts) + "." if parts else ""


def _size(decider: Decider, gap: Quantity) -> str:
    """Writes the size of a difference, whatever its sign, with its interval."""
    text = gap_text(decider, gap["value"])
    if gap["low"] is None or gap["high"] is None or gap["low"] <= 0 <= gap["high"]:
        return text
    ends = sorted((abs(gap["low"]), abs(gap["high"])))
    return f"{text} [{', '.join(gap_text(decider, end).split()[0] for end in ends)}]"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, ["; ".join(names[:-1]), names[-1]]))


def people_sentences(table: JudgeTable) -> Iterator[str]:
    """Yields what labels say of the chosen judge beyond its measures: rate and length."""
    rate, length = table["rate"], table["length"]
    if rate is not None:
        text = rate["sentence"]
        if len(table["rows"]) > 1:  # whose verdicts the rate rests on
            head = rate["quantity"]
            text = f"{text[: len(head)]}, by {rate['setup']}{text[len(head) :]}"
        yield text
    if length is not None:
        text = length["sentence"]
        if len(table["rows"]) > 1:
            text = text.replace(":", f", by {length['setup']}:", 1)
        yield text


def system_sentence(a: str, b: str, gap: SystemDifference, *, unit: str = "points") -> str:
    """Says which of two systems is better: 'v2 minus v1: judge says +7.0 points, corrected ...'."""

    def ends(estimate: Estimate, factor: float, digits: int) -> str:
        if not estimate.known:
            return ""
        low, high = (signed(factor * end, digits) for end in (estimate.low, estimate.high))
        return f" [{low}, {high}]"

    judged, corrected = 100 * gap.judged.value, 100 * gap.corrected.value
    text = f"{a} minus {b}: judge says {signed(judged, 1)} {unit}"
    if gap.corrected.n and not np.isnan(corrected):
        text += f", corrected {signed(corrected, 1)}{ends(gap.corrected, 100, 1)}"
        if gap.withheld:
            text += f" (no interval: {gap.withheld})"
    else:
        text += "; no label corrects it"
    if not np.isnan(gap.length.value):
        text += f"; mean length {signed(gap.length.value, 0)}{ends(gap.length, 1, 0)}"
    over = "items that both answered" if gap.shared else "items, different ones of each system"
    return f"{text}. On {gap.items:,} {over}."


# --- what is missing -----------------------------------------------------------------------------


def missing(reading: FileReading, table: JudgeTable) -> Iterator[str]:
    """Yields what the file does not support, and which column or how many labels would."""
    recording, rows = reading.recording, table["rows"]
    items, ways = recording.items, EXPORT_WAYS if reading.export else WAYS
    of_log = not reading.export and not reading.roles  # which has no columns to name
    labelled = recording.labels["item"].nunique()
    if table["kind"] is None and labelled:
        yield f"None of the {labelled:,} items with labels has a verdict: judge those"
    elif table["kind"] is None:
        yield no_labels(export=reading.export, log=of_log)
    elif table["kind"] == "agreement" and table["people"] is None:
        many = "the labelled items"
        if table["known_items"] > RATED_TWICE:
            many = f"about {RATED_TWICE} of {many}"
        way = "--labels FILE" if of_log else ways["people"]
        yield f"People with each other: a second rater on {many} ({way})"
    yield from _undecided(table)
    scale = table["scale"]
    if scale is not None and scale["kind"] == "binary" and scale["positive"] is None:
        yield (
            "Sensitivity, specificity and the corrected rate: which of "
            f"{' and '.join(scale['labels'])} is the positive label (--positive LABEL)"
        )
    if of_log:
        return
    if not (recording.verdicts["repeat"] > 0).any():
        yield (
            "No repeats: consistency needs a second verdict of a judge on an item "
            f"({ways['repeat']})"
        )
    if items["length"].isna().all() and not recording.paired:
        yield f"No texts: a judge's taste for length needs them ({ways['length']})"
    elif (items["text"] == "").all() and not recording.paired:
        yield f"No texts: disagreements are shown by item alone ({ways['text']})"
    if (items["cluster"] == "").all():
        yield (
            "No clusters: items count as independent; name what several items share, such as a "
            f"conversation ({ways['cluster']})"
        )
    if len(rows) > 1 and all(row["usd_per_1000"] is None for row in rows):
        yield f"No prices: comparing judges by price needs a column of dollars ({ways['usd']})"


def no_labels(*, export: bool, log: bool = False) -> str:
    """Says how it becomes known how good the judges of a file without labels are."""
    ways = EXPORT_WAYS if export else WAYS
    if log:
        return (
            f"No labels: how good a judge is needs people's labels of about {LABELS} items "
            "(--labels FILE)"
        )
    return (
        f"No labels: how good a judge is needs people's labels of about {LABELS} items "
        f"({ways['people']}, or --labels FILE), or known answers ({ways['truth']})"
    )


def _undecided(table: JudgeTable) -> Iterator[str]:
    """Yields how many labels would decide what is not decided, and why intervals are withheld."""
    kind, rows = table["kind"], table["rows"]
    if kind is None:
        return
    what = "labels" if kind == "agreement" else "known answers"
    reasons: dict[str, list[str]] = {}
    titles = {head["name"]: head["title"] for head in table["columns"]}
    for name, quantity in rows[0]["measures"].items():
        if quantity["low"] is None and name in titles:
            reasons.setdefault(quantity.get("withheld", ""), []).append(titles[name])
    for reason, names in reasons.items():
        yield f"No interval of {', '.join(names)}: {reason}"
    if len(rows) < 2:
        return
    if rows[1]["standing"] == "unknown" or rows[0]["standing"] == "unknown":
        unit = "clusters of items" if table["clusters"] < table["compared_items"] else "items"
        yield (
            f"Comparing judges: {what} of at least {MIN_CLUSTERS} {unit} that all of them judged; "
            f"there are {table['compared_items']:,} items"
        )
        return
    tied = next((row for row in rows[1:] if row["standing"] == "tied"), None)
    gap = None if tied is None else tied["difference"]
    if tied is None or gap is None or gap["low"] is None or gap["high"] is None:
        return
    size = abs(gap["value"])
    if size > 0:
        needed = gap["n"] * ((gap["high"] - gap["low"]) / (2 * size)) ** 2
        if gap["n"] < needed < MOST_LABELS:
            best = next(row["setup"] for row in rows if row["difference"] is None)
            yield (
                f"To tell {best} and {tied['setup']} apart at the present difference "
                f"({gap_text(table['measure'], size)}): about {_rounded(needed):,} items with "
                f"{what}; there are {gap['n']:,}"
            )


def _rounded(count: float) -> int:
    """Rounds up to two digits that matter."""
    step = 10 ** max(0, len(str(int(count))) - 2)
    return int(-(-count // step) * step)


def table_notes(table: JudgeTable) -> list[str]:
    """Lists the notes of a judge table that hold for a file, without advice on studies."""
    notes = [note for note in table["notes"] if "judge-gym" not in note and "study's" not in note]
    for row in table["rows"]:
        if row["failed_calls"]:
            count = row["failed_calls"]
            notes.append(
                f"{row['setup']}: no verdict on {count:,} item{'' if count == 1 else 's'}, which "
                "count in the corrected rate alone"
            )
    return notes
