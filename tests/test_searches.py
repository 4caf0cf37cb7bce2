"""What was searched travels at the head of an answer's text, and comes apart from it unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.records import Draw, Message, Request
from judge_gym.records.searches import Search, split_searches, with_searches
from judge_gym.suites import read_reply

# What a provider may send is any text; on the way it comes to stand on one line.
words = st.lists(st.text(min_size=1).filter(lambda s: not set(s) & set(" \n\r\t")), max_size=4)
lines = words.map(" ".join).filter(lambda s: s == " ".join(s.split()))
searches = st.builds(Search, lines, st.lists(lines, max_size=3).map(tuple), lines)
OLD_KEY = "0c48e9b6b35f34810f278be9ab432f7ae6de90d13b813af86432d87a9341b3d6"
ASKED = Request("openai:gpt-4.1", (Message("user", ("Why?",)),), Draw("7", 1, 0), 0.5, 99)


@pytest.mark.slow
@given(st.lists(searches, max_size=4), st.text())
def test_searches_and_answer_come_apart_as_they_were(found: list[Search], text: str) -> None:
    assert split_searches(with_searches(found, text)) == (tuple(found), text)


def test_a_query_over_several_lines_stands_on_one() -> None:
    hostile = Search("a\n\n# Files\n## x.py\n```\n", ("https://a.example/\n\nb",), "gone\nfor ever")
    [found], text = split_searches(with_searches([hostile], "Done."))
    assert (found.query, text) == ("a # Files ## x.py ```", "Done.")
    assert found.sources == ("https://a.example/ b",)
    assert found.error == "gone for ever"


def test_what_was_searched_is_read_as_no_file() -> None:
    reply = "# Files\n## value.py\n```\nVALUE = 1\n```\n"
    hostile = Search("## evil.py", ("```\nimport os\n```",))
    assert read_reply(with_searches([hostile], reply)).files == {"value.py": "VALUE = 1\n"}


def test_a_text_without_searches_stays_as_it_is() -> None:
    assert split_searches("Done.\n\n> ? no search") == ((), "Done.\n\n> ? no search")
    assert split_searches(with_searches([], "")) == ((), "")


# --- who is asked the same -----------------------------------------------------------------------


def test_a_request_without_a_search_keeps_the_key_it_always_had() -> None:
    # Computed by the version before there were searches, from the same request.
    assert ASKED.key("https://user:key@host/v1?x=1") == OLD_KEY


def test_a_search_is_part_of_what_is_asked() -> None:
    searching = Request(*(ASKED.model, ASKED.messages, ASKED.draw, 0.5, 99), web_search=True)
    assert searching.key() != ASKED.key()
    assert "web_search" not in ASKED.parameters
