"""The words that simulated judges read, against the texts that were written for them."""

import json
from importlib.resources import files
from statistics import fmean
from typing import Any

import pytest

from judge_gym.models.simulated.lexicon import (
    SOFTWARE,
    STRAIN,
    TONE,
    contested,
    strains,
    tones,
    upright,
    without_tone,
)
from tables import each_row

POOLS = ("valdoria", "norvessa", "norvessa_calm", "reviews")
ITEMS: dict[str, dict[str, Any]] = {
    f"{pool}-{number}": json.loads(line)
    for pool in POOLS
    for number, line in enumerate(
        (files("judge_gym.demo") / f"{pool}.jsonl").read_text(encoding="utf-8").splitlines(), 1
    )
}


@each_row("name", ITEMS)
def test_the_latent_value_of_a_demo_item_can_be_read_off_its_text(name: str) -> None:
    item = ITEMS[name]
    cues = strains(item["text"])
    assert cues, "a demo text without a cue says nothing to a simulated judge"
    assert fmean(cues) == pytest.approx(item["metadata"]["latent"], abs=0.1)


@each_row("name", ITEMS)
def test_taking_the_tone_out_leaves_every_cue(name: str) -> None:
    text = ITEMS[name]["text"]
    neutral = without_tone(text)
    assert strains(neutral) == strains(text)
    assert tones(neutral) == 0


def test_some_demo_texts_carry_tone() -> None:
    assert sum(tones(item["text"]) > 0 for item in ITEMS.values()) >= 5


def test_strain_runs_from_order_to_the_gravest_and_covers_what_lies_between() -> None:
    assert all(0 <= strain <= 1 for strain in STRAIN.values())
    fifths = {min(4, int(5 * strain)) for strain in STRAIN.values()}
    assert fifths == {0, 1, 2, 3, 4}


def test_a_word_is_of_one_kind_only() -> None:
    assert SOFTWARE <= STRAIN.keys()
    assert not STRAIN.keys() & set(TONE)
    assert all(strains(word) == () for word in TONE)
    assert all(tones(word) == 0 for word in STRAIN)


@each_row("cue", STRAIN)
def test_a_cue_is_read_as_itself_in_any_case_and_not_inside_a_word(cue: str) -> None:
    assert strains(f"They said: {cue.upper()}!") == (STRAIN[cue],)
    assert strains(f"x{cue}x") == ()


def test_cues_come_in_reading_order_with_repeats() -> None:
    text = "Fined, then banned; fined again."
    assert strains(text) == (STRAIN["fined"], STRAIN["banned"], STRAIN["fined"])


def test_concepts_are_contested_in_the_order_of_the_demo() -> None:
    concepts = ("fascism", "democratic backsliding", "democracy quality")
    most, some, least = (contested(f'the degree of "{concept.title()}"') for concept in concepts)
    assert 1 >= most > some > least > 0


def test_an_unknown_concept_is_neither_wholly_contested_nor_plain() -> None:
    assert 0 < contested("clarity of prose") < 1


@pytest.mark.parametrize(
    ("concept", "virtue"),
    [
        ("democracy quality", True),
        ("Judicial Independence", True),
        ("press freedom", True),
        ("fascism", False),
        ("review severity", False),
    ],
)
def test_a_virtue_is_known_by_its_name(concept: str, virtue: bool) -> None:
    assert upright(concept) is virtue
