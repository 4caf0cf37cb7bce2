"""How many items and replicates an effect needs, as a table."""

from typing import TYPE_CHECKING, Any

from judge_gym.cli import display
from judge_gym.cli.app import notes

if TYPE_CHECKING:
    import pandas as pd

REPLICATES = (1, 3, 5)
KEY = ["task", "knob", "level", "base", "at", "replicates"]


def print_power(needed: "pd.DataFrame", effect: float, *, as_json: bool) -> None:
    """What finds an effect, over all judges; of means, where nothing was varied."""
    if as_json:
        rows = needed.astype(object).where(needed.notna(), None).to_dict("records")
        display.print_json({"effect": effect, "plans": rows})
        return
    for column, wanted in (("judge", "all"), ("quantity", "difference")):
        if (needed[column] == wanted).any():
            needed = needed[needed[column] == wanted]
    told = needed[needed["replicates"].isin(REPLICATES)].dropna(subset="items")
    rows_by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in told.to_dict("records"):
        named = {name: row[name] for name in KEY if row[name] == row[name]}  # not what is unset
        shown = rows_by_key.setdefault(tuple(map(str, named.values())), named)
        shown |= {f"{what}, {row['power']:.0%}": int(row[what]) for what in ("items", "calls")}
    display.table(
        f"items and calls to find {effect:g} on the scale from 0 to 1",
        list(rows_by_key.values()),
        note="by power; over all judges, 5 %, two-sided, over items. Judge by judge, and up to ten "
        "replicates: --json",
    )
    if not rows_by_key:
        notes("the pilot does not tell: it needs two items with two replicates each, and variance")
