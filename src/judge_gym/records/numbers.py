"""Formats numbers for people, equally in the terminal and on pages."""


def number(value: float) -> str:
    """Returns a number with three significant digits and without an exponent.

    >>> [number(value) for value in (0.0, 0.78249, 12.0, 123456.7, 4.9e-10, -9.95e-05)]
    ['0', '0.782', '12', '123,457', '<0.001', '>-0.001']
    """
    if value == 0:
        return "0"
    if abs(value) < 0.001:
        return "<0.001" if value > 0 else ">-0.001"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
