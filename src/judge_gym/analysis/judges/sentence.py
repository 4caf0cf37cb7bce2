"""The sentence above a judge table, made from its rows."""

from collections.abc import Sequence

from judge_gym.records.judge_table import JudgeRow, JudgeTable, Quantity

LABEL_ITEMS = 30
"""The number of labelled items that makes accuracy known."""
NAMED = 3
"""The number of setups of a standing that a sentence names."""
COUNTS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def sentence(table: JudgeTable) -> str:
    """Returns which setup to use, how good it is, at what price, and how the others compare."""
    if table["kind"] is None:
        return _unknown_accuracy(table["rows"])
    quality = table["chosen_quality"]
    row = next((row for row in table["rows"] if row["setup"] == table["chosen"]), None)
    if quality is None or row is None:
        return "No item was judged by all setups, so they cannot be compared."
    what = "known answers" if table["kind"] == "accuracy" else "people's labels"
    number = f"{share(quality)} of {what}"
    price = row["usd_per_1000"]
    if price is not None and price["value"] > 0:
        number += f" at {dollars(price['value'])} per 1,000"
    if row["standing"] == "unknown":
        if len(table["rows"]) == 1:
            return f"{row['setup']}: {number}."
        return (
            f"No setup can be recommended yet: {table['clusters']} independent items with "
            f"{what}, and a comparison needs 20. Highest so far: {row['setup']}, {number}."
        )
    parts = [f"Use {row['setup']}: {number}"]
    others = [other for other in table["rows"] if other is not row]
    parts += _tied(row, [other for other in others if other["standing"] in ("tied", "best")])
    parts += _worse([other for other in others if other["standing"] == "worse"])
    return "; ".join(parts) + "."


def _tied(chosen: JudgeRow, tied: Sequence[JudgeRow]) -> list[str]:
    parts = []
    for row in tied[:NAMED]:
        price = _price_compared(row, chosen)
        parts.append(f"{row['setup']} is tied{' and ' + price if price else ''}")
    if len(tied) > NAMED:
        parts.append(f"{len(tied) - NAMED} more are tied")
    return parts


def _worse(worse: Sequence[JudgeRow]) -> list[str]:
    gaps = [(row, -row["difference"]["value"]) for row in worse if row["difference"] is not None]
    if len(gaps) > NAMED:
        low, high = min(gap for _, gap in gaps), max(gap for _, gap in gaps)
        return [f"{len(gaps)} others are worse by {points(low)} to {points(high)} points"]
    return [f"{row['setup']} is worse by {points(gap)} points" for row, gap in gaps]


def _unknown_accuracy(rows: Sequence[JudgeRow]) -> str:
    """Returns what is known without answers or labels, and how accuracy would become known."""
    steady = [row for row in rows if row["consistency"] is not None]
    facts = []
    if steady:
        top = max(steady, key=lambda row: row["consistency"]["value"])  # type: ignore[index]
        facts.append(
            f"{top['setup']} repeats its own verdict most often, "
            f"{share(top['consistency'])} of repeats"  # type: ignore[arg-type]
        )
    known = "; ".join(facts)
    return (
        "Accuracy unknown: no item has a known answer or a person's label. "
        + (f"{known}. " if known else "")
        + f"To know it, label {LABEL_ITEMS} items and import them with 'judge-gym labels import "
        "FILE'."
    )


def _price_compared(row: JudgeRow, chosen: JudgeRow) -> str:
    """Returns the price of a setup in terms of another's, in words; empty if unknown."""
    mine, other = row["usd_per_1000"], chosen["usd_per_1000"]
    if mine is None or other is None or not (mine["value"] > 0 and other["value"] > 0):
        return ""
    ratio = mine["value"] / other["value"]
    if 0.8 <= ratio <= 1.25:
        return "about the same price"
    if ratio < 1:
        return f"{ratio:.0%} of the price".replace("%", " %")
    if round(ratio) == round(ratio, 1) and 2 <= round(ratio) <= 10:
        return f"{COUNTS[round(ratio)]} times the price"
    return f"{ratio:.1f} times the price" if ratio < 10 else f"{ratio:,.0f} times the price"


def share(quantity: Quantity) -> str:
    """Formats a share with its interval in percent: `82 % [76, 87]`."""
    value = f"{100 * quantity['value']:.0f} %"
    low, high = quantity["low"], quantity["high"]
    return value if low is None or high is None else f"{value} [{100 * low:.0f}, {100 * high:.0f}]"


def points(gap: float) -> str:
    """Formats a difference of shares in percentage points."""
    return f"{100 * gap:.0f}" if abs(gap) >= 0.01 else f"{100 * gap:.1f}"


def dollars(value: float) -> str:
    """Formats a price with two digits that matter: `$0.40`, `$12`, `$0.0031`.

    >>> [dollars(value) for value in (0.4, 12.3, 0.0031, 1234.0)]
    ['$0.40', '$12', '$0.0031', '$1,234']
    """
    if value >= 10:
        return f"${value:,.0f}"
    return f"${value:.2f}" if value >= 0.1 else f"${value:.2g}"
