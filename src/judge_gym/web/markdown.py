"""Renders texts as HTML: Markdown, transcripts, code, differences.

Texts may come from models, so nothing in them becomes markup of its own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markupsafe import Markup

ROLES = ("user", "assistant", "system", "tool", "human", "ai", "customer", "agent", "developer")
TURN = re.compile(rf"^(?:\*\*)?({'|'.join(ROLES)})(?:\*\*)?\s*:(?:\*\*)?[ \t]*", re.I | re.M)
"""The beginning of a turn of a transcript: `User: `."""
DIFF = re.compile(r"^(diff --git |--- \S.*\n\+\+\+ \S|@@ .* @@)", re.M)
LONGEST_CODE = 50_000
"""Characters of code that get colours; longer code stays plain."""
LITERAL = ("html_block", "html_inline", "image", "link", "autolink", "reference")
"""Rules that are off: such text is shown as it was written."""


def markdown(text: str, links: Mapping[str, str] | None = None) -> "Markup":
    """Returns a text as HTML; code spans that `links` names lead to its addresses."""
    from markupsafe import Markup

    return Markup(_renderer().render(text, {"addresses": links or {}}))


def rich_text(text: str) -> "Markup":
    """Returns a text as a reader expects it: turns of a transcript, a difference, else Markdown."""
    from markupsafe import Markup

    turns = _messages(text) or _turns(text)
    if turns:
        template = Markup('<section class="turn {}"><h4>{}</h4>{}</section>')
        return Markup("").join(
            template.format(role.lower(), role, _written(content)) for role, content in turns
        )
    if DIFF.search(text):
        return Markup('<pre class="code-text">{}</pre>').format(Markup(highlighted(text, "diff")))
    return _written(text)


def _written(text: str) -> "Markup":
    """Returns Markdown in which the ends of lines stay."""
    from markupsafe import Markup

    return Markup(_renderer(breaks=True).render(text, {"addresses": {}}))


def _messages(text: str) -> list[tuple[str, str]]:
    """Returns the turns of a transcript written as JSON messages; none of another text."""
    if not text.lstrip().startswith("["):
        return []
    try:
        messages = json.loads(text)
    except ValueError:
        return []
    turns = [
        (message["role"], message["content"])
        for message in messages
        if isinstance(message, dict)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("content"), str)
    ]
    return turns if len(turns) == len(messages) else []


def _turns(text: str) -> list[tuple[str, str]]:
    r"""Returns the turns of a transcript whose lines begin with roles; none of another text.

    >>> _turns("User: Hi.\nAssistant: Hello.")
    [('User', 'Hi.'), ('Assistant', 'Hello.')]
    """
    starts = [*TURN.finditer(text)]
    if len({start[1].lower() for start in starts}) < 2 or text[: starts[0].start()].strip():
        return []
    ends = [*(start.start() for start in starts[1:]), len(text)]
    return [
        (start[1], text[start.end() : end].strip()) for start, end in zip(starts, ends, strict=True)
    ]


def highlighted(code: str, language: str) -> str:
    """Returns code as HTML with a class for each kind of word; unknown languages stay plain."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return escape(code)
    if len(code) > LONGEST_CODE:
        return escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="k-")))


@cache
def _renderer(*, breaks: bool = False) -> "MarkdownIt":
    from markdown_it import MarkdownIt

    options = {"html": False, "breaks": breaks, "highlight": _fence}
    parser = MarkdownIt("commonmark", options).enable("table").disable(LITERAL)
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    parser.add_render_rule("code_inline", _code)
    return parser


def _fence(code: str, language: str, _: str) -> str:
    return highlighted(code, language) if language else escape(code)


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
