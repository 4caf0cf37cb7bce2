"""The labels and the order in which stages are shown, from a hash that all variants share."""

import hashlib
from collections.abc import Iterator

from judge_gym.axes.presentation import PresentationStrategy
from judge_gym.records import Display


def display(
    strategy: PresentationStrategy, seed: int, evidence_hash: str, replicate: int, scale: int
) -> Display:
    """Returns the display of a rubric of `scale` stages for one item and replicate.

    It does not depend on judge, rubric author or design, so that contrasts compare equal displays.
    """
    key = f"{seed}/{evidence_hash}/{replicate}/{scale}"
    names = list(strategy.names[:scale])
    if strategy.shuffle_labels:
        names = [names[i] for i in permutation(scale, f"{key}/labels")]
    order = permutation(scale, f"{key}/order") if strategy.shuffle_order else list(range(scale))
    return Display(tuple(names[i] for i in order), tuple(i + 1 for i in order))


def permutation(n: int, key: str) -> list[int]:
    """Returns a permutation of 0 to n-1, uniform over keys (Fisher-Yates).

    >>> sorted(permutation(5, "any key"))
    [0, 1, 2, 3, 4]
    """
    words = _words(key)
    shuffled = list(range(n))
    for last in range(n - 1, 0, -1):
        other = _below(last + 1, words)
        shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
    return shuffled


def _words(key: str) -> Iterator[int]:
    """Yields 64-bit words of a counter-mode hash."""
    counter = 0
    while True:
        block = hashlib.sha256(f"{key}#{counter}".encode()).digest()
        yield from (int.from_bytes(block[i : i + 8]) for i in range(0, 32, 8))
        counter += 1


def _below(bound: int, words: Iterator[int]) -> int:
    """Returns a uniform integer below the bound; words of the incomplete last cycle are skipped."""
    limit = (1 << 64) // bound * bound
    return next(word for word in words if word < limit) % bound
