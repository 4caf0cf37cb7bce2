"""What other tools and papers recorded of their judges, where no knob of ours says it."""

from pydantic import ConfigDict

from judge_gym.axes._knobs import Axes

FOREIGN = "foreign."
"""What the names of knobs begin with that recorded verdicts have, and no design of ours."""
RECORDED = f"{FOREIGN}recorded"
"""The knob that says by what, and in which file, a judge was recorded; own designs have none."""


class ForeignAxes(Axes):
    """Choices under the names that were recorded, which a study cannot set."""

    model_config = ConfigDict(extra="allow")
