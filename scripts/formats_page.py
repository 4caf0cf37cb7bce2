"""Writes the table of formats in docs/import.md: `python scripts/formats_page.py`."""

from pathlib import Path

from judge_gym.recorded.importers import importers

PAGE = Path(__file__).parents[1] / "docs" / "import.md"
START, END = "<!-- formats -->", "<!-- /formats -->"


def table() -> str:
    """Lists every importer by the name of its format."""
    rows = [f"| `{name}` | {reader.ABOUT} |" for name, reader in sorted(importers().items())]
    return "\n".join(["| FORMAT | what it reads |", "| --- | --- |", *rows])


def page(text: str) -> str:
    """Puts the table between its markers."""
    before, rest = text.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
