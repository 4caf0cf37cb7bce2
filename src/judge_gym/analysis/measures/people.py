"""People with each other: the same measures, with one rater of an item in the judge's place."""

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.measures.confusion import UNSCORED

Floats = npt.NDArray[np.float64]


def rater_pair_tables(counts: Floats) -> Floats:
    """Crosses each item's labels with those of its other raters, for the measures of a matrix.

    `counts` has the number of raters by item and stage. Each ordered pair of raters of an item
    counts equally and the item once; items with fewer than two raters have zeros.
    """
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs -= counts[:, :, None] * np.eye(counts.shape[1])
    shared = raters > 1
    shares: Floats = np.zeros_like(pairs)
    shares[shared] = pairs[shared] / (raters * (raters - 1))[shared, None, None]
    return np.pad(shares, ((0, 0), (0, len(UNSCORED)), (0, 0)))
