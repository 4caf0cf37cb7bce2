"""Exact amounts."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal

AMOUNT = re.compile(r"-?[0-9]+(\.[0-9]{1,2})?")
EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
"""The default context would round sums to 28 digits."""


def parse(text: str) -> Decimal:
    """An amount with up to two decimals."""
    if not AMOUNT.fullmatch(text):
        raise ValueError(f"{text!r} is not an amount")
    return Decimal(text)


def rounded(amount: Decimal) -> Decimal:
    """An amount with two decimals, halves to the even digit."""
    return amount.quantize(Decimal("0.01"), context=EXACT)
