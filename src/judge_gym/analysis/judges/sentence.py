"""A judge table in words: the sentence above it, and its rows as readers see them."""

from collections.abc import Sequence

from judge_gym.records.judge_table import (
    MIN_CLUSTERS,
    OTHER_RUBRIC,
    Decider,
    JudgeRow,
    JudgeTable,
    Quantity,
)
from judge_gym.records.numbers import decimal, dollars, percent, points, share, with_interval

LABEL_ITEMS = 30
"""The number of labelled items that makes accuracy known."""
NAMED = 3
"""The number of setups of a standing that a sentence names."""
COUNTS = ("", "", "", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
VERBS = {"pass": "passes", "fail": "fails", "accept": "accepts", "reject": "rejects"}
"""Labels that are verbs, and what a judge does that gives them."""
MEASURES: dict[Decider, str] = {
    "exact": "exact agreement",
    "balanced": "balanced accuracy",
    "weighted": "weighted kappa",
    "rank": "tau-b",
    "error": "mean error",
    "loss": "expected loss",
}
"""The measures that decide, in words."""
LOWER_IS_BETTER = ("error", "loss")


def sentence(table: JudgeTable) -> str:
    """Says which setup to use, how good it is, at what price, and how the others compare."""
    caution = f" But {OTHER_RUBRIC}." if OTHER_RUBRIC in table["notes"] else ""
    return _answer(table) + caution


def _answer(table: JudgeTable) -> str:
    rows = table["rows"]
    if not rows:
        return "No setup has a verdict under its own rubric: none is compared."
    if not any(row["verdicts"] for row in rows):
        failed = sum(row["failed_calls"] for row in rows)
        return f"No verdict yet: all {failed:,} calls failed; 'judge-gym retry' asks again."
    if table["kind"] is None:
        return _unknown_accuracy(rows)
    row = next((row for row in rows if row["setup"] == table["chosen"]), None)
    if table["chosen_quality"] is None or row is None:
        return "No item with a known answer or label was judged by all setups: none is compared."
    number = ", ".join(filter(None, [_quality(table, row), _price_of(row)]))
    constant = no_better_than_constant(table)
    if len(rows) == 1:
        return f"{_named(row)}: {number}{constant and '; ' + constant}."
    if row["standing"] == "unknown" and table["clusters"] < MIN_CLUSTERS:
        return _too_few(table, row, number)
    if row["standing"] == "unknown":  # the others have no verdict on an item with a label
        return (
            f"No other setup has a verdict to compare with {reference(table)}. {_named(row)}: "
            f"{number}{constant and '; ' + constant}."
        )
    rivals = [other for other in rows if other is not row]
    tied = [other for other in rivals if other["standing"] in ("tied", "best")]
    worse = [other for other in rivals if other["standing"] == "worse"]
    # Differences are from the compared setup with the best estimate, which has none.
    top = next(row for row in rows if row["difference"] is None and row["standing"] != "unknown")
    split = table["split"]
    if row["standing"] == "worse" and split is not None:  # test disagrees with the choice
        gap = gap_text(table["measure"], _distance(row))
        return (
            f"{_named(row)} is best on {split['chosen_on']}, but not on test: {number} there; "
            f"{_named(top)} is better by {gap}."
        )
    if constant:
        head = f"No setup is recommended: {_named(row)} has {number}; {constant}"
    elif row["standing"] == "best" or row is not top:  # a cheaper one within the margin
        head = f"Use {_named(row)}: {number}"
    else:
        head = f"Highest estimate: {_named(row)}, {number}"
    than = "" if top is row else f" than {_named(top)}"
    parts = [head, *_tied(table, row, tied), *_worse(table, worse, than)]
    return ". ".join(parts) + "."


def _quality(table: JudgeTable, row: JudgeRow) -> str:
    """States how good a setup is: of two labels, how much of each it finds, else one number."""
    quality = table["chosen_quality"]
    assert quality is not None
    words = measured(table["measure"], quality)
    if table["measure"] == "exact":
        words += f" of {reference(table)}"
    observed, rates = _observed(table, row), ""
    if observed:
        words += " expected on new items"
    if table["measure"] != "exact":
        rates = label_rates(table, row)
    details = "; ".join(filter(None, [observed, rates]))
    return f"{words}{details and f' ({details})'}"


def _observed(table: JudgeTable, row: JudgeRow) -> str:
    """States the number of the setup's row, where the one corrected for the choice differs."""
    quality, decider = table["chosen_quality"], table["measure"]
    measure = row["measures"].get(table["columns"][0]["name"]) if table["columns"] else None
    if quality is None or quality["method"] != "cross-fitted" or measure is None:
        return ""
    expected, observed = (_plain(decider, quantity["value"]) for quantity in (quality, measure))
    return "" if observed == expected else f"{observed} on these {measure['n']:,}"


def _plain(decider: Decider, value: float) -> str:
    """Writes a value of the deciding measure without its name and interval."""
    if decider in ("exact", "balanced"):
        return percent(value)
    return f"{value:.2f}" if decider in ("error", "loss") else decimal(value)


def reason(table: JudgeTable, *, measure: bool, positive: bool) -> str:
    """Says which measure decides and why, and which of two labels is positive.

    Args:
        table: the table.
        measure: whether the measure, or a loss, was declared.
        positive: whether the positive label was declared.
    """
    scale = table["scale"]
    if table["kind"] is None:
        return ""
    name = {head["name"]: head["title"] for head in table["columns"]}["exact"]
    title = name if table["measure"] == "exact" else MEASURES[table["measure"]]
    text = f"Decides: {title}, {'as declared' if measure else _why(table)}."
    if scale is not None and scale["positive"] is not None:
        source = "as declared" if positive else "proposed from its name"
        text += f" Positive label: “{scale['positive']}”, {source}."
    return text


def _why(table: JudgeTable) -> str:
    """Says why a measure decides that nobody declared."""
    scale = table["scale"]
    if scale is None:
        return "because tasks have different labels"
    if scale["kind"] == "nominal":
        return "because the labels have no order"
    if scale["kind"] == "binary":
        one_label = table["measure"] == "exact"
        return "because all items have one label" if one_label else "because the labels are two"
    return f"because the labels are {len(scale['labels'])} ordered stages"


def reference(table: JudgeTable) -> str:
    """Names what verdicts are compared with."""
    return "known answers" if table["kind"] == "accuracy" else "people's labels"


def label_rates(table: JudgeTable, row: JudgeRow) -> str:
    """States how much of each of two labels a setup finds, in the words of the labels."""
    scale, measures = table["scale"], row["measures"]
    if scale is None or scale["positive"] is None:
        return ""
    rates = [measures.get(name) for name in ("sensitivity", "specificity")]
    if rates[0] is None or rates[1] is None:
        return ""
    negative = next(label for label in scale["labels"] if label != scale["positive"])
    labels, people = (scale["positive"], negative), table["kind"] == "agreement"
    verbs = [VERBS.get(label.casefold()) for label in labels]
    if all(verbs):
        subject = "what people" if people else "what should"
        first = f"{verbs[0]} {share(rates[0])} of {subject} {labels[0].casefold()}"
        second = f"{verbs[1]} {share(rates[1])} of {'what they' if people else subject}"
        return f"{first} and {second} {labels[1].casefold()}"
    phrases = [f"{share(rate)} of “{label}”" for rate, label in zip(rates, labels, strict=True)]
    return f"finds {' and '.join(phrases)}"


def measured(decider: Decider, quantity: Quantity) -> str:
    """Writes a value of the deciding measure with its name and interval."""
    if decider == "exact":
        return share(quantity)
    if decider == "balanced":
        return f"{MEASURES[decider]} {share(quantity)}"
    if decider == "error":
        return f"{with_interval(quantity, '{:.2f}'.format)} stages from the labels on average"
    return f"{MEASURES[decider]} {with_interval(quantity, decimal)}"


def gap_text(decider: Decider, gap: float) -> str:
    """Writes a difference of the deciding measure without its sign."""
    if decider in ("exact", "balanced"):
        return points(abs(gap))
    if decider in ("error", "loss"):
        return f"{abs(gap):.2f}{' stages' * (decider == 'error')}"
    return decimal(abs(gap))


def no_better_than_constant(table: JudgeTable) -> str:
    """Says that a setup is not clearly better than one constant answer; empty if it is."""
    constant, quality = table["constant"], table["chosen_quality"]
    if constant is None or quality is None:
        return ""
    low, high = quality["low"], quality["high"]
    lower_is_better = table["measure"] in LOWER_IS_BETTER
    end = high if lower_is_better else low
    if end is None or (end < constant if lower_is_better else end > constant):
        return ""
    level = percent(constant) if table["measure"] in ("exact", "balanced") else f"{constant:.2g}"
    answer = "the most frequent answer" if table["measure"] == "exact" else "one answer"
    return f"not clearly better than always giving {answer} ({level})"


def _too_few(table: JudgeTable, row: JudgeRow, number: str) -> str:
    items, clusters = table["compared_items"], table["clusters"]
    what = "a known answer" if table["kind"] == "accuracy" else "people's labels"
    have = f"{items:,} {'item has' if items == 1 else 'items have'} {what}"
    within = f", in {clusters:,} clusters" if clusters < items else ""
    return (
        f"Too few items to compare setups: {have}{within}, and at least {MIN_CLUSTERS} "
        f"{'clusters ' if clusters < items else ''}are needed. Highest so far: {_named(row)}, "
        f"{number}."
    )


def _tied(table: JudgeTable, chosen: JudgeRow, tied: Sequence[JudgeRow]) -> list[str]:
    """Says which setups the data do not tell from the chosen one, with their prices."""
    if not tied:
        return []
    behind = max(row["at_most_worse"] or 0.0 for row in tied)
    limit = f"at most {gap_text(table['measure'], behind)} worse" if behind else ""
    if len(tied) == 1:
        details = ", ".join(filter(None, [limit, _relative_price(tied[0], chosen)]))
        return [f"No clear difference from {_named(tied[0])}{details and f' ({details})'}"]
    prices = [_relative_price(row, chosen) for row in tied]
    names = [
        f"{_named(row)}{price and f' ({price})'}" for row, price in zip(tied, prices, strict=True)
    ]
    return [f"No clear difference from {_listed(names)}{limit and f' (each {limit})'}"]


def _worse(table: JudgeTable, worse: Sequence[JudgeRow], than: str) -> list[str]:
    """Says which setups are worse than the best, and by how much."""
    decider = table["measure"]
    gaps = sorted(abs(_distance(row)) for row in worse)
    if len(worse) == 1:
        return [f"{_named(worse[0])} is worse{than} by {gap_text(decider, gaps[0])}"]
    if len(worse) > NAMED:
        low, high = (gap_text(decider, gap) for gap in (gaps[0], gaps[-1]))
        # The unit stands once: 15 to 25 points.
        span = high if low == high else f"{low.split()[0]} to {high}"
        return [f"{len(worse)} others are worse{than} by {span}"]
    names = [f"{_named(row)} by {gap_text(decider, _distance(row))}" for row in worse]
    return [f"Worse{than}: {_listed(names)}"] if worse else []


def _listed(names: Sequence[str]) -> str:
    """Lists a few names, and how many more there are."""
    first = names if len(names) <= NAMED else [*names[: NAMED - 1]]
    more = len(names) - len(first)
    *before, last = [*first, *([f"{more} others"] if more else [])]
    return f"{', '.join(before)} and {last}" if before else last


def _named(row: JudgeRow) -> str:
    """Names a setup in a sentence, in quotes if its name has a comma."""
    name = row["setup"]
    return f"“{name}”" if "," in name else name


def _distance(row: JudgeRow) -> float:
    """Returns the difference of a setup from the one with the best estimate."""
    return 0.0 if row["difference"] is None else row["difference"]["value"]


def _unknown_accuracy(rows: Sequence[JudgeRow]) -> str:
    """Says what is known without answers or labels, and how accuracy would become known."""
    parts = ["Accuracy unknown: no judged item has a known answer or a person's label."]
    steady = [quantity["value"] for row in rows if (quantity := row["consistency"])]
    if steady:
        span = " to ".join(dict.fromkeys(f"{100 * end:.0f}" for end in (min(steady), max(steady))))
        parts.append(f"Repeats give the same verdict in {span} % of pairs.")
    apart = [quantity["value"] for row in rows if (quantity := row["disagreement"])]
    if apart:
        parts.append(f"Two setups differ in {percent(sum(apart) / len(apart))} of verdicts.")
    parts.append(
        f"To know it, label {LABEL_ITEMS} items ('judge-gym labels import FILE'), or give them a "
        "'truth'."
    )
    return " ".join(parts)


def _price_of(row: JudgeRow) -> str:
    price = row["usd_per_1000"]
    if price is None or not price["value"] > 0:
        return ""
    return f"{dollars(price['value'])} per 1,000"


def _relative_price(row: JudgeRow, chosen: JudgeRow) -> str:
    """States the price of a setup in terms of another's, in words; empty if unknown."""
    price, other = row["usd_per_1000"], chosen["usd_per_1000"]
    if price is None or other is None or not (price["value"] > 0 and other["value"] > 0):
        return ""
    ratio = price["value"] / other["value"]
    if 0.8 <= ratio <= 1.25:
        return "about the same price"
    if ratio < 1:
        return f"{percent(ratio)} of the price"
    if round(ratio, 1) == 2:
        return "twice the price"
    if round(ratio) == round(ratio, 1) and 3 <= round(ratio) <= 10:
        return f"{COUNTS[round(ratio)]} times the price"
    return f"{ratio:.1f} times the price" if ratio < 10 else f"{ratio:,.0f} times the price"
