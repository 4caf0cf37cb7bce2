"""Figures, in one grammar for notebook and report; titles say what is seen.

A figure takes a tidy frame and a title, and where no title is given the finding beside it writes
one from the data. Undefined values are not drawn; a frame with nothing to draw gives None, and one
that lacks a column is refused.

- `page`: colours, panels and pictures, which all share.
- `verdicts`: what judges chose.
- `disagreement`: how far they lie apart.
- `experts`: what they say of experts.
- `effects`: what the axes do.
- `accuracy`: how right they are, at what cost, and whether the instrument holds.
- `spend`: what was spent, and on whom.
"""

from judge_gym.analysis.figures.accuracy import (
    accuracy_figure,
    accuracy_finding,
    cost_figure,
    cost_finding,
    coverage_figure,
    coverage_finding,
)
from judge_gym.analysis.figures.disagreement import (
    method_figure,
    method_finding,
    pair_figure,
    pair_finding,
    polarization_figure,
    polarization_finding,
)
from judge_gym.analysis.figures.effects import (
    forest_figure,
    forest_finding,
    rank_figure,
    rank_finding,
)
from judge_gym.analysis.figures.experts import (
    probe_figure,
    probe_finding,
    reliability_figure,
    reliability_finding,
    swap_figure,
    swap_finding,
)
from judge_gym.analysis.figures.page import Figure, caption, panels, png, svg
from judge_gym.analysis.figures.spend import spend_figure, spend_finding
from judge_gym.analysis.figures.verdicts import (
    SHAPES,
    belief_figure,
    belief_finding,
    distribution_figure,
    distribution_finding,
    geometry_figure,
    geometry_finding,
    heat_figure,
    heat_finding,
    status_figure,
    status_finding,
)

__all__ = [
    "SHAPES",
    "Figure",
    "accuracy_figure",
    "accuracy_finding",
    "belief_figure",
    "belief_finding",
    "caption",
    "cost_figure",
    "cost_finding",
    "coverage_figure",
    "coverage_finding",
    "distribution_figure",
    "distribution_finding",
    "forest_figure",
    "forest_finding",
    "geometry_figure",
    "geometry_finding",
    "heat_figure",
    "heat_finding",
    "method_figure",
    "method_finding",
    "pair_figure",
    "pair_finding",
    "panels",
    "png",
    "polarization_figure",
    "polarization_finding",
    "probe_figure",
    "probe_finding",
    "rank_figure",
    "rank_finding",
    "reliability_figure",
    "reliability_finding",
    "spend_figure",
    "spend_finding",
    "status_figure",
    "status_finding",
    "svg",
    "swap_figure",
    "swap_finding",
]
