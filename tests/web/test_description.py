"""The description of the API, and that the server keeps to it whatever it is asked."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from served import Served, served

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 20
ENDLESS = "/api/events"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("described")) as opened:
        yield opened


@pytest.fixture(scope="module")
def description(lab: Served) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{lab.url}/api/openapi.json").json()
    return found


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, item in description["paths"].items()
        for method, operation in item.items()
    ]


KNOWN: dict[str, list[Any]] = {
    "target": ["pilot", "pilot/strict", "later", "nowhere"],
    "tag": ["pilot/strict", "later", "nowhere"],
    "experiment_tag": ["pilot", "new", "later"],
    "model_id": ["sim:balanced", "sim:strict?x=1", "gpt-4.1"],
    "window_id": [1, 2],
    "id": [1, 2, 10_000],
}


def with_known_names(part: Any) -> Any:
    """The same description, in which whatever names something names what is there, mostly.

    Random names would be answered with 404 and nothing behind that be tried.
    """
    if isinstance(part, list):
        return [with_known_names(one) for one in part]
    if not isinstance(part, dict):
        return part
    made = {key: with_known_names(value) for key, value in part.items()}
    if "in" in made and made["name"] in KNOWN:
        one = {"enum": KNOWN[made["name"]]}
        is_list = "array" in str(made["schema"])
        made["schema"] = {"type": "array", "items": one, "maxItems": 2} if is_list else one
    for name, values in KNOWN.items():
        properties = made.get("properties")
        if isinstance(properties, dict) and name in properties:
            properties[name] = {"enum": values}
    return made


def test_no_generated_request_is_answered_with_what_is_not_described(
    lab: Served, description: dict[str, Any]
) -> None:
    schema = schemathesis.openapi.from_dict(with_known_names(description))
    asked = []
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path == ENDLESS:
            continue

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def conforms(case: Any) -> None:
            headers = {"Authorization": f"Bearer {lab.local}"}
            case.call_and_validate(base_url=lab.url, headers=headers, checks=CHECKS)

        conforms()
        asked.append(operation.label)
    assert len(asked) == len(operations(description)) - 1
