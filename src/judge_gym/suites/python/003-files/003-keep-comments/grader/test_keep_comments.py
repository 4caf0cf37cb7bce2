"""What is read, and what stays as it was."""

TEXT = """\
# Top comment
name = tool ; what it is called
empty =
[ server ]  # where
  host = "a;b"   # quoted
\tport=80
; the end of the section

[paths]
home = C:\\dir#1
[server]
port = 81
"""
EDIT = """
from solution import Settings
def edited(text, calls):
    settings = Settings(text)
    told = [getattr(settings, name)(*args) for name, *args in calls]
    return [str(settings), [one for one in told if one is not None]]
[edited(text, calls) for text, calls in cases]
"""
ERRORS = """
from solution import ParseError, Settings
def line(text):
    try:
        return str(Settings(text))
    except ParseError as fault:
        return [fault.line, isinstance(fault, ValueError)]
[line(text) for text in texts]
"""


def edits(candidate, *cases):
    """Each text after its calls."""
    return [text for text, _ in candidate.run(EDIT, cases=list(cases))]


def read(candidate, text, *calls):
    source = EDIT.replace("if one is not None", "")
    [[_, told]] = candidate.run(source, cases=[[text, list(calls)]])
    return told


def test_a_text_stays_as_it_is(candidate):
    texts = [TEXT, "", "\n", "a=1", "a = 1\r\n\r\n[b]\n c=\"\" ;x\r\n", " \t", "a=b\x0cc\u2028d\x85\n[x]"]
    assert edits(candidate, *([text, []] for text in texts)) == texts


def test_values(candidate):
    calls = [["get", "", "name"], ["get", "", "empty"], ["get", "server", "host"]]
    calls += [["get", "paths", "home"], ["get", "server", "port"], ["get", "server", "Port"], ["get", "x", "y"]]
    assert read(candidate, TEXT, *calls) == ["tool", "", "a;b", "C:\\dir#1", "81", None, None]


def test_values_and_comments(candidate):
    text = 'a =#x\nb = #x\nc = x#y ;z\nd = "\\"\\\\ #" # x\ne = x "y"\nf==\ng = a = b\nh = \t\ni=x\t#\n'
    calls = [["get", "", key] for key in "abcdefghi"]
    assert read(candidate, text, *calls) == ["", "", "x#y", '"\\ #', 'x "y"', "=", "a = b", "", "x"]


def test_sections_and_keys(candidate):
    calls = [["sections"], ["keys", "server"], ["keys", ""], ["keys", "none"]]
    assert read(candidate, TEXT, *calls) == [
        ["", "server", "paths"], ["host", "port"], ["name", "empty"], [],
    ]  # fmt: skip
    assert read(candidate, "# x\n[b]\n[a]\n[b]\n", ["sections"], ["keys", "b"]) == [["b", "a"], []]


def test_other_lines_are_refused_with_their_number(candidate):
    texts = ["a\n", "a=1\nb\n", "= 1", "[a", "[]", "[ ]\n", "[a] b\n", '\n\na="x\n', 'a="x" y', 'a="\\n"']
    found = candidate.run(ERRORS, texts=texts)
    lines = [1, 2, 1, 1, 1, 1, 1, 3, 1, 1]
    assert found == [[line, True] for line in lines]


def test_set_replaces_nothing_but_the_value(candidate):
    found = edits(
        candidate,
        [TEXT, [["set", "", "name", "other tool"]]],
        [TEXT, [["set", "server", "host", "c"]]],
        [TEXT, [["set", "", "empty", "no"]]],
        ["a =  \t# x\r\nb=1", [["set", "", "a", "y"], ["set", "", "b", "22"]]],
        ['a=#x\nb = "1";x\nc = \n', [["set", "", "a", "y"], ["set", "", "b", "2"], ["set", "", "c", "3"]]],
    )
    assert found == [
        TEXT.replace("tool ;", "other tool ;"),
        TEXT.replace('"a;b"', "c"),
        TEXT.replace("empty =", "empty =no"),
        "a =y  \t# x\r\nb=22",
        "a=y #x\nb = 2 ;x\nc =3 \n",
    ]


def test_set_replaces_the_last_of_several(candidate):
    assert edits(candidate, [TEXT, [["set", "server", "port", "90"]]]) == [TEXT.replace("81", "90")]
    assert edits(candidate, ["a=1\na=2\n", [["set", "", "a", "3"]]]) == ["a=1\na=3\n"]


def test_values_that_need_quotes(candidate):
    values = ["", " a", "a\t", 'say "x"', "a#b", "a;b", "back\\slash", 'b\\"', "[x]", "=", "ü x"]
    cases = [["k = old # c\n", [["set", "", "k", value], ["get", "", "k"]]] for value in values]
    written = ['""', '" a"', '"a\t"', '"say \\"x\\""', '"a#b"', '"a;b"', "back\\slash", '"b\\\\\\""']
    written += ["[x]", "=", "ü x"]
    found = candidate.run(EDIT, cases=cases)
    assert found == [[f"k = {text} # c\n", [value]] for text, value in zip(written, values, strict=True)]


def test_set_again_after_set(candidate):
    calls = [["set", "a", "k", "x y"], ["set", "a", "k", "#"], ["set", "a", "k", "z"], ["set", "a", "l", "1"]]
    assert edits(candidate, ["[a]\nk = 0 ; c\n", calls]) == ["[a]\nk = z ; c\nl = 1\n"]


def test_a_new_key_follows_the_last_entry_of_its_section(candidate):
    assert edits(
        candidate,
        [TEXT, [["set", "server", "new", "1"]]],
        [TEXT, [["set", "", "new", "1"]]],
        ["[a]\n  x=1\n# c\n\n[b]\n", [["set", "a", "y", "2"], ["set", "a", "z", "3"]]],
        ["# c\n[a] ;x\n# d\n", [["set", "a", "y", "2"]]],
        ["# c\n[a]\n", [["set", "", "y", "2"]]],
    ) == [
        TEXT + "new = 1\n",
        TEXT.replace("empty =\n", "empty =\nnew = 1\n"),
        "[a]\n  x=1\n  y = 2\n  z = 3\n# c\n\n[b]\n",
        "# c\n[a] ;x\ny = 2\n# d\n",
        "y = 2\n# c\n[a]\n",
    ]


def test_a_new_section(candidate):
    assert edits(
        candidate,
        ["", [["set", "s", "k", "v"]]],
        ["a=1\n", [["set", "s", "k", "v"], ["set", "s", "l", "w"]]],
        ["a=1\n \t\n", [["set", "s", "k", "v"]]],
        ["# c", [["set", "s", "k", "v"]]],
    ) == [
        "[s]\nk = v\n",
        "a=1\n\n[s]\nk = v\nl = w\n",
        "a=1\n \t\n[s]\nk = v\n",
        "# c\n\n[s]\nk = v\n",
    ]


def test_line_ends_of_new_lines(candidate):
    assert edits(
        candidate,
        ["a=1\r\nb=2\n", [["set", "", "c", "3"], ["set", "s", "k", "v"]]],
        ["a=1\r\nb=2", [["set", "", "c", "3"]]],
        ["a=1", [["set", "", "b", "2"]]],
    ) == [
        "a=1\r\nb=2\nc = 3\r\n\r\n[s]\r\nk = v\r\n",
        "a=1\r\nb=2\r\nc = 3\r\n",
        "a=1\nb = 2\n",
    ]


def test_remove(candidate):
    found = candidate.run(
        EDIT,
        cases=[
            [TEXT, [["remove", "server", "port"], ["remove", "server", "port"], ["remove", "x", "y"]]],
            ["a=1\na=2 # c\n[a]\na=3", [["remove", "", "a"], ["sections"]]],
        ],
    )
    kept = TEXT.replace("\tport=80\n", "").replace("port = 81\n", "")
    assert found == [[kept, [True, False, False]], ["[a]\na=3", [True, ["a"]]]]


def test_what_cannot_be_written_is_refused_and_changes_nothing(candidate):
    source = """
from solution import Settings
settings = Settings("a = 1\\n")
told = []
for call in calls:
    try:
        settings.set(*call)
        told.append(call)
    except ValueError:
        pass
[told, str(settings)]
"""
    calls = [["", "a", "x\ny"], ["", "a", "x\r"], ["", "", "x"], ["", "a=b", "x"], ["", "#a", "x"]]
    calls += [["", ";a", "x"], ["", "[a", "x"], ["", " a", "x"], ["", "a\n", "x"], ["s]", "a", "x"], ["s ", "a", "x"]]
    calls += [["s\n", "a", "x"]]
    assert candidate.run(source, calls=calls) == [[], "a = 1\n"]


def test_an_edited_text_reads_back(candidate):
    calls = [["set", "n", "k", "a b"], ["set", "n", "q", ' "#'], ["set", "server", "host", "h"]]
    [[text, _]] = candidate.run(EDIT, cases=[[TEXT, calls]])
    calls = [["get", "n", "k"], ["get", "n", "q"], ["get", "server", "host"], ["sections"]]
    assert read(candidate, text, *calls) == ["a b", ' "#', "h", ["", "server", "paths", "n"]]
