"""Commands on standard input become events."""

import re
import sys
from decimal import Decimal

from ledger.book import Book
from ledger.events import Interest, Moved, Opened, Reversed
from ledger.money import parse

RATE = re.compile(r"[0-9]+(\.[0-9]{1,6})?")
NUMBER = re.compile(r"[0-9]+")


def main() -> int:
    """Answer each line."""
    book = Book()
    for line in sys.stdin:
        text = line.rstrip("\n")
        if text.strip(" ") and not text.startswith("#"):
            try:
                print(answer(book, [word for word in text.split(" ") if word]))
            except ValueError:
                print("refused")
    return 0


def answer(book: Book, words: list[str]) -> str:
    """Apply a command, or tell a balance."""
    match words:
        case ["open", name]:
            return f"#{book.apply(Opened(name))}"
        case ["move", source, target, amount]:
            return f"#{book.apply(Moved(source, target, parse(amount)))}"
        case ["interest", name, rate] if RATE.fullmatch(rate):
            return f"#{book.apply(Interest(name, Decimal(rate)))}"
        case ["reverse", number] if NUMBER.fullmatch(number):
            return f"#{book.apply(Reversed(int(number)))}"
        case ["balance", name]:
            return f"{book.balance(name)}"
        case ["balance", name, "at", number] if NUMBER.fullmatch(number):
            return f"{book.balance(name, int(number))}"
    raise ValueError("no command")


if __name__ == "__main__":
    sys.exit(main())
