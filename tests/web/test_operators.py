"""Pages for operators: models, schedule, tokens, labels, queries, the reference of the API."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from documents import parse, text
from judge_gym.store import tables as t
from judge_gym.verbs import VERBS
from lab_server import ServedLab, serve_lab

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("operators")) as opened:
        with opened.lab.store.database.begin() as connection:
            connection.execute(t.tags.update().where(t.tags.c.tag == "pilot").values(study="press"))
        yield opened


def page(lab: ServedLab, path: str) -> Any:
    response = lab.ask("GET", path, headers=HTML)
    assert response.status_code == 200, response.text
    return parse(response.text)


def send(lab: ServedLab, path: str, token: str | None = None, **fields: str) -> Any:
    return lab.ask("POST", path, token, data=fields, headers={**HTML, "HX-Request": "true"})


def test_models_say_which_keys_are_set_and_never_their_values(
    lab: ServedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    rows = {text(row[0]): row for row in page(lab, "/models").iter("tr") if len(row)}
    assert "set" in text(rows["openai"]) and "missing" in text(rows["anthropic"])
    whole = lab.ask("GET", "/models", headers=HTML).text
    assert "sk-very-secret" not in whole
    assert "per million" in whole and "$" in whole


def test_a_model_is_checked_with_one_call_outside_of_the_ledger(lab: ServedLab) -> None:
    before = len(lab.lab.reports.usage())
    assert "works" in send(lab, "/models/check", id="sim:balanced").text
    assert "did not answer" in send(lab, "/models/check", id="sim:balanced?fail=1").text
    assert "unknown provider" in send(lab, "/models/check", id="nobody:model").text
    assert len(lab.lab.reports.usage()) == before


def test_a_token_is_shown_once_used_and_revoked(lab: ServedLab) -> None:
    created = send(lab, "/tokens", name="a visitor", scope="read").text
    [secret] = re.findall("<code>(.*?)</code>", created)
    assert lab.ask("GET", "/api/status", secret).status_code == 200
    assert secret not in lab.ask("GET", "/tokens", headers=HTML).text
    assert "there is a token" in send(lab, "/tokens", name="a visitor", scope="read").text
    assert "unknown scope" in send(lab, "/tokens", name="other", scope="all").text
    send(lab, "/tokens/revoked", name="a visitor")
    assert lab.ask("GET", "/api/status", secret).status_code == 401


@pytest.mark.parametrize("path", ["/tokens", "/tokens/revoked", "/models/check", "/labels/press"])
def test_a_token_that_may_only_read_changes_and_pays_nothing(lab: ServedLab, path: str) -> None:
    assert send(lab, path, lab.read, name="x", id="sim:balanced").status_code == 403
    assert send(lab, path, "", name="x", id="sim:balanced").status_code == 401


def test_labels_are_counted_imported_and_refused(lab: ServedLab) -> None:
    item = lab.lab.experiments.list_items("press")[0]["evidence"]
    path = "/labels/press"
    labelled = send(lab, path, labels=f"item;rater;stage\n{item};ann;1").text
    assert "1 new, 0 changed" in labelled and "ann" in labelled
    assert "stage is missing" in send(lab, path, labels=f"item,rater\n{item},ann").text
    changed = send(lab, path, labels=f"item,rater,stage\n{item},ann,2").text
    assert "nothing was imported" in changed
    replaced = send(lab, path, labels=f"item,rater,stage\n{item},ann,2", replace="1").text
    assert "0 new, 1 changed" in replaced
    assert text(page(lab, "/labels?study=press")).count("ann") == 1


def test_a_query_shows_rows_or_why_it_is_refused(lab: ServedLab) -> None:
    shown = page(lab, "/query?sql=SELECT+6*7+AS+answer")
    assert "answer 42" in " ".join(text(shown).split())
    assert "tokens" not in [text(one) for one in shown.iter("code")], "secrets cannot be read"
    refused = text(page(lab, "/query?sql=DELETE+FROM+samples"))
    assert "SELECT" in refused
    assert lab.lab.experiments.list_samples("pilot")


def test_the_reference_names_every_verb_and_loads_nothing_from_elsewhere(lab: ServedLab) -> None:
    shown = page(lab, "/reference")
    addresses = [text(one) for one in shown.iter("code")]
    assert {f"/api{verb.path}" for verb in VERBS} <= {*addresses}
    links = [str(one.get("src") or one.get("href")) for one in shown.iter() if one.get("src")]
    assert not [link for link in links if link.startswith("http")]


def test_a_schedule_without_runs_says_how_to_begin(lab: ServedLab) -> None:
    assert "judge-gym schedule --write" in text(page(lab, "/schedule"))
