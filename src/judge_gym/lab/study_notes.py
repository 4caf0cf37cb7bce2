"""Says what a user should know about a study before it is run: its models, and their texts."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from judge_gym.axes import Design
from judge_gym.errors import DesignError
from judge_gym.models import Registry
from judge_gym.records import Pool
from judge_gym.studies import Study, Sweep

FIRST_ITEMS = 100
"""Items of a pool of which it is checked whether simulated judges can read them."""


def unreadable_to_simulated(
    study: Study, pools: Mapping[str, Pool], models: Registry
) -> Iterator[str]:
    """Yields a warning on pools whose texts simulated judges cannot read."""
    if not any(models.card(judge).simulated for judge in study.judges):
        return
    from judge_gym.models.simulated.lexicon import strains

    for name, pool in pools.items():
        texts = [item.text for item in pool.items[:FIRST_ITEMS] if not pool.paired]
        unread = sum(not strains(text) for text in texts)
        if unread > len(texts) / 2:
            yield (
                f"simulated judges know few words: they can read nothing in {unread} of "
                f"{len(texts)} items of {name!r}, and will abstain on most; a real model, such "
                "as local:smollm2, reads any text"
            )


def simulated_judges(judges: Iterable[str], models: Registry) -> list[str]:
    """Names the simulated judges in a note."""
    names = [judge for judge in judges if models.card(judge).simulated]
    return [f"simulated, not real models: {', '.join(names)}"] if names else []


def model_warnings(designs: Iterable[Design], models: Registry) -> list[str]:
    """Warns of models without a fixed version or near their end, and of settings not sent."""
    notes: dict[str, None] = {}
    today = datetime.now(UTC).date()
    for design in designs:
        rubric = design.rubric.resolve(design.judge.model)
        roles = (design.judge.model, design.evidence.resolve().editor, rubric.author, rubric.critic)
        cards = [models.card(model) for model in roles if model is not None]
        if coders := [card.id for card in cards if card.simulated and card.searches]:
            raise DesignError(
                f"{coders[0]} is a simulated coder: it writes code and judges nothing"
            )
        notes |= {card.unpinned: None for card in cards if card.unpinned}
        notes |= {note: None for card in cards if (note := card.retirement(today))}
        if design.judge.temperature is not None and not cards[0].takes_temperature:
            notes[f"judge.temperature is not sent to {cards[0].id}, which takes none"] = None
    return list(notes)


def same_family(study: Study, sweep: Sweep, models: Registry) -> list[str]:
    """Warns of editors and critics of a judge's family."""
    judges = {models.card(judge).family: judge for judge in study.judges}
    roles = {
        (role, model)
        for design in (experiment.design for experiment in sweep.experiments)
        for role, model in (
            ("evidence.editor", design.evidence.resolve().editor),
            ("rubric.critic", design.rubric.resolve(design.judge.model).critic),
        )
        if model is not None
    }
    families = [(role, model, models.card(model).family) for role, model in sorted(roles)]
    return [
        f"{role} {model} is of the family of the judge {judges[family]}"
        for role, model, family in families
        if family in judges
    ]
