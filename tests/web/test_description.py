"""The description of the API, and that the server keeps to it whatever it is asked."""

import copy
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from lab_server import ServedLab, serve_lab

EXAMPLES = 10
UNTRIED = ("/api/events", "/api/windows/search")
"""One has no end, and the other asks servers elsewhere."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("described")) as opened:
        yield opened


@pytest.fixture(scope="module")
def description(lab: ServedLab) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{lab.url}/api/openapi.json", timeout=60).json()
    return found


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, item in description["paths"].items()
        for method, operation in item.items()
    ]


KNOWN: dict[str, list[Any]] = {
    "target": ["pilot", "pilot/strict", "later", "nowhere"],
    "tag": ["pilot", "pilot/strict", "new", "later", "nowhere"],
    "model_id": ["sim:balanced", "sim:strict?x=1", "gpt-5.2"],
    "window_id": [1, 2],
    "id": [1, 2, 10_000],
    "targets": ["pilot", "later", "nowhere"],
}


def with_known_names(description: dict[str, Any]) -> dict[str, Any]:
    """The same description, in which most names in requests are names of something that exists.

    Random names would be answered with 404 and nothing behind that be tried.
    """
    known = copy.deepcopy(description)
    for _, _, operation in operations(known):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in KNOWN:
                values = {"enum": KNOWN[parameter["name"]]}
                is_list = "array" in str(parameter["schema"])
                many = {"type": "array", "items": values, "minItems": 1, "maxItems": 2}
                parameter["schema"] = many if is_list else values
        if "requestBody" in operation:
            [kind] = operation["requestBody"]["content"].values()
            body = known["components"]["schemas"][kind["schema"]["$ref"].rpartition("/")[2]]
            for name in KNOWN.keys() & body["properties"].keys():
                body["properties"][name] = {"enum": KNOWN[name]}
    return known


@pytest.mark.slow
def test_generated_requests_get_only_described_responses(
    lab: ServedLab, description: dict[str, Any]
) -> None:
    import schemathesis  # takes a second, which is lost in all other processes
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.result import Ok
    from schemathesis.specs.openapi import checks as conformance

    checks: list[Any] = [
        not_a_server_error,
        conformance.status_code_conformance,
        conformance.content_type_conformance,
        conformance.response_schema_conformance,
    ]
    schema = schemathesis.openapi.from_dict(with_known_names(description))
    asked = []
    for found in schema.get_all_operations():
        operation: Any = found.ok() if isinstance(found, Ok) else pytest.fail(str(found))
        if operation.path in UNTRIED:
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
            case.call_and_validate(base_url=lab.url, headers=headers, checks=checks, timeout=120)

        conforms()
        asked.append(operation.label)
    assert len(asked) == len(operations(description)) - len(UNTRIED)


def test_every_request_and_response_has_a_schema(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    for method, path, operation in operations(description):
        assert operation["description"], path
        good = [said for status, said in operation["responses"].items() if status < "300"]
        kinds = [kind for said in good for kind in said["content"].values()]
        assert any(kind.get("schema") or kind.get("example") for kind in kinds), (method, path)
        if "requestBody" in operation:
            [kind] = operation["requestBody"]["content"].values()
            assert schemas[kind["schema"]["$ref"].rpartition("/")[2]]["properties"], path


def test_every_error_is_described_in_one_shape(description: dict[str, Any]) -> None:
    for _, path, operation in operations(description):
        faults = {status: said for status, said in operation["responses"].items() if status > "399"}
        if path in ("/api/health", "/api/ready"):
            continue
        assert {"401", "403", "404", "409", "413", "422", "429", "500"} <= faults.keys()
        shapes = {said["content"]["application/json"]["schema"]["$ref"] for said in faults.values()}
        assert shapes == {"#/components/schemas/Error"}


def test_every_resource_but_health_and_readiness_requires_a_token(
    description: dict[str, Any],
) -> None:
    open = [path for _, path, operation in operations(description) if not operation.get("security")]
    assert open == ["/api/health", "/api/ready"]


def test_nothing_is_loaded_from_other_sites(description: dict[str, Any], lab: ServedLab) -> None:
    assert "://" not in str(description).replace("https://judge-gym", "")
    for page in ("/docs", "/redoc"):
        assert lab.ask("GET", page).status_code == 404
