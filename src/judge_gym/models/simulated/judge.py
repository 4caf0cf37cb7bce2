"""The latent-trait judge: the exact distribution of its verdicts, and the text of its answers."""

import json
import math
import random
from collections.abc import Mapping

from judge_gym.models.simulated.profiles import JudgeProfile
from judge_gym.models.simulated.prompts import Reading
from judge_gym.records import Verdict

FAMILY_SHIFT = 0.35
"""The shift of perceived strain by a bias of 1 on a fully contested concept."""
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


def verdicts(profile: JudgeProfile, reading: Reading) -> dict[Verdict, float]:
    """Returns the exact distribution of the verdicts read from a judge's answers."""
    gates: list[tuple[Verdict, float]] = [
        (Verdict("provider_error"), profile.fail),
        (Verdict("refused"), profile.refuse * reading.contested),
        (Verdict("truncated"), profile.truncate),
        (Verdict("parse_failed"), profile.garble),
        (Verdict("abstained"), abstention(profile, reading)),
    ]
    distribution: dict[Verdict, float] = {}
    left = 1.0
    for verdict, share in gates:
        distribution[verdict] = left * share
        left *= 1 - share
    for labels, share in _choices(profile, reading).items():
        distribution[Verdict("scored", labels)] = left * share
    return {verdict: share for verdict, share in distribution.items() if share > 0}


def abstention(profile: JudgeProfile, reading: Reading) -> float:
    """Returns the share of abstentions: high where the text has few cues that a judge can read."""
    if not reading.may_abstain or profile.abstain == 0 or reading.pair:
        return 0.0
    information = 1 - math.exp(-len(reading.cues) / 2)
    return 1 / (1 + math.exp(GATE_STEEPNESS * (information - profile.abstain)))


def perceived(profile: JudgeProfile, reading: Reading) -> float:
    """Returns the strain that the judge perceives; of a pair, the lead of the first response."""
    if reading.pair:
        return reading.lead
    cues = reading.cues
    strain = sum(cues) / len(cues) if cues else 0.5
    shift = FAMILY_SHIFT * profile.bias * reading.contested + profile.tone * reading.tones
    return min(1.0, max(0.0, strain + shift))


def stage_weights(profile: JudgeProfile, reading: Reading) -> dict[str, float]:
    """Returns the probability of each displayed stage in a single verdict."""
    x = perceived(profile, reading)
    labels = list(reading.stages)
    logits = {
        label: -((x - strain) ** 2) / (2 * profile.noise**2)
        + profile.position * (strain == 1.0 if reading.pair else label == labels[0])
        + profile.label * (label == min(labels))
        for label, strain in reading.stages.items()
    }
    top = max(logits.values())
    weights = {label: math.exp(logit - top) for label, logit in logits.items()}
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def _choices(profile: JudgeProfile, reading: Reading) -> dict[tuple[str, ...], float]:
    """Returns the probability of each choice; a subset is an anchor and all close rivals."""
    weights = stage_weights(profile, reading)
    if not reading.subset:
        return {(label,): share for label, share in weights.items()}
    floor = (1 - profile.width) * max(weights.values())
    near = {label for label, share in weights.items() if share >= floor}
    choices: dict[tuple[str, ...], float] = {}
    for anchor, share in weights.items():
        labels = tuple(label for label in weights if label in near | {anchor})
        choices[labels] = choices.get(labels, 0.0) + share
    return choices


def draw(distribution: Mapping[Verdict, float], rng: random.Random) -> Verdict:
    """Draws one verdict."""
    return rng.choices(list(distribution), weights=list(distribution.values()))[0]


def answer(
    verdict: Verdict, profile: JudgeProfile, reading: Reading, rng: random.Random, as_json: bool
) -> str:
    """Returns the text of a scoring answer."""
    best = max(reading.stages, key=lambda label: stage_weights(profile, reading)[label])
    labels = ", ".join(verdict.labels) or best
    thought = _reasoning(verdict, profile, reading, labels)
    if verdict.status == "refused":
        return "I can't help with judging this material."
    if verdict.status == "truncated":
        return thought[: rng.randrange(20, len(thought))]
    value = "ABSTAIN" if verdict.status == "abstained" else labels
    if reading.own_key is not None:
        return _own_answer(
            reading.own_key, thought, "" if verdict.status == "parse_failed" else value
        )
    if verdict.status == "parse_failed":
        return thought + "\n" + rng.choice(UNREADABLE).format(v=labels)
    if as_json:
        listed = list(verdict.labels) if reading.subset and verdict.labels else value
        return json.dumps({"reasoning": thought, "verdict": listed})
    sloppy = rng.random() < profile.sloppy
    return thought + "\n\n" + (rng.choice(READABLE) if sloppy else "VERDICT: {v}").format(v=value)


def _own_answer(key: str, thought: str, value: str) -> str:
    """Returns the text of an answer to a prompt of a study's own; without a value it is unclear."""
    if key:
        return json.dumps({"reasoning": thought, **({key: value} if value else {})})
    return f"{thought}\n\n{value}".rstrip()


def _reasoning(verdict: Verdict, profile: JudgeProfile, reading: Reading, chosen: str) -> str:
    if reading.failure is not None:
        named = " or ".join(reading.titles[label] for label in verdict.labels)
        return reading.failure.remarks(f"That speaks for {named}." if named else "No class fits.")
    if verdict.status == "abstained":
        return "The text names too little that the criteria speak of, so no stage can be justified."
    seen = perceived(profile, reading)
    runner_up = sorted(reading.stages, key=lambda label: abs(reading.stages[label] - seen))[-1]
    return (
        f"The evidence names {len(reading.cues)} observable indicators of weight {seen:.2f}. "
        f"The criteria of {chosen} are closest to that. Those of {runner_up} are farthest from it."
    )


def confidence(profile: JudgeProfile, reading: Reading, rng: random.Random) -> str:
    """Returns the text of a probe's answer."""
    weights = stage_weights(profile, reading)
    share = min(0.85, max(0.05, sum(weights.get(label, 0.0) for label in reading.reviewed)))
    majority = 3 * share**2 - 2 * share**3
    log_odds = math.log(majority / (1 - majority)) + profile.overconfidence + rng.gauss(0, 0.25)
    log_odds += SAME_CONTEXT * reading.same_context
    p = 1 / (1 + math.exp(-log_odds))
    thought = "The criteria of the verdict are compared with those of its neighbours."
    value = f"{100 * p:.0f}%" if rng.random() < profile.sloppy else f"{p:.2f}"
    return f"{thought}\n\nPROBABILITY: {value}"
