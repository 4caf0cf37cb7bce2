"""The model that judges, and its parameters."""

from judge_gym.axes._knobs import Axes, knob


class JudgeAxes(Axes):
    """The judge itself, whose knobs are parameters of the request."""

    aliases = {"modelId": "judge.model"}

    model: str = knob(
        question="Which model judges?",
        examples=("sim:balanced", "openai:gpt-5.2"),
        min_length=1,
    )
    temperature: float | None = knob(
        None,
        question="How much of the variance is sampling? Unset leaves the provider's default.",
        examples=(0.0, 1.0),
        ge=0.0,
        le=2.0,
    )
    max_tokens: int = knob(
        2048,
        question="Does a short limit cut verdicts off? Such answers are counted as truncated.",
        examples=(2048, 256),
        ge=1,
        le=1_000_000,
    )
