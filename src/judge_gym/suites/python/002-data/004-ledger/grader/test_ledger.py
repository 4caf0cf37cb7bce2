"""The modules one by one, and the program as its user sees it."""

from decimal import Decimal

IMPORTS = """
from decimal import Decimal
from ledger.book import Book, Refused
from ledger.events import Interest, Moved, Opened, Reversed
from ledger.money import parse, rounded
def attempt(action, *args):
    try:
        return str(action(*args))
    except ValueError as fault:
        return type(fault).__name__
"""


def run(candidate, source, **inputs):
    return candidate.run(f"{IMPORTS}\n{source}", **inputs)


def program(candidate, *lines):
    ran = candidate.command(["{python}", "solution.py"], "".join(f"{line}\n" for line in lines))
    assert ran.code == 0, ran.stderr
    return ran.stdout.splitlines()


def test_amounts_are_read(candidate):
    texts = ["12.50", "-3", "0.5", "007", "1234567890123456789012345678901234567890.12"]
    found = run(candidate, "[str(parse(text)) for text in texts]", texts=texts)
    assert [Decimal(text) for text in found] == [Decimal(text) for text in texts]


def test_other_texts_are_no_amounts(candidate):
    texts = ["", " 1", "1 ", "1\n", "+1", "1.", ".5", "1.234", "1e3", "1_000", "1,5", "٣", "NaN", "--1"]
    found = run(candidate, "[attempt(parse, text) for text in texts]", texts=texts)
    assert found == ["ValueError"] * len(texts)


def test_halves_are_rounded_to_the_even_digit(candidate):
    texts = ["2.345", "2.355", "2.3451", "-2.345", "0.005", "0.015", "7"]
    found = run(candidate, "[str(rounded(Decimal(text))) for text in texts]", texts=texts)
    assert found == ["2.34", "2.36", "2.35", "-2.34", "0.00", "0.02", "7.00"]


def test_rounding_keeps_all_digits_of_a_large_amount(candidate):
    text = "1234567890123456789012345678901234567890.125"
    found = run(candidate, "str(rounded(Decimal(text)))", text=text)
    assert found == "1234567890123456789012345678901234567890.12"


def test_events_are_frozen_and_equal_by_their_fields(candidate):
    source = """
event = Moved("a", "b", Decimal(1))
try:
    event.amount = Decimal(2)
except Exception:
    pass
[event == Moved("a", "b", Decimal(1)), str(event.amount), Reversed(2) == Reversed(3)]
"""
    assert run(candidate, source) == [True, "1", False]


def test_a_book_is_what_its_events_make(candidate):
    source = """
first = Book()
first.apply(Opened("a"))
first.apply(Moved("world", "a", Decimal("10.50")))
first.apply(Interest("a", Decimal("1")))
again = Book(first.events)
[str(again.balance("a")), again.events == first.events, isinstance(again.events, tuple)]
"""
    assert run(candidate, source) == ["10.60", True, True]


def test_a_book_refuses_by_its_own_exception_and_is_not_changed(candidate):
    source = """
book = Book([Opened("a"), Moved("world", "a", Decimal(5))])
wrong = [
    Opened("a"), Opened(""), Opened("world"), Moved("a", "a", Decimal(1)),
    Moved("a", "b", Decimal(1)), Moved("b", "a", Decimal(1)), Moved("a", "world", Decimal("5.01")),
    Moved("world", "a", Decimal(0)), Moved("world", "a", Decimal(-1)),
    Moved("world", "a", Decimal("0.001")), Interest("world", Decimal(1)), Interest("b", Decimal(1)),
    Interest("a", Decimal(-1)), Reversed(0), Reversed(1), Reversed(3), Reversed(-1),
]
[[attempt(book.apply, event) for event in wrong], len(book.events), str(book.balance("a"))]
"""
    refusals, count, balance = run(candidate, source)
    assert refusals == ["Refused"] * 17
    assert (count, Decimal(balance)) == (2, 5)


def test_balances_of_the_past(candidate):
    lines = ["open a", "move world a 10", "interest a 5", "move a world 0.25"]
    lines += [f"balance a at {n}" for n in range(6)] + ["balance a", "balance b", "balance world at 0"]
    assert program(candidate, *lines)[4:] == [
        "refused", "0.00", "10.00", "10.50", "10.25", "refused", "10.25", "refused", "0.00",
    ]  # fmt: skip


def test_a_refused_command_gets_no_number(candidate):
    lines = ["open a", "open a", "move a world 1", "# a remark", "", "open b", "pay a 1", "open", "balance b"]
    assert program(candidate, *lines) == ["#1", "refused", "refused", "#2", "refused", "refused", "0.00"]


def test_interest_is_rounded_to_the_even_digit(candidate):
    lines = ["open a", "move world a 0.50", "interest a 1", "balance a", "interest a 3", "balance a"]
    lines += ["interest a 0", "balance a", "interest a 0.1234567", "interest a -1", "interest a 1e1"]
    assert program(candidate, *lines)[2:] == [
        "#3", "0.50", "#4", "0.52", "#5", "0.52", "refused", "refused", "refused",
    ]  # fmt: skip


def test_a_reversal_moves_back_what_was_moved(candidate):
    lines = ["open a", "open b", "move world a 100", "interest a 2.5", "move a b 40", "reverse 4"]
    lines += ["balance a", "balance world", "reverse 5", "balance b", "balance a"]
    assert program(candidate, *lines)[5:] == ["#6", "60.00", "-100.00", "#7", "0.00", "100.00"]


def test_what_cannot_be_reversed(candidate):
    lines = ["open a", "open b", "move world a 5", "move a b 5", "move world b 20", "reverse 3", "reverse 4"]
    lines += ["reverse 4", "reverse 7", "reverse 1", "reverse 0", "reverse 3", "reverse 3", "reverse 6"]
    lines += ["reverse x", "balance a", "balance b"]
    assert program(candidate, *lines)[5:] == [
        "refused", "#6", "refused", "refused", "refused", "refused", "#7", "refused", "refused", "refused",
        "0.00", "20.00",
    ]  # fmt: skip


def test_large_amounts_are_exact(candidate):
    large = "1234567890123456789012345678901234567890.11"
    lines = ["open a", f"move world a {large}", "move world a 0.01", "balance a", "balance world"]
    lines += ["interest a 100", "balance a", "move a world 0.24", "balance a"]
    assert program(candidate, *lines)[3:] == [
        "1234567890123456789012345678901234567890.12",
        "-1234567890123456789012345678901234567890.12",
        "#4",
        "2469135780246913578024691357802469135780.24",
        "#5",
        "2469135780246913578024691357802469135780.00",
    ]


def test_zero_has_no_sign(candidate):
    lines = ["open a", "move world a 5", "move a world 5", "balance world", "balance a"]
    assert program(candidate, *lines)[3:] == ["0.00", "0.00"]
