"""What goes on, counted while it does."""

from dataclasses import dataclass, field

from judge_gym.errors import Bill
from judge_gym.records import Completion


@dataclass(slots=True)
class RunProgress:
    """What a run has done since it was started; faces poll it."""

    done: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    paid: int = 0
    reused: int = 0
    usd: float = 0.0
    saved: float = 0.0
    """US dollars that what was reused once cost."""
    warnings: list[str] = field(default_factory=list)
    within: "RunProgress | None" = None
    """The one that counts what this one counts, too."""

    def part(self) -> "RunProgress":
        """A tally of a part of the work, which counts here as well."""
        return RunProgress(within=self)

    def advance(self, stage: str, count: int) -> None:
        """Count targets of a stage as done."""
        self.done[stage] = self.done.get(stage, 0) + count
        if self.within is not None:
            self.within.advance(stage, count)

    def warn(self, warning: str) -> None:
        """Keep a remark, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)
        if self.within is not None:
            self.within.warn(warning)

    def pay(self, took: Completion | Bill | None) -> None:
        """Count an attempt."""
        self.paid += 1
        self.usd += (took.usd or 0.0) if took else 0.0
        if self.within is not None:
            self.within.pay(took)

    def reuse(self, count: int, saved: float) -> None:
        """Count answers that were there, and what they once cost."""
        self.reused += count
        self.saved += saved
        if self.within is not None:
            self.within.reuse(count, saved)
