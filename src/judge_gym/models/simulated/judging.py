"""The latent-trait judge: the exact distribution of its verdicts, and the words it puts them in."""

import json
import math
import random
from collections.abc import Mapping

from judge_gym.models.simulated.prompts import Reading
from judge_gym.models.simulated.temper import Temper
from judge_gym.records import Verdict

FAMILY_SHIFT = 0.35
"""Perceived strain moved by a bias of 1 on a concept that is wholly contested."""
GATE_STEEPNESS = 12.0
SAME_CONTEXT = 0.4
"""Log-odds that a judge's own reasoning adds to its confidence."""

READABLE = (
    "**VERDICT: {v}**",
    "VERDICT: [{v}]",
    "Final verdict: {v}",
    "- VERDICT: {v}",
    "VERDICT: VERDICT: {v}",
    "verdict: {v}.",
    "```\nVERDICT: {v}\n```",
    "VERDICT: {v}\n\nThe criteria above were decisive.",
)
UNREADABLE = (
    "VERDICT:",
    "My choice would be {v}.",
    "VERDICT: None",
    "VERDICT: the stage that fits best",
)


def verdicts(temper: Temper, reading: Reading) -> dict[Verdict, float]:
    """The exact distribution of what a judge's answer to a scoring prompt will be read as."""
    gates: list[tuple[Verdict, float]] = [
        (Verdict("provider_error"), temper.fail),
        (Verdict("refused"), temper.refuse * reading.contested),
        (Verdict("truncated"), temper.truncate),
        (Verdict("parse_failed"), temper.garble),
        (Verdict("abstained"), abstention(temper, reading)),
    ]
    distribution: dict[Verdict, float] = {}
    left = 1.0
    for verdict, share in gates:
        distribution[verdict] = left * share
        left *= 1 - share
    for labels, share in _choices(temper, reading).items():
        distribution[Verdict("scored", labels)] = left * share
    return {verdict: share for verdict, share in distribution.items() if share > 0}


def abstention(temper: Temper, reading: Reading) -> float:
    """The share of abstentions: high where the text says little of what the judge can read."""
    if not reading.may_abstain or temper.abstain == 0 or reading.pair:
        return 0.0
    information = 1 - math.exp(-len(reading.cues) / 2)
    return 1 / (1 + math.exp(GATE_STEEPNESS * (information - temper.abstain)))


def perceived(temper: Temper, reading: Reading) -> float:
    """The strain that the judge sees in the text; of a pair, how far the first response leads."""
    if reading.pair:
        return reading.lead
    cues = reading.cues
    strain = sum(cues) / len(cues) if cues else 0.5
    shift = FAMILY_SHIFT * temper.bias * reading.contested + temper.tone * reading.tones
    return min(1.0, max(0.0, strain + shift))


def stage_weights(temper: Temper, reading: Reading) -> dict[str, float]:
    """The share of each displayed stage in a single verdict."""
    x = perceived(temper, reading)
    shown = list(reading.stages)
    logits = {
        label: -((x - strain) ** 2) / (2 * temper.noise**2)
        + temper.position * (strain == 1.0 if reading.pair else label == shown[0])
        + temper.label * (label == min(shown))
        for label, strain in reading.stages.items()
    }
    top = max(logits.values())
    weights = {label: math.exp(logit - top) for label, logit in logits.items()}
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def _choices(temper: Temper, reading: Reading) -> dict[tuple[str, ...], float]:
    """The share of each choice; a subset is an anchor and whatever rivals the best."""
    weights = stage_weights(temper, reading)
    if not reading.subset:
        return {(label,): share for label, share in weights.items()}
    floor = (1 - temper.width) * max(weights.values())
    near = {label for label, share in weights.items() if share >= floor}
    choices: dict[tuple[str, ...], float] = {}
    for anchor, share in weights.items():
        labels = tuple(label for label in weights if label in near | {anchor})
        choices[labels] = choices.get(labels, 0.0) + share
    return choices


def draw(distribution: Mapping[Verdict, float], rng: random.Random) -> Verdict:
    """One verdict."""
    return rng.choices(list(distribution), weights=list(distribution.values()))[0]


def answer(
    verdict: Verdict, temper: Temper, reading: Reading, rng: random.Random, as_json: bool
) -> str:
    """The words of a scoring answer."""
    best = max(reading.stages, key=lambda label: stage_weights(temper, reading)[label])
    chosen = ", ".join(verdict.labels) or best
    thought = _reasoning(verdict, temper, reading, chosen)
    if verdict.status == "refused":
        return "I can't help with judging this material."
    if verdict.status == "truncated":
        return thought[: rng.randrange(20, len(thought))]
    value = "ABSTAIN" if verdict.status == "abstained" else chosen
    if verdict.status == "parse_failed":
        return thought + "\n" + rng.choice(UNREADABLE).format(v=chosen)
    if as_json:
        listed = list(verdict.labels) if reading.subset and verdict.labels else value
        return json.dumps({"reasoning": thought, "verdict": listed})
    sloppy = rng.random() < temper.sloppy
    return thought + "\n\n" + (rng.choice(READABLE) if sloppy else "VERDICT: {v}").format(v=value)


def _reasoning(verdict: Verdict, temper: Temper, reading: Reading, chosen: str) -> str:
    if reading.failure is not None:
        named = " or ".join(reading.titles[label] for label in verdict.labels)
        return reading.failure.remarks(f"That speaks for {named}." if named else "No class fits.")
    if verdict.status == "abstained":
        return "The text names too little that the criteria speak of, so no stage can be justified."
    seen = perceived(temper, reading)
    runner_up = sorted(reading.stages, key=lambda label: abs(reading.stages[label] - seen))[-1]
    return (
        f"The evidence names {len(reading.cues)} observable indicators of weight {seen:.2f}. "
        f"The criteria of {chosen} are closest to that. Those of {runner_up} are farthest from it."
    )


def confidence(temper: Temper, reading: Reading, rng: random.Random) -> str:
    """The words of a probe's answer."""
    weights = stage_weights(temper, reading)
    share = min(0.85, max(0.05, sum(weights.get(label, 0.0) for label in reading.reviewed)))
    majority = 3 * share**2 - 2 * share**3
    log_odds = math.log(majority / (1 - majority)) + temper.overconfidence + rng.gauss(0, 0.25)
    log_odds += SAME_CONTEXT * reading.same_context
    p = 1 / (1 + math.exp(-log_odds))
    thought = "The criteria of the verdict are compared with those of its neighbours."
    value = f"{100 * p:.0f}%" if rng.random() < temper.sloppy else f"{p:.2f}"
    return f"{thought}\n\nPROBABILITY: {value}"
