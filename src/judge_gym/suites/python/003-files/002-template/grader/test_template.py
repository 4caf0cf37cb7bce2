"""Each rule of the language."""

import pytest
from inside.grading import Raised

VALUES = {"a": 1, "user": {"city": "Oslo"}, "xs": [1, 2], "empty": [], "code": "{{ a }}"}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{a}} and {{  a  }}", "1 and 1"),
        ("{{ user.city }}!", "Oslo!"),
        ("{ a } }} {", "{ a } }} {"),
        ("{{ code }}", "{{ a }}"),
        ("{% for x in xs %}<{{ x }}>{% end %}", "<1><2>"),
        ("{% for x in xs %}{% for y in xs %}{{ x }}{{ y }} {% end %}{% end %}", "11 12 21 22 "),
        ("{% for a in xs %}{% end %}{{ a }}", "1"),
        ("{% if empty %}no{% end %}{% if a %}yes{% end %}{% if gone %}no{% end %}", "yes"),
        ("{% for x in xs %}{% if user.city %}{{ x }}{% end %},{% end %}", "1,2,"),
        ("", ""),
    ],
)
def test_rules(candidate, template, expected):
    assert candidate.call("solution:render", template, VALUES) == expected


@pytest.mark.parametrize(
    ("template", "kind"),
    [
        ("{{ gone }}", "KeyError"),
        ("{{ user.gone }}", "KeyError"),
        ("{% for x in gone %}{% end %}", "KeyError"),
        ("{% if a %}", "SyntaxError"),
        ("{% for x in xs %}{% if x %}{% end %}", "SyntaxError"),
        ("{% end %}", "SyntaxError"),
    ],
)
def test_faults(candidate, template, kind):
    with pytest.raises(Raised) as fault:
        candidate.call("solution:render", template, VALUES)
    assert fault.value.kind == kind
