"""What several sections of a report read, worked out once."""

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from judge_gym.analysis.endpoints import cell_endpoints
from judge_gym.analysis.metrics.consistency import consistency
from judge_gym.analysis.metrics.stated_agreement import probed_verdicts, verdicts_without_draws
from judge_gym.analysis.metrics.swap_sensitivity import swap_pairs
from judge_gym.analysis.panels import Panel, panels


@dataclass(frozen=True, eq=False)
class Material:
    """The samples of a report, and what is read off them more than once."""

    frame: pd.DataFrame
    """All of them, tidy."""

    @cached_property
    def own(self) -> pd.DataFrame:
        """Those under the judges' own rubrics, without pairs, which have rules of their own."""
        return self.frame[~self.frame["is_swap"] & ~self.frame["pair"]]

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The judges of every task and variant."""
        return tuple(panels(self.frame))

    @cached_property
    def own_panels(self) -> tuple[Panel, ...]:
        """The same without pairs."""
        return tuple(panels(self.own)) if self.frame["pair"].any() else self.panels

    @cached_property
    def consistency(self) -> pd.DataFrame:
        """How steady judges are."""
        return consistency(self.frame)

    @cached_property
    def own_consistency(self) -> pd.DataFrame:
        """The same without pairs."""
        return consistency(self.own) if self.frame["pair"].any() else self.consistency

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Every endpoint of every cell."""
        return cell_endpoints(self.frame)

    @cached_property
    def swaps(self) -> pd.DataFrame:
        """Probed verdicts under another's rubric, beside those under the own."""
        return swap_pairs(self.frame)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """What judges say of experts, and what the other judges say."""
        return probed_verdicts(self.frame)

    @cached_property
    def verdicts_without_draws(self) -> tuple[pd.DataFrame, ...]:
        """The same without each draw of rubrics, where there are many."""
        return verdicts_without_draws(self.frame)
