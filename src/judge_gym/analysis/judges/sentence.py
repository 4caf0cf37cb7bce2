"""A judge table in words: the sentence above it, and its rows as readers see them."""

from collections.abc import Callable, Sequence

from judge_gym.records.judge_table import MIN_CLUSTERS, JudgeRow, JudgeTable, Quantity

LABEL_ITEMS = 30
"""The number of labelled items that makes accuracy known."""
NAMED = 3
"""The number of setups of a standing that a sentence names."""
COUNTS = ("", "", "", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def sentence(table: JudgeTable) -> str:
    """Returns which setup to use, how good it is, at what price, and how the others compare."""
    if table["kind"] is None:
        return _unknown_accuracy(table["rows"])
    quality = table["chosen_quality"]
    row = next((row for row in table["rows"] if row["setup"] == table["chosen"]), None)
    if quality is None or row is None:
        return "No item with a known answer or label was judged by all setups: none is compared."
    what = "known answers" if table["kind"] == "accuracy" else "people's labels"
    number = f"{share(quality)} of {what}"
    price = row["usd_per_1000"]
    if price is not None and price["value"] > 0:
        number += f" at {dollars(price['value'])} per 1,000"
    constant, low = table["constant"], quality["low"]
    same = ""
    if constant is not None and low is not None and low <= constant:
        same = f"clearly better than always giving the most frequent answer ({percent(constant)})"
    if len(table["rows"]) == 1:
        return f"{row['setup']}: {number}{same and ', which is not ' + same}."
    if row["standing"] == "unknown":
        items, clusters = table["compared_items"], table["clusters"]
        few = f"{items} have {what}" + (f", in {clusters} clusters" if clusters < items else "")
        return (
            f"Too few items to choose a setup: {few}, and {MIN_CLUSTERS} are needed. Highest so "
            f"far: {row['setup']}, {number}."
        )
    others = [other for other in table["rows"] if other is not row]
    tied = [other for other in others if other["standing"] in ("tied", "best")]
    worse = [other for other in others if other["standing"] == "worse"]
    if row["standing"] == "worse":  # chosen on train, and test disagrees
        top = next(other for other in others if other["standing"] != "worse")
        return (
            f"{row['setup']} is best on train, but not on test: {number} there; "
            f"{top['setup']} is better by {points(-_gap(row))} points."
        )
    rest = [*_tied(row, tied), *_worse(worse)]
    if same:
        head = f"No setup is {same}; highest: {row['setup']}, {number}"
        return "; ".join([head, *rest]) + "."
    return "; ".join([f"Use {row['setup']}: {number}", *rest]) + "."


def _tied(chosen: JudgeRow, tied: Sequence[JudgeRow]) -> list[str]:
    """Returns which setups the data do not tell from the chosen one, with their prices."""
    shown = tied if len(tied) <= NAMED else tied[: NAMED - 1]
    parts = [
        f"{row['setup']} is tied{' and ' + price if (price := _price(row, chosen)) else ''}"
        for row in shown
    ]
    if rest := tied[len(shown) :]:
        worst = max(row["at_most_worse"] or 0.0 for row in rest)
        parts.append(f"{len(rest)} others are tied, at most {points(worst)} points worse")
    return parts


def _worse(worse: Sequence[JudgeRow]) -> list[str]:
    """Returns which setups are worse than the best, and by how much."""
    if len(worse) > NAMED:
        gaps = [-_gap(row) for row in worse]
        span = " to ".join(dict.fromkeys([points(min(gaps)), points(max(gaps))]))
        return [f"{len(worse)} others are worse by {span} points"]
    return [f"{row['setup']} is worse by {points(-_gap(row))} points" for row in worse]


def _gap(row: JudgeRow) -> float:
    """Returns the difference of a setup from the first row, on the items that both judged."""
    return 0.0 if row["difference"] is None else row["difference"]["value"]


def _unknown_accuracy(rows: Sequence[JudgeRow]) -> str:
    """Returns what is known without answers or labels, and how accuracy would become known."""
    parts = ["Accuracy unknown: no item has a known answer or a person's label."]
    steady = [(found, row["setup"]) for row in rows if (found := row["consistency"])]
    if steady:
        found, setup = max(steady, key=lambda one: one[0]["value"])
        most = " most often" if len(steady) > 1 else ""
        parts.append(f"{setup} repeats its own verdict{most}: {share(found)} of repeats.")
    apart = [found["value"] for row in rows if (found := row["disagreement"])]
    if apart:
        parts.append(f"Two setups differ in {percent(sum(apart) / len(apart))} of verdicts.")
    parts.append(
        f"To know it, label {LABEL_ITEMS} items and import them with 'judge-gym labels import "
        "FILE'."
    )
    return " ".join(parts)


def _price(row: JudgeRow, chosen: JudgeRow) -> str:
    """Returns the price of a setup in terms of another's, in words; empty if unknown."""
    mine, other = row["usd_per_1000"], chosen["usd_per_1000"]
    if mine is None or other is None or not (mine["value"] > 0 and other["value"] > 0):
        return ""
    ratio = mine["value"] / other["value"]
    if 0.8 <= ratio <= 1.25:
        return "about the same price"
    if ratio < 1:
        return f"{percent(ratio)} of the price"
    if round(ratio, 1) == 2:
        return "twice the price"
    if round(ratio) == round(ratio, 1) and 3 <= round(ratio) <= 10:
        return f"{COUNTS[round(ratio)]} times the price"
    return f"{ratio:.1f} times the price" if ratio < 10 else f"{ratio:,.0f} times the price"


def shown_rows(table: JudgeTable) -> list[dict[str, str]]:
    """Returns the rows of a judge table as text; columns without any value are left out."""
    quality = {"accuracy": "accuracy", "agreement": "agreement with people", None: "accuracy"}
    rows = [
        {
            "setup": row["setup"],
            quality[table["kind"]]: share(row["truth"]) if row["truth"] else "unknown",
            "standing": row["standing"],
            "consistency": share(row["consistency"]),
            "position bias": share(row["position_bias"]),
            "abstained": share(row["abstained"]),
            "unreadable": share(row["unreadable"]),
            "disagrees with others": share(row["disagreement"]) if table["kind"] is None else "",
            "$ per 1,000": _with_ends(row["usd_per_1000"], dollars),
            "seconds": _with_ends(row["seconds"], "{:.2g}".format),
        }
        for row in table["rows"]
    ]
    empty = {name for name in rows[0] if not any(row[name] for row in rows)}
    return [{name: text for name, text in row.items() if name not in empty} for row in rows]


def _with_ends(quantity: Quantity | None, shown: Callable[[float], str]) -> str:
    """Formats a quantity and its interval; empty if it is unknown."""
    if quantity is None:
        return ""
    low, high = quantity["low"], quantity["high"]
    value = shown(quantity["value"])
    if low is None or high is None or low == high:
        return value
    return f"{value} [{shown(low)}, {shown(high)}]".replace("[$", "[").replace(", $", ", ")


def share(quantity: Quantity | None) -> str:
    """Formats a share with its interval in percent, `82 % [76, 87]`; empty if it is unknown."""
    if quantity is None:
        return ""
    value = percent(quantity["value"])
    low, high = quantity["low"], quantity["high"]
    if low is None or high is None:
        return value
    return f"{value} [{round(100 * low)}, {round(100 * high)}]"


def percent(value: float) -> str:
    """Formats a share in percent, without a minus before 0."""
    return f"{round(100 * value)} %"


def points(gap: float) -> str:
    """Formats a difference of shares in percentage points."""
    return f"{100 * gap:.0f}" if abs(gap) >= 0.01 else f"{100 * gap:.1f}"


def dollars(value: float) -> str:
    """Formats a price with two digits that matter: `$0.40`, `$12`, `$0.0031`.

    >>> [dollars(value) for value in (0.4, 12.3, 0.0031, 1234.0)]
    ['$0.40', '$12', '$0.0031', '$1,234']
    """
    if value >= 10 or value == 0:
        return f"${value:,.0f}"
    return f"${value:.2f}" if value >= 0.1 else f"${value:.2g}"
