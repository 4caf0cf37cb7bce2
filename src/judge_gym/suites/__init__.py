"""Code-generation evals: load a suite, read replies, run them in a sandbox, score, schedule."""

from judge_gym.suites.ablation import CONDITIONS, Condition, Effect, ablate, ablations
from judge_gym.suites.generation import Reply, read_reply, requests
from judge_gym.suites.loading import SHIPPED, CodeTask, Step, Suite, load_suite
from judge_gym.suites.sandbox import Interrupted, Job, Limits, Ran, isolations, run
from judge_gym.suites.schedule import Attempt, Due, due, interval
from judge_gym.suites.scores import Leaderboard, LeaderboardRow, RunScore, run_score
from judge_gym.suites.steps import Bench, bench, check_answers, run_eval, run_reply

__all__ = [
    "CONDITIONS",
    "SHIPPED",
    "Attempt",
    "Bench",
    "CodeTask",
    "Condition",
    "Due",
    "Effect",
    "Interrupted",
    "Job",
    "Leaderboard",
    "LeaderboardRow",
    "Limits",
    "Ran",
    "Reply",
    "RunScore",
    "Step",
    "Suite",
    "ablate",
    "ablations",
    "bench",
    "check_answers",
    "due",
    "interval",
    "isolations",
    "load_suite",
    "read_reply",
    "requests",
    "run",
    "run_eval",
    "run_reply",
    "run_score",
]
