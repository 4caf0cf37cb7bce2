"""Reads and writes the OpenAI wire format for the server of simulated judges."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.models.simulated import profile
from judge_gym.records import Completion, Draw, Message, Request, Role

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
MAX_TOKENS = 2048
"""The longest answer, unless the client sets it."""
FINGERPRINT = f"judge-gym-{version('judge-gym')}"


class Refusal(Exception):
    """An error that is answered with an error object."""

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
class ChatRequest:
    """A request, and the tool whose arguments its answer becomes; empty for a text."""

    request: Request
    tool: str


def read_request(body: bytes) -> ChatRequest:
    """Reads the body of a request; refuses one as a provider would."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON") from None
    if not isinstance(fields, dict):
        raise Refusal(400, "the body is not a JSON object")
    if fields.get("stream"):
        raise Refusal(400, "simulated judges do not stream; set 'stream' to false")
    if fields.get("n") not in (None, 1):
        raise Refusal(400, f"'n' is {fields['n']!r}; simulated judges give 1 choice")
    name = fields.get("model")
    if not isinstance(name, str):
        raise Refusal(400, "'model' must be a text such as 'sim:strict'")
    try:
        profile(name.removeprefix("sim:"))
    except DesignError as error:
        raise Refusal(404, error.message, code="model_not_found") from error
    tool, schema = _tool(fields)
    return ChatRequest(
        Request(
            model="sim:" + name.removeprefix("sim:"),
            messages=_messages(fields.get("messages")),
            draw=Draw("", _number(fields, "seed") or 0),
            temperature=_number(fields, "temperature", whole=False),
            max_tokens=_most_tokens(fields),
            schema=schema,
        ),
        tool,
    )


def _messages(given: Any) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise Refusal(400, "'messages' must be a list of at least one message")
    messages = []
    for message in given:
        role = ROLES.get(str(message.get("role"))) if isinstance(message, dict) else None
        if role is None:
            raise Refusal(400, f"a message has a content and one of the roles {', '.join(ROLES)}")
        parts = message.get("content")
        parts = [{"text": parts}] if isinstance(parts, str) else parts
        listed = parts if isinstance(parts, list) else []
        texts = [part.get("text") for part in listed if isinstance(part, dict)]
        strings = tuple(text for text in texts if isinstance(text, str))
        if not strings or len(strings) < len(listed):
            raise Refusal(400, "the content of a message must be a text, or parts that are texts")
        messages.append(Message(role, strings))
    return tuple(messages)


def _most_tokens(asked: Mapping[str, Any]) -> int:
    most = _number(asked, "max_completion_tokens", "max_tokens")
    if most is not None and most < 1:
        raise Refusal(400, f"'max_tokens' is {most}; give at least 1")
    return most or MAX_TOKENS


def _number(asked: Mapping[str, Any], *names: str, whole: bool = True) -> Any:
    """Returns the first number under one of the names; None without any."""
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
    """Returns the tool, and the schema of the answer, which a response format may give instead."""
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
        raise Refusal(400, "'response_format' or 'tools' does not contain one JSON Schema")
    return name, schema


def write_completion(completion: Completion, name: str, tool: str) -> dict[str, Any]:
    """Returns the body of an answer, with an id made of a name."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.text, "refusal": None}
    if completion.finish == "refusal":
        message |= {"content": None, "refusal": completion.text}
    elif tool:
        called = {"name": tool, "arguments": completion.text}
        calls = [{"id": f"call_{name[:24]}", "type": "function", "function": called}]
        message |= {"content": None, "tool_calls": calls}
    finish = "length" if completion.finish == "length" else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": f"chatcmpl-{name[:24]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": completion.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [choice],
        "usage": {
            "prompt_tokens": completion.input_tokens,
            "completion_tokens": completion.output_tokens,
            "total_tokens": completion.input_tokens + completion.output_tokens,
        },
    }
