"""Roman numerals."""

VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
SIGNS = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")


def to_roman(number: int) -> str:
    """A number from 1 to 3999 in Roman numerals."""
    written = ""
    for value, sign in zip(VALUES, SIGNS, strict=True):
        count, number = divmod(number, value)
        written += sign * count
    return written


def from_roman(text: str) -> int:
    """The number of a numeral as `to_roman` writes it."""
    number, rest = 0, text
    for value, sign in zip(VALUES, SIGNS, strict=True):
        while rest.startswith(sign):
            number, rest = number + value, rest[len(sign) :]
    if not 1 <= number <= 3999 or to_roman(number) != text:
        raise ValueError(f"{text!r} is not a Roman numeral")
    return number
