"""The file says what was asked; nothing is built."""

import tomllib

import pytest


@pytest.fixture
def project(candidate):
    return tomllib.loads(candidate.files["pyproject.toml"])


def test_the_backend_is_hatchling(project):
    assert project["build-system"]["build-backend"] == "hatchling.build"
    assert any(need.startswith("hatchling") for need in project["build-system"]["requires"])


def test_name_version_and_python(project):
    about = project["project"]
    assert (about["name"], about["version"]) == ("tally", "1.2.0")
    assert about["requires-python"].replace(" ", "") == ">=3.11"


def test_dependencies(project):
    [need] = project["project"]["dependencies"]
    assert need.replace(" ", "") in ("rich>=13", "rich>=13.0", "rich>=13.0.0")
    group = project["project"]["optional-dependencies"]["test"]
    assert [need for need in group if need.startswith("pytest")]


def test_the_command(project):
    assert project["project"]["scripts"] == {"tally": "tally.cli:main"}


def test_the_wheel_holds_the_package(project):
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/tally"]
