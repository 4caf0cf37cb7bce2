"""Intervals of whole numbers."""


def merge(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same numbers in as few intervals as can be."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            first, last = merged[-1]
            merged[-1] = (first, max(last, end))
        else:
            merged.append((start, end))
    return merged
