"""The metrics of a lab in the text format of Prometheus.

The format is a few lines; its client library counts inside one process, while these counts are read
from the database, which several processes write.
"""

from collections.abc import Iterable, Iterator, Mapping

from judge_gym.store import Endpoint, LabMetrics
from judge_gym.store.metrics import BUCKETS, CallSums

TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


def metrics_text(metrics: LabMetrics, *, money: bool) -> str:
    """Returns the metrics as text; without `money`, what was spent and may be spent is left out."""
    lines: list[str] = []

    def add(name: str, kind: str, help: str, samples: Iterable[Sample]) -> None:
        lines.append(f"# HELP judge_gym_{name} {help}")
        lines.append(f"# TYPE judge_gym_{name} {kind}")
        for suffix, labels, value in samples:
            lines.append(f"judge_gym_{name}{suffix}{_labels(labels)} {float(value):.12g}")

    calls = {_named(endpoint): sums for endpoint, sums in metrics.calls.items()}
    add("calls_total", "counter", "Attempts at calls.", _outcomes(calls))
    add("call_seconds", "histogram", "Seconds until the answer of a call.", _latency(calls))
    add("tokens_total", "counter", "Tokens of calls.", _counts(calls, "tokens"))
    if money:
        add("spend_usd_total", "counter", "US dollars paid.", _counts(calls, "usd"))
    add("calls_in_flight", "gauge", "Calls in flight.", [("", {}, metrics.in_flight)])
    add("queue", "gauge", "Runs, shards and analyses in the queue.", _queue(metrics))
    add("workers", "gauge", "Processes that execute what is queued.", [("", {}, metrics.workers)])
    if money:
        shares: list[Sample] = [
            ("", {"kind": kind}, share) for kind, share in metrics.budget_left.items()
        ]
        help = "Least share of a budget that is left, of studies in progress."
        add("budget_left_ratio", "gauge", help, shares)
        left: list[Sample] = [] if metrics.usd_left is None else [("", {}, metrics.usd_left)]
        help = "US dollars that studies in progress with such a budget may still spend."
        add("budget_left_usd", "gauge", help, left)
    return "\n".join(lines) + "\n"


LabelledSums = Mapping[tuple[tuple[str, str], ...], CallSums]


def _named(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    return tuple(endpoint._asdict().items())


def _outcomes(calls: LabelledSums) -> Iterator[Sample]:
    for labels, sums in calls.items():
        for outcome in ("completed", "failed", "unsent"):
            yield "", {**dict(labels), "outcome": outcome}, getattr(sums, outcome)


def _counts(calls: LabelledSums, name: str) -> Iterator[Sample]:
    for labels, sums in calls.items():
        yield "", dict(labels), getattr(sums, name)


def _latency(calls: LabelledSums) -> Iterator[Sample]:
    for labels, sums in calls.items():
        for bound, count in zip(BUCKETS, sums.within, strict=True):
            yield "_bucket", {**dict(labels), "le": f"{bound:g}"}, count
        yield "_bucket", {**dict(labels), "le": "+Inf"}, sums.completed
        yield "_sum", dict(labels), sums.seconds
        yield "_count", dict(labels), sums.completed


def _queue(metrics: LabMetrics) -> Iterator[Sample]:
    for kind in ("run", "shard", "analysis"):
        for state, executing in (("queued", False), ("executing", True)):
            count = metrics.queue.get((kind, executing), 0)
            yield "", {"kind": kind, "state": state}, count


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
