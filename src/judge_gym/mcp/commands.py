"""Turns the commands that messages name into the calls that an agent makes instead.

A message has the same text on every face; only the command in it differs.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple


class Call(NamedTuple):
    """The call that does what a command does."""

    tool: str
    argument: str = ""
    """The name of the command's first argument."""
    given: str = ""
    """Further arguments that it always has, as JSON without braces."""


CALLS: Mapping[str, Call] = {
    "status": Call("runs_status", "target"),
    "plan": Call("runs_plan", "target"),
    "run": Call("runs_start", "target"),
    "resume": Call("runs_resume", "target"),
    "retry": Call("runs_retry", "target"),
    "pause": Call("runs_pause", "target"),
    "evidence": Call("runs_start", "target", '"workflows": ["evidence"]'),
    "rubric": Call("runs_start", "target", '"workflows": ["rubric"]'),
    "evidence make": Call("runs_start_evidence", "tag"),
    "evidence list": Call("evidence_list_windows"),
    "evidence show": Call("evidence_show", "id"),
    "evidence add": Call("evidence_load", "window_id"),
    "pool freeze": Call("evidence_freeze_pool", "name"),
    "cleanup": Call("experiments_cleanup", "tag"),
    "answers": Call("experiments_list_answers", "target"),
    "export": Call("experiments_export_csv"),
    "report": Call("reports_show", "target"),
    "judges": Call("reports_judges", "target"),
    "labels import": Call("labels_add"),
    "labels split": Call("labels_split", "study"),
    "init": Call("experiments_template"),
    "suite runs": Call("suites_list_runs"),
    "suite show": Call("suites_show_run", "run"),
    "suite failed": Call("suites_list_failed", "run"),
    "analyze": Call("failures_start", "run"),
}
FOR_USERS = ("worker", "db", "token", "ledger", "lab", "models", "schedule", "check", "import")
"""Commands that no call replaces: the user has to run them."""
NAMES = {"window": "window_id", "from": "rivals", "set": "overrides", "judge": "judges"}
"""Options whose argument has another name."""
_WORDS = "|".join(sorted((*CALLS, *FOR_USERS), key=len, reverse=True))
_QUOTED = re.compile(rf"'judge-gym ({_WORDS})((?: [^']*)?)'")
_BARE = re.compile(rf"(?<![\w'`-])judge-gym ({_WORDS})\b(?! is\b)")
_OPTION = re.compile(r"'judge-gym [^']*'|(?<![\w-])--([a-z][a-z-]+)")


def for_agents(message: str) -> str:
    """Returns a message in which calls stand for commands and options.

    >>> for_agents("raise it with 'judge-gym resume pilot --budget usd=LIMIT'")
    'raise it with runs_resume {"target": "pilot", "budget": {"usd": "LIMIT"}}'
    >>> for_agents("there is no suite run 9; see judge-gym suite runs")
    'there is no suite run 9; see suites_list_runs'
    """
    if "judge-gym" not in message and "--" not in message:
        return message
    message = _QUOTED.sub(lambda match: _call(match[1], match[2]), message)
    message = _BARE.sub(lambda match: _call(match[1], ""), message)
    return _OPTION.sub(lambda match: _argument(match[1]) if match[1] else match[0], message)


def _call(command: str, words: str) -> str:
    if command not in CALLS:
        return f"'judge-gym {command}{words}' (which the user runs)"
    call, flag = CALLS[command], ""
    arguments: dict[str, Any] = {}
    for word in shlex.split(words):
        if word.startswith("--"):
            flag = word
            arguments[_argument(word[2:])] = True
        elif flag:
            name, equals, value = word.partition("=")
            arguments[_argument(flag[2:])] = {name: value} if equals else word
            flag = ""
        elif call.argument:
            arguments[call.argument] = word
    parts = [json.dumps(arguments, ensure_ascii=False)[1:-1], call.given]
    given = ", ".join(filter(None, parts))
    return f"{call.tool} {{{given}}}" if given else call.tool


def _argument(option: str) -> str:
    return NAMES.get(option, option.replace("-", "_"))
