"""The end of calls that a user asked for."""

from judge_gym.errors import JudgeGymError


class Stopped(JudgeGymError):
    """The user asked to stop; calls in flight have been recorded."""
