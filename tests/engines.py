"""Puts a lab on an engine whose models a test scripts."""

from judge_gym.engine import Engine
from judge_gym.lab import Lab


def replace_engine(lab: Lab, engine: Engine) -> None:
    """Builds the nouns of a lab again, on the same store and another engine."""
    Lab.__init__(lab, lab.store, engine=engine)
