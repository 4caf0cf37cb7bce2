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
    rows = table["rows"]
    if not rows:
        return "No setup has a verdict under its own rubric: none is compared."
    if not any(row["verdicts"] for row in rows):
        failed = sum(row["failed_calls"] for row in rows)
        return f"No verdict yet: all {failed:,} calls failed; 'judge-gym retry' asks again."
    if table["kind"] is None:
        return _unknown_accuracy(rows)
    quality = table["chosen_quality"]
    row = next((row for row in rows if row["setup"] == table["chosen"]), None)
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
        same = (
            f"not clearly better than always giving the most frequent answer ({percent(constant)})"
        )
    if len(rows) == 1:
        return f"{row['setup']}: {number}{same and ', ' + same}."
    if row["standing"] == "unknown":
        items, clusters = table["compared_items"], table["clusters"]
        few = f"{items} have {what}" + (f", in {clusters} clusters" if clusters < items else "")
        return (
            f"Too few items to choose a setup: {few}, and {MIN_CLUSTERS} are needed. Highest so "
            f"far: {row['setup']}, {number}."
        )
    others = [other for other in rows if other is not row]
    tied = [other for other in others if other["standing"] in ("tied", "best")]
    worse = [other for other in others if other["standing"] == "worse"]
    # Differences are from the compared setup with the highest estimate, which has none.
    top = next(one for one in rows if one["difference"] is None and one["standing"] != "unknown")
    if row["standing"] == "worse":  # chosen on train, and test disagrees
        return (
            f"{row['setup']} is best on train, but not on test: {number} there; "
            f"{top['setup']} is better by {points(-_gap(row))} points."
        )
    head = f"Use {row['setup']}: {number}"
    if same:
        head = f"No setup is recommended: {row['setup']} has {number}, {same}"
    than = "" if top is row else f" than {top['setup']}"
    parts = [head, *_tied(row, tied), *_worse(worse, than)]
    # Names contain commas, so that several of them are separated by semicolons.
    return ("; " if len(tied) < 2 and len(worse) < 2 else ". ").join(parts) + "."


def _tied(chosen: JudgeRow, tied: Sequence[JudgeRow]) -> list[str]:
    """Returns which setups the data do not tell from the chosen one, with their prices."""
    if not tied:
        return []
    behind = max(row["at_most_worse"] or 0.0 for row in tied)
    limit = f"at most {points(behind)} points worse" if behind else ""
    prices = [_price(row, chosen) for row in tied]
    if len(tied) == 1:
        parts = [f"{tied[0]['setup']} is tied", limit and f" ({limit})"]
        return ["".join([*parts, prices[0] and f" and {prices[0]}"])]
    named = [
        f"{row['setup']}{price and f' ({price})'}" for row, price in zip(tied, prices, strict=True)
    ]
    return [f"Tied with it{limit and ', ' + limit}: {_listed(named)}"]


def _worse(worse: Sequence[JudgeRow], than: str) -> list[str]:
    """Returns which setups are worse than the best, and by how much."""
    gaps = [-_gap(row) for row in worse]
    if len(worse) == 1:
        return [f"{worse[0]['setup']} is worse{than} by {points(gaps[0])} points"]
    if len(worse) > NAMED:
        span = " to ".join(dict.fromkeys([points(min(gaps)), points(max(gaps))]))
        return [f"{len(worse)} others are worse{than} by {span} points"]
    named = [f"{row['setup']} by {points(gap)}" for row, gap in zip(worse, gaps, strict=True)]
    return [f"Worse{than}: {_listed(named)} points"] if worse else []


def _listed(names: Sequence[str]) -> str:
    """Returns a few names, and how many more there are."""
    shown = names if len(names) <= NAMED else [*names[: NAMED - 1]]
    more = len(names) - len(shown)
    return "; ".join([*shown, *([f"{more} others"] if more else [])])


def _gap(row: JudgeRow) -> float:
    """Returns the difference of a setup from the one with the highest estimate."""
    return 0.0 if row["difference"] is None else row["difference"]["value"]


def _unknown_accuracy(rows: Sequence[JudgeRow]) -> str:
    """Returns what is known without answers or labels, and how accuracy would become known."""
    parts = ["Accuracy unknown: no judged item has a known answer or a person's label."]
    steady = [found["value"] for row in rows if (found := row["consistency"])]
    if steady:
        span = " to ".join(dict.fromkeys(f"{100 * end:.0f}" for end in (min(steady), max(steady))))
        parts.append(f"Repeats give the same verdict in {span} % of pairs.")
    apart = [found["value"] for row in rows if (found := row["disagreement"])]
    if apart:
        parts.append(f"Two setups differ in {percent(sum(apart) / len(apart))} of verdicts.")
    parts.append(
        f"To know it, label {LABEL_ITEMS} items ('judge-gym labels import FILE'), or give them a "
        "'truth'."
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
    used = {name for row in rows for name, text in row.items() if text}
    return [{name: text for name, text in row.items() if name in used} for row in rows]


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
    return f"{100 * gap:.0f}" if abs(gap) >= 0.01 or gap == 0 else f"{100 * gap:.1f}"


def signed_points(gap: float) -> str:
    """Formats a difference of shares in percentage points with its sign; 0 has none.

    >>> [signed_points(gap) for gap in (0.071, -0.0083, 0.0)]
    ['+7', '-0.8', '0']
    """
    text = points(gap)
    return text if text.startswith("-") or gap == 0 else f"+{text}"


def dollars(value: float) -> str:
    """Formats a price with two digits that matter: `$0.40`, `$12`, `$0.0031`.

    >>> [dollars(value) for value in (0.4, 12.3, 0.0031, 1234.0)]
    ['$0.40', '$12', '$0.0031', '$1,234']
    """
    if value >= 10 or value == 0:
        return f"${value:,.0f}"
    return f"${value:.2f}" if value >= 0.1 else f"${value:.2g}"
