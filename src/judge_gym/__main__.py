"""`python -m judge_gym` is the command line."""

from judge_gym.cli import main

main()
