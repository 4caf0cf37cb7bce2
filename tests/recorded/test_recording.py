import pandas as pd

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.recorded import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelScale,
    Recording,
    as_samples,
)
from judge_gym.recorded.recording import complete_columns


def recording(prompts: tuple[str, ...] = ("short",)) -> Recording:
    """Forty texts, of which people pass the even ones; the judge passes every text but the last."""
    names = [f"case {number}" for number in range(40)]
    verdicts = pd.DataFrame(
        {
            "judge": "gpt",
            "item": names * len(prompts),
            "label": (["pass"] * 39 + ["fail"]) * len(prompts),
            "foreign.prompt": [prompt for prompt in prompts for _ in names],
        }
    )
    labels = pd.DataFrame(
        {
            "item": names,
            "rater": "ann",
            "label": ["fail" if number % 2 else "pass" for number in range(40)],
        }
    )
    return Recording(
        source="cases.csv",
        format="file",
        question="quality",
        scale=LabelScale("binary", ("fail", "pass"), "pass"),
        items=complete_columns(pd.DataFrame({"item": names}), ITEM_COLUMNS),
        verdicts=complete_columns(verdicts, VERDICT_COLUMNS),
        labels=complete_columns(labels, LABEL_COLUMNS),
    )


def test_recorded_verdicts_are_compared_with_recorded_labels() -> None:
    samples, people = as_samples(recording())
    table = judge_table(tidy(samples), people, positive="pass")
    assert table["rows"][0]["measures"]["sensitivity"]["value"] == 1
    assert table["rows"][0]["measures"]["specificity"]["value"] == 1 / 20


def test_a_recorded_choice_is_a_knob_that_separates_setups() -> None:
    samples, people = as_samples(recording(("short", "long")))
    table = judge_table(tidy(samples), people)
    assert {row["knobs"]["foreign.prompt"] for row in table["rows"]} == {"short", "long"}
    assert {row["setup"] for row in table["rows"]} == {"gpt, prompt long", "gpt, prompt short"}
