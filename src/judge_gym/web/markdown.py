"""Renders Markdown as HTML; its text may come from models, so nothing in it becomes markup."""

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markupsafe import Markup

LITERAL = ("html_block", "html_inline", "image", "link", "autolink", "reference")
"""Rules that are off: such text is shown as it was written."""


def markdown(text: str, links: Mapping[str, str] | None = None) -> "Markup":
    """Returns a text as HTML; code spans that `links` names lead to its addresses."""
    from markupsafe import Markup

    return Markup(_renderer().render(text, {"addresses": links or {}}))


@cache
def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(LITERAL)
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    parser.add_render_rule("code_inline", _code)
    return parser


def _cell(renderer: Any, tokens: "Sequence[Token]", place: int, *_: Any) -> str:
    """Aligns by a class: pages allow no style of an element's own."""
    token = tokens[place]
    return f'<{token.tag} class="n">' if "style" in token.attrs else f"<{token.tag}>"


def _code(
    renderer: Any, tokens: "Sequence[Token]", place: int, options: Any, env: Mapping[str, Any]
) -> str:
    code = f"<code>{escape(tokens[place].content)}</code>"
    address = env["addresses"].get(tokens[place].content)
    return f'<a href="{escape(address)}">{code}</a>' if address else code
