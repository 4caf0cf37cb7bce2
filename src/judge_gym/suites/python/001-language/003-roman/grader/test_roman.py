"""Against numerals read back by the rules, and the limits."""

import pytest
from inside.grading import Raised

VALUE = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def test_known_years(candidate):
    source = "from solution import to_roman\n[to_roman(n) for n in numbers]"
    found = candidate.run(source, numbers=[4, 9, 14, 40, 90, 400, 1994, 2026, 3999])
    assert found == ["IV", "IX", "XIV", "XL", "XC", "CD", "MCMXCIV", "MMXXVI", "MMMCMXCIX"]


def test_every_number_reads_back(candidate):
    written = candidate.run("from solution import to_roman\n[to_roman(n) for n in range(1, 4000)]")
    for number, text in enumerate(written, 1):
        values = [VALUE[sign] for sign in text]
        signed = [-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True)]
        assert sum(signed) == number


def test_no_sign_stands_four_times(candidate):
    written = candidate.run("from solution import to_roman\n[to_roman(n) for n in range(1, 4000)]")
    assert not [text for text in written if any(sign * 4 in text for sign in VALUE)]


@pytest.mark.parametrize("number", [0, -1, 4000])
def test_other_numbers_are_refused(candidate, number):
    with pytest.raises(Raised) as fault:
        candidate.call("solution:to_roman", number)
    assert fault.value.kind == "ValueError"


def test_every_numeral_is_read_back(candidate):
    source = "from solution import from_roman, to_roman\n[from_roman(to_roman(n)) for n in range(1, 4000)]"
    assert candidate.run(source) == list(range(1, 4000))


def test_other_texts_are_refused(candidate):
    texts = ["", "IIII", "VX", "IC", "xi", " V", "V ", "V\n", "MMMM", "VV", "IXI", "XCX", "IVI", "CMC", "N", "ⅷ", "IIV"]
    source = """
        from solution import from_roman
        def refused(text):
            try:
                return from_roman(text)
            except ValueError:
                return "ValueError"
        [refused(text) for text in texts]
    """
    assert candidate.run(source, texts=texts) == ["ValueError"] * len(texts)
