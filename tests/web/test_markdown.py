"""Markdown becomes HTML, and nothing that a model wrote becomes markup of its own."""

import pytest

from documents import parse, text
from judge_gym.web.markdown import markdown

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[read](javascript:alert(1))",
    "[read](https://evil.example)",
    "![seen](https://evil.example/x.png)",
    "<https://evil.example>",
    "[a]: https://evil.example",
]


@pytest.mark.parametrize("written", HOSTILE)
@pytest.mark.parametrize("around", ["{}", "**{}**", "- {}", "| a |\n| --- |\n| {} |", "# {}"])
def test_no_markup_link_or_image_comes_from_the_text(written: str, around: str) -> None:
    shown = parse(str(markdown(around.format(written))))
    assert not [found for found in shown.iter() if found.tag in ("script", "img", "a")]
    assert written in text(shown)


def test_structure_is_rendered_and_known_names_become_links() -> None:
    written = (
        "## Run\n\n| Eval | n |\n| --- | ---: |\n| `a/b` | 2 |\n\n```\n<b>\n```\n- **Class:** X"
    )
    shown = parse(str(markdown(written, {"a/b": '/eval?x="1"&y=2'})))
    assert text(shown.find("h2")) == "Run"
    assert [cell.attrib for cell in shown.iter("td")] == [{}, {"class": "n"}]
    link = shown.find(".//td/a")
    assert link is not None and text(link) == "a/b" and link.get("href") == '/eval?x="1"&y=2'
    assert text(shown.find("pre")) == "<b>"
    assert text(shown.find(".//li/strong")) == "Class:"
