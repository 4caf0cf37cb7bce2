"""The OpenAI wire format as a server of simulated judges reads and writes it."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.models.simulated import character
from judge_gym.records import Completion, Draw, Message, Request, Role

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
MOST_TOKENS = 2048
"""Of an answer, where the client does not say."""
FINGERPRINT = f"judge-gym-{version('judge-gym')}"


class Refusal(Exception):
    """An answer that is an error object."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"message": message, "type": kind, "param": None, "code": code}
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and the tool that its answer is to be put into; empty where it is a text."""

    request: Request
    tool: str


def read(body: bytes) -> Asked:
    """What a client asks; refused as a provider would where it cannot be answered."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON") from None
    if not isinstance(asked, dict):
        raise Refusal(400, "the body is not a JSON object")
    if asked.get("stream"):
        raise Refusal(400, "simulated judges do not stream; leave 'stream' out or make it false")
    if asked.get("n") not in (None, 1):
        raise Refusal(400, f"'n' is {asked['n']!r}; simulated judges give 1 choice")
    name = asked.get("model")
    if not isinstance(name, str):
        raise Refusal(400, "'model' must be a text such as 'sim:strict'")
    try:
        character(name.removeprefix("sim:"))
    except DesignError as fault:
        raise Refusal(404, fault.message, code="model_not_found") from fault
    tool, schema = _tool(asked)
    return Asked(
        Request(
            model="sim:" + name.removeprefix("sim:"),
            messages=_messages(asked.get("messages")),
            draw=Draw("", _number(asked, "seed") or 0),
            temperature=_number(asked, "temperature", whole=False),
            max_tokens=_most_tokens(asked),
            schema=schema,
        ),
        tool,
    )


def _messages(given: Any) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise Refusal(400, "'messages' must be a list of at least one message")
    made = []
    for message in given:
        role = ROLES.get(str(message.get("role"))) if isinstance(message, dict) else None
        if role is None:
            raise Refusal(400, f"a message has a content and one of the roles {', '.join(ROLES)}")
        parts = message.get("content")
        parts = [{"text": parts}] if isinstance(parts, str) else parts
        listed = parts if isinstance(parts, list) else []
        texts = [part.get("text") for part in listed if isinstance(part, dict)]
        kept = tuple(text for text in texts if isinstance(text, str))
        if not kept or len(kept) < len(listed):
            raise Refusal(400, "the content of a message must be a text, or parts that are texts")
        made.append(Message(role, kept))
    return tuple(made)


def _most_tokens(asked: Mapping[str, Any]) -> int:
    most = _number(asked, "max_completion_tokens", "max_tokens")
    if most is not None and most < 1:
        raise Refusal(400, f"'max_tokens' is {most}; give at least 1")
    return most or MOST_TOKENS


def _number(asked: Mapping[str, Any], *names: str, whole: bool = True) -> Any:
    """The first number that is given under one of the names; None where there is none."""
    for name in names:
        value = asked.get(name)
        kinds = int if whole else (int, float)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
            raise Refusal(400, f"{name!r} is {value!r}; give a {'whole ' if whole else ''}number")
        return value if whole else float(value)
    return None


def _tool(asked: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """The tool, and the schema of the answer, which may come as a response format instead."""
    name, schema = "", None
    try:
        if asked.get("tools"):
            [tool] = asked["tools"]
            name, schema = tool["function"]["name"], tool["function"]["parameters"]
        elif (asked.get("response_format") or {}).get("type") == "json_schema":
            schema = asked["response_format"]["json_schema"]["schema"]
        else:
            return "", None
    except (LookupError, TypeError, ValueError, AttributeError):
        pass
    if not isinstance(name, str) or not isinstance(schema, dict):
        raise Refusal(400, "'response_format' or 'tools' does not hold one JSON Schema")
    return name, schema


def written(made: Completion, name: str, tool: str) -> dict[str, Any]:
    """A completion on the wire, under a name of its own."""
    message: dict[str, Any] = {"role": "assistant", "content": made.text, "refusal": None}
    if made.finish == "refusal":
        message |= {"content": None, "refusal": made.text}
    elif tool:
        called = {"name": tool, "arguments": made.text}
        calls = [{"id": f"call_{name[:24]}", "type": "function", "function": called}]
        message |= {"content": None, "tool_calls": calls}
    finish = "length" if made.finish == "length" else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": f"chatcmpl-{name[:24]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": made.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [choice],
        "usage": {
            "prompt_tokens": made.input_tokens,
            "completion_tokens": made.output_tokens,
            "total_tokens": made.input_tokens + made.output_tokens,
        },
    }
