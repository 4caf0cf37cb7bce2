"""Whole values, pieces of every size, and where broken input breaks."""

import json
import random

FEED = """
from solution import Broken, Reader
def feed(*pieces):
    reader, told = Reader(), []
    try:
        for piece in pieces:
            told.append(reader.feed(piece.encode("latin-1")))
        told.append(reader.close())
    except Broken as fault:
        told.append([fault.offset, fault.values])
    return told
"""


def latin(data):
    """Bytes as text for the way to the candidate."""
    return (data.encode() if isinstance(data, str) else data).decode("latin-1")


def feeds(candidate, *cases):
    """What each call gives; a broken input ends with its offset and values."""
    source = f"{FEED}\n[feed(*pieces) for pieces in cases]"
    return candidate.run(source, cases=[[latin(piece) for piece in case] for case in cases])


def broken(candidate, cases):
    """The cases whose offset is another one than expected, given whole and byte by byte."""
    source = f"""{FEED}
def end(pieces):
    told = feed(*pieces)
    return told[-1][0] if told[-1] and isinstance(told[-1][-1], list) else None
[[end([text]), end(text)] for text in texts]
"""
    found = candidate.run(source, texts=[latin(text) for text in cases])
    expected = [[offset, offset] for offset in cases.values()]
    return [case for case in zip(cases, found, expected, strict=True) if case[1] != case[2]]


def test_values_are_given_when_they_are_complete(candidate):
    assert feeds(
        candidate,
        ["[1, 2]"],
        ["[1", "]"],
        ['{"a": {"b": [true, null]}}', ' "x" fal', "se"],
        ["12", "3", " 4"],
        ["1 2\n\t3\r"],
        ["", "  ", ""],
        ["[[]", "]"],
    ) == [
        [[[1, 2]], []],
        [[], [[1]], []],
        [[{"a": {"b": [True, None]}}], ["x"], [False], []],
        [[], [], [123], [4]],
        [[1, 2, 3], []],
        [[], [], [], []],
        [[], [[[]]], []],
    ]


def test_numbers(candidate):
    texts = ["0", "-0.5", "10", "1e3", "1E+2", "2.5e-1", "123456789012345678901234567890", "-7", "1.0", "-0.0"]
    source = f"{FEED}\n[feed(text)[-1] for text in texts] + [[type(feed(t)[-1][0]).__name__ for t in texts]]"
    *found, types = candidate.run(source, texts=texts)
    assert found == [[0], [-0.5], [10], [1000.0], [100.0], [0.25], [123456789012345678901234567890], [-7], [1.0], [0]]
    assert types == ["int", "float", "int", "float", "float", "float", "int", "int", "float", "float"]


def test_strings(candidate):
    assert feeds(
        candidate,
        ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u0000"'],
        ['"\\ud83d\\uDE00 é 😀 \x7f"'],
        ['""', ' ""'],
        ['{"": "\\u0041"}'],
    ) == [
        [['"\\/\b\f\n\r\té\x00'], []],
        [["😀 é 😀 \x7f"], []],
        [[""], [""], []],
        [[{"": "A"}], []],
    ]


def test_the_last_of_equal_keys_counts(candidate):
    assert feeds(candidate, ['{"a": 1, "b": 2, "a": [3]}']) == [[[{"a": [3], "b": 2}], []]]


def test_pieces_may_be_cut_anywhere(candidate):
    text = ' {"kéy": ["😀\\u00e9\\ud83d\\ude00\\n", -1.5e+3, true, null, {}], "x": [[], [0]]} 12 "é" '
    whole = text.encode()
    cases = [[whole[:n], whole[n:]] for n in range(len(whole) + 1)]
    cases.append([whole[n : n + 1] for n in range(len(whole))])
    expected = [*map(json.loads, (text[: text.rindex("}") + 1], "12", '"é"'))]
    for case, found in zip(cases, feeds(candidate, *cases), strict=True):
        assert [value for part in found for value in part] == expected, case


def test_random_values_in_random_pieces(candidate):
    rng = random.Random(12)

    def value(depth):
        kind = rng.randrange(7 if depth < 4 else 5)
        if kind == 5:
            return [value(depth + 1) for _ in range(rng.randrange(4))]
        if kind == 6:
            return {"".join(rng.choices('ab"\\é😀\n', k=3)): value(depth + 1) for _ in range(rng.randrange(4))}
        text = "".join(rng.choices('ab"\\é😀\n\x01', k=rng.randrange(5)))
        return [None, True, rng.randint(-(10**20), 10**20), rng.uniform(-1e9, 1e-9), text][kind]

    values = [value(0) for _ in range(60)]
    data = "\n".join(json.dumps(one, ensure_ascii=rng.random() < 0.5) for one in values).encode()
    pieces = []
    while data:
        size = rng.randint(1, 9)
        pieces.append(data[:size])
        data = data[size:]
    [found] = feeds(candidate, pieces)
    assert [one for part in found for one in part] == values


def test_broken_structure(candidate):
    cases = {
        "[1,]": 3, "[,1]": 1, "[1 2]": 3, "[1}": 2, '{"a" 1}': 5, '{"a":1,}': 7, "{a:1}": 1, "{1:2}": 1,
        '{"a":}': 5, "]": 0, "}": 0, ",": 0, '["a":1]': 4, "[1]]": 3, "// x": 0, "[1]x": 3, "\x0c1": 0,
        '{"a":1 "b"}': 7, "{,}": 1, '{"a"]': 4, "\u00a0": 0,
    }  # fmt: skip
    assert broken(candidate, cases) == []


def test_values_need_white_space_between_them(candidate):
    cases = {"[][]": 2, '"a""b"': 3, "true[]": 4, "truefalse": 4, '1"a"': 1, "1[": 1, '{}"': 2, "null1": 4}
    assert broken(candidate, cases) == []


def test_broken_numbers_and_words(candidate):
    cases = {
        "01": 1, "-01": 2, "+1": 0, ".5": 0, "1.": 2, "1.e3": 2, "1e": 2, "1e+": 3, "1e+x": 3, "-": 1, "--1": 1,
        "1.2.3": 3, "0x1": 1, "NaN": 0, "Infinity": 0, "-Infinity": 1, "nul": 3, "nuLl": 2, "tru ": 3, "1_0": 1,
        "[1.]": 3, "[-]": 2, "1e5.": 3,
    }  # fmt: skip
    assert broken(candidate, cases) == []


def test_broken_strings(candidate):
    cases = {
        '"a\nb"': 2, '"\x00"': 1, '"\x1f"': 1, '"\\x"': 2, '"\\u12g4"': 5, '"\\': 2, '"\\u00': 5, '"abc': 4,
        "'a'": 0, '"\\u 041"': 3, '["a': 3, '"\\u+041"': 3,
    }  # fmt: skip
    assert broken(candidate, cases) == []


def test_broken_surrogates_and_bytes(candidate):
    cases = {
        '"a\\ud800"': 2, '"\\ud800x"': 1, '"\\ud800\\n"': 1, '"\\ud800\\u0041"': 1, '"\\ud800\\ud800"': 1,
        '"é\\udc00"': 3, '"\\ud800': 7, b'"\xff"': 1, b'"a\xc3"': 2, b'"\xe2\x82': 1, b'"\xed\xa0\x80"': 1,
        b'"\xc0\x80"': 1, b'"\xc3\\n"': 1, b'["\xf0\x9f\x98x"]': 2, b"\xc3\xa9": 0, b'"\xf5"': 1,
    }  # fmt: skip
    assert broken(candidate, cases) == []


def test_input_that_ends_too_early(candidate):
    cases = {"[": 1, "[1": 2, '{"a"': 4, '{"a": 1': 7, "[[]": 3, " t": 2, "[1, ": 4}
    assert broken(candidate, cases) == []


def test_values_before_the_fault_are_not_lost(candidate):
    assert feeds(candidate, ['1 [2] "a" x'], ["1 2 ", "3 ]"], ["1 ", "x"]) == [
        [[10, [1, [2], "a"]]], [[1, 2], [6, [3]]], [[1], [2, []]],
    ]  # fmt: skip


def test_after_the_end(candidate):
    source = f"""{FEED}
def attempt(action, *args):
    try:
        return action(*args)
    except Broken as fault:
        return ["Broken", fault.offset, fault.values]
    except ValueError:
        return "ValueError"
bad, good = Reader(), Reader()
calls = [(bad.feed, b"1 x"), (bad.feed, b"1 "), (bad.close,), (bad.feed, b"")]
calls += [(good.feed, b"1"), (good.close,), (good.close,), (good.feed, b"1"), (good.feed, b"")]
[attempt(*call) for call in calls]
"""
    assert candidate.run(source) == [
        ["Broken", 2, [1]], ["Broken", 2, []], ["Broken", 2, []], ["Broken", 2, []],
        [], [1], [], "ValueError", "ValueError",
    ]  # fmt: skip


def test_depth_and_small_pieces(candidate):
    source = f"""{FEED}
import json
reader = Reader()
[value] = reader.feed(b"[" * 100_000 + b"]" * 100_000)
depth = 0
while value:
    value, depth = value[0], depth + 1
rows = [{{"id": n, "name": f"name {{n}}", "tags": ["a", "b"]}} for n in range(6_000)]
data = json.dumps(rows).encode()[:300_000]
data = data[: data.rindex(b"}}") + 1] + b"]"
reader, told = Reader(), []
for n in range(len(data)):
    told += reader.feed(data[n : n + 1])
told += reader.close()
[depth, len(data) > 290_000, told == [json.loads(data)]]
"""
    assert candidate.run(source) == [99_999, True, True]
