"""What the page of a sample says of labels and order, beside what judges are shown."""

import pytest

from judge_gym.axes import Design
from judge_gym.records.judge_table import Quantity
from judge_gym.stages.prompts import display
from judge_gym.web.pages.sample import presentation
from judge_gym.web.rendering import quantity


@pytest.mark.parametrize("labels", ["shuffled", "fixed", "opaque"])
@pytest.mark.parametrize("order", ["shuffled", "fixed"])
def test_the_page_says_what_is_shuffled_as_it_is_shown(labels: str, order: str) -> None:
    design = Design.of(
        {"judge.model": "sim:strict", "presentation.labels": labels, "presentation.order": order}
    )
    shown = [
        display(design.presentation.resolve(), 1, f"text {number}", 0, 4) for number in range(30)
    ]
    by_stage = {tuple(sorted(zip(d.stages, d.labels, strict=True))) for d in shown}
    labels_vary, order_varies = len(by_stage) > 1, len({d.stages for d in shown}) > 1
    text = presentation(design)
    assert ("labels are shuffled" in text or "labels and order are shuffled" in text) == labels_vary
    assert ("order is shuffled" in text or "labels and order are shuffled" in text) == order_varies
    assert ("are the same" in text) == (not labels_vary and not order_varies)


def test_a_withheld_interval_gives_its_reason_and_is_escaped() -> None:
    value: Quantity = {"value": 0.5, "low": None, "high": None, "n": 3, "withheld": '3 items <"'}
    assert (
        str(quantity(value, "share")) == '<span title="No interval: 3 items &lt;&#34;">50 %</span>'
    )
    whole: Quantity = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 60}
    assert str(quantity(whole, "share")) == '50 % <span class="soft">[40, 60]</span>'
    assert quantity(None, "dollars") == "–"
