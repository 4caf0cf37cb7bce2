"""The rubric's author, its number of stages, the number of draws, and the critic."""

from dataclasses import dataclass

from judge_gym.axes._knobs import TASK, Axes, Conditions, knob

# An even scale has no neutral middle; on an odd one the middle has a fixed meaning, so that authors
# do not use it for "in between" and for "undecided".
NO_MIDPOINT = "There is no middle stage: every stage commits to a direction."
MIDPOINT = 'Stage {midpoint} is the middle and is labelled "Ambiguous / Mixed Evidence".'


UNWRITTEN: Conditions = {TASK: ("given rubric",)}
"""When no model writes a rubric. A provided one may still be loaded, so its author says less."""
UNCRITICISED: Conditions = {"rubric.author": ("provided",)}
"""When no critic is asked."""


@dataclass(frozen=True, slots=True)
class RubricStrategy:
    """The form of a rubric, and where it comes from."""

    scale: int
    midpoint_rule: str
    author: str | None
    """The model that writes it; None if the rubric is provided."""
    draws: int
    critic: str | None
    """The model that criticises it; None if the rubric is provided, or is not criticised."""


class RubricAxes(Axes):
    """The rubric's source and scale."""

    aliases = {"scaleSize": "rubric.scale", "rubricOwner": "rubric.author"}

    scale: int = knob(
        4,
        question="Do more stages, or a middle stage, change what is measured?",
        cite="Kim et al. 2024 (Prometheus 2); Garland 1991",
        examples=(4, 5),
        inactive=UNWRITTEN,
        ge=2,
        le=26,
    )
    author: str = knob(
        "own",
        question="Does a judge's verdict follow the evidence or the rubric that it wrote itself?",
        cite="Koo et al. 2023 (CoBBLEr)",
        examples=("own", "provided", "sim:balanced"),
        min_length=1,
    )
    draws: int = knob(
        1,
        question="How much of the variance comes from the particular rubric that was drawn?",
        examples=(1, 5),
        inactive=UNWRITTEN,
        ge=1,
        le=1000,
    )
    critic: str | None = knob(
        None,
        question="Does it matter which model rates how observable and discriminable a rubric is? "
        "Unset is the assistant under a protocol, else no critic.",
        cite="Dubois et al. 2024 (AlpacaEval 2)",
        examples=("sim:critic",),
        inactive=UNCRITICISED,
        min_length=1,
    )

    def resolve(self, judge: str) -> RubricStrategy:
        """Builds the strategy of the rubric stage for one judge."""
        odd = self.scale % 2 == 1
        provided = self.author == "provided"
        return RubricStrategy(
            scale=self.scale,
            midpoint_rule=MIDPOINT.format(midpoint=self.scale // 2 + 1) if odd else NO_MIDPOINT,
            author=None if provided else judge if self.author == "own" else self.author,
            draws=self.draws,
            critic=None if provided else self.critic,
        )
