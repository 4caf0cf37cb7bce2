"""Code-generation evals: load a suite, read replies, run them in a sandbox, score, schedule."""

from judge_gym.suites.ablation import CONDITIONS, Condition, Effect, ablate, ablations
from judge_gym.suites.generation import own_guidelines, read_reply, requests
from judge_gym.suites.loader import SHIPPED, CodeTask, Step, Suite, WrongAnswer, load_suite
from judge_gym.suites.sandbox import Interrupted, Job, Limits, isolations, run
from judge_gym.suites.schedule import Attempt, due, interval
from judge_gym.suites.scores import RunScore, leaderboard, run_score
from judge_gym.suites.selection import select
from judge_gym.suites.steps import (
    AnswerCheck,
    Sandbox,
    check_answers,
    open_sandbox,
    run_eval,
    run_reply,
)

__all__ = [
    "CONDITIONS",
    "SHIPPED",
    "AnswerCheck",
    "Attempt",
    "CodeTask",
    "Condition",
    "Effect",
    "Interrupted",
    "Job",
    "Limits",
    "RunScore",
    "Sandbox",
    "Step",
    "Suite",
    "WrongAnswer",
    "ablate",
    "ablations",
    "check_answers",
    "due",
    "interval",
    "isolations",
    "leaderboard",
    "load_suite",
    "open_sandbox",
    "own_guidelines",
    "read_reply",
    "requests",
    "run",
    "run_eval",
    "run_reply",
    "run_score",
    "select",
]
