"""Sets of stages, their bit masks (stage i is bit i - 1), and validation of mass functions."""

from collections.abc import Iterable, Mapping

from judge_gym.errors import DesignError

Mass = Mapping[frozenset[int], float]

SCALES = range(2, 27)
TOLERANCE = 1e-9
"""The largest deviation of the sum of masses from 1; masses are rescaled to sum to 1."""


def bits(chosen: Iterable[int]) -> int:
    """Returns the mask of a set of stages."""
    return sum(1 << stage - 1 for stage in set(chosen))


def stages(mask: int) -> frozenset[int]:
    """Returns the stages of a mask."""
    return frozenset(place + 1 for place in range(mask.bit_length()) if mask >> place & 1)


def checked_frame(frame: int) -> int:
    """Returns the frame, and refuses an invalid one."""
    if frame not in SCALES:
        raise DesignError(f"a frame of {frame} stages; choose {SCALES[0]} to {SCALES[-1]}")
    return frame


def checked_share(alpha: float) -> float:
    """Returns the discount, and refuses one outside 0 to 1."""
    if not 0 <= alpha <= 1:
        raise DesignError(f"discount alpha is {alpha}; choose 0 to 1")
    return alpha


def checked(mass: Mass, frame: int | None, *, empty: bool = False) -> dict[frozenset[int], float]:
    """Returns the sets with positive mass, scaled to sum to 1, and refuses invalid masses.

    The frame is the number of stages, None if unknown; `empty` allows mass on the empty set.
    """
    if frame is not None:
        checked_frame(frame)
    for chosen, value in mass.items():
        if not 0 <= value <= 1 + TOLERANCE:
            raise DesignError(f"mass {value} on {sorted(chosen)}; masses lie between 0 and 1")
        if value > 0 and not chosen and not empty:
            raise DesignError(f"mass {value} on the empty set; give it to sets of stages")
        inside(chosen, frame)
    total = sum(mass.values())
    if abs(total - 1) > TOLERANCE:
        raise DesignError(f"masses sum to {total:.9g}; they must sum to 1")
    return {frozenset(chosen): value / total for chosen, value in mass.items() if value > 0}


def inside(chosen: Iterable[int], frame: int | None) -> frozenset[int]:
    """Returns the set, and refuses stages outside the frame."""
    found = frozenset(chosen)
    last = SCALES[-1] if frame is None else frame
    if outside := [stage for stage in found if not 1 <= stage <= last]:
        raise DesignError(f"stage {min(outside)} of {sorted(found)}; choose 1 to {last}")
    return found
