"""Writes the table of measures in docs/judges.md: `python scripts/measures_page.py`."""

from pathlib import Path

from judge_gym.analysis.measures import registered

PAGE = Path(__file__).parents[1] / "docs" / "judges.md"
START, END = "<!-- measures -->", "<!-- /measures -->"


def table() -> str:
    """Lists every measure that can be a column, and what it is for."""
    measures = registered()
    rows = [f"| {measure.title} | `{measure.name}` | {measure.about} |" for measure in measures]
    return "\n".join(
        ["| column | name | what it is, and what it answers |", "| --- | --- | --- |", *rows]
    )


def page(text: str) -> str:
    """Puts the table between its markers."""
    before, rest = text.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
