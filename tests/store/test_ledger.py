"""The ledger: what is an answer, what is kept, what is shared, what it says was paid."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge_gym.records import Completion, Draw, Finish, Message, Request, Role, storable
from judge_gym.store import Attempt, Payer, Store
from judge_gym.store.tables import attempts, calls, texts
from stores import recorded

PAYER = Payer(1, "study", "study/tag", "scorer")
ARTICLE = "A long article that many requests share. " * 50
BASE = Request(
    model="openai:gpt-5.2",
    messages=(Message("system", ("Be fair.",)), Message("user", ("Judge ", ARTICLE))),
    draw=Draw("7", 2, 0),
    temperature=0.5,
    max_tokens=100,
)


def completion(text: str, finish: Finish = "stop", usd: float | None = 0.25) -> Completion:
    return Completion(text, finish, "gpt-5.2-2026", 10, 4, usd)


def record(
    store: Store,
    request: Request,
    said: Completion | None,
    *,
    error: str | None = None,
    payer: Payer = PAYER,
) -> int:
    return recorded(store, request, payer, said, error).call_id


def rows(store: Store, table: sa.Table) -> int:
    with store.database.begin() as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0)


# --- the key -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, model="google:gpt-5.2"),
        replace(BASE, model="openai:gpt-5.3"),
        replace(BASE, messages=BASE.messages[1:]),
        replace(BASE, messages=(Message("user", ("Be fair.",)), BASE.messages[1])),
        replace(BASE, messages=(BASE.messages[0], Message("user", ("Judge ", ARTICLE + ".")))),
        replace(BASE, temperature=None),
        replace(BASE, temperature=0.0),
        replace(BASE, max_tokens=101),
        replace(BASE, schema={"type": "object"}),
        replace(BASE, draw=Draw("8", 2, 0)),
        replace(BASE, draw=Draw("7", 3, 0)),
        replace(BASE, draw=Draw("7", 2, 1)),
    ],
)
def test_any_difference_in_a_request_makes_another_call(store: Store, other: Request) -> None:
    first, second = record(store, BASE, completion("A")), record(store, other, completion("B"))
    assert first != second
    found = store.ledger.find([BASE.key(), other.key()])
    assert [found[r.key()].call_id for r in (BASE, other)] == [first, second]


def test_the_key_depends_on_the_sent_text_and_not_on_its_parts(store: Store) -> None:
    whole = replace(BASE, messages=(BASE.messages[0], Message("user", (f"Judge {ARTICLE}",))))
    assert record(store, BASE, completion("A")) == record(store, whole, completion("A"))
    assert rows(store, calls) == 1


def test_the_key_includes_the_endpoint_without_its_credentials() -> None:
    plain = BASE.key("https://lab.example/v1")
    assert plain == BASE.key("https://ann:hunter2@lab.example/v1?api_key=hunter2")
    assert plain != BASE.key("https://other.example/v1")
    assert plain != BASE.key("https://lab.example/v2")
    assert plain != BASE.key()


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        completion("Reasons.\nVERDICT: A"),
        completion("I cannot help with that.", "refusal"),
        completion("", "refusal"),
        completion("The evidence shows tha", "length"),
        completion("zzz\x00 no verdict ☃ \N{PILE OF POO}"),
        completion("free", usd=None),
    ],
    ids=["verdict", "refusal", "empty", "truncated", "unreadable", "unpriced"],
)
@pytest.mark.postgres
def test_any_completion_is_the_answer_and_is_reused(store: Store, said: Completion) -> None:
    call_id = record(store, BASE, said)
    found = store.ledger.find([BASE.key()])[BASE.key()]
    assert (found.call_id, found.completion) == (call_id, replace(said, text=storable(said.text)))


@pytest.mark.postgres
def test_an_answer_with_invalid_unicode_is_stored(store: Store) -> None:
    record(store, BASE, completion("Half a surrogate \ud83d came.\nVERDICT: A"))
    found = store.ledger.find([BASE.key()])[BASE.key()].completion
    assert found is not None
    assert found.text.endswith("VERDICT: A")


def test_failed_attempts_are_kept_in_order_and_are_no_answers(store: Store) -> None:
    call_id = record(store, BASE, None, error="overloaded")
    assert record(store, BASE, None, error="timed out") == call_id
    assert store.ledger.find([BASE.key()]) == {}
    before = store.ledger.transcript(call_id)[1]
    record(store, BASE, completion("VERDICT: A"))
    after = store.ledger.transcript(call_id)[1]
    assert after[:2] == before
    assert [(a["completed"], a["error"], a["body"]) for a in after] == [
        (False, "overloaded", None),
        (False, "timed out", None),
        (True, None, "VERDICT: A"),
    ]


@pytest.mark.postgres
def test_a_retried_write_stores_an_attempt_once_and_later_attempts_too(
    store: Store,
) -> None:
    first = Attempt(BASE.key(), BASE, "", PAYER, 0.5, None, "overloaded")
    later = Attempt(BASE.key(), BASE, "", PAYER, 0.5, completion("VERDICT: A"))
    [answer] = store.ledger.record([first])
    store.ledger.record([first, later], retry=True)
    tried = store.ledger.transcript(answer.call_id)[1]
    assert [attempt["error"] for attempt in tried] == ["overloaded", None]


@pytest.mark.postgres
def test_the_latest_completion_is_the_answer_despite_a_later_failure(
    store: Store,
) -> None:
    for said in (completion("first"), completion("second")):
        record(store, BASE, said)
    record(store, BASE, None, error="overloaded")
    found = store.ledger.find([BASE.key()])[BASE.key()]
    assert found.completion == completion("second")
    assert rows(store, attempts) == 3


@pytest.mark.postgres
def test_many_keys_are_found_at_once_and_unknown_ones_are_left_out(store: Store) -> None:
    requests = [replace(BASE, draw=Draw("7", n)) for n in range(700)]
    for number, request in enumerate(requests[:650]):
        record(store, request, completion(str(number)))
    keys = [request.key() for request in requests]
    found = store.ledger.find([*keys, *keys])
    said = {key: answer.completion.text for key, answer in found.items() if answer.completion}
    assert said == {key: str(number) for number, key in enumerate(keys[:650])}


# --- texts and transcripts -----------------------------------------------------------------------


def test_a_text_that_many_calls_share_is_stored_once(store: Store) -> None:
    for number in range(5):
        messages = (BASE.messages[0], Message("user", (ARTICLE, f"\n\nQuestion {number}")))
        record(store, replace(BASE, messages=messages), completion("VERDICT: A"))
    with store.database.begin() as connection:
        bodies = list(connection.scalars(sa.select(texts.c.body)))
    questions = [f"\n\nQuestion {number}" for number in range(5)]
    assert sorted(bodies) == sorted(["Be fair.", ARTICLE, "VERDICT: A", *questions])


def test_an_empty_answer_to_a_question_with_an_empty_part_is_kept(store: Store) -> None:
    empty = replace(BASE, messages=(Message("user", ("", "Judge.")),))
    record(store, empty, None, error="overloaded")
    record(store, empty, completion(""))
    assert store.ledger.find([empty.key()])[empty.key()].completion == completion("")


@pytest.mark.postgres
def test_a_text_whose_transaction_failed_is_stored_the_next_time(store: Store) -> None:
    with suppress(KeyboardInterrupt), store.database.begin() as connection:
        store.ledger.save_text(connection, "VERDICT: A")
        raise KeyboardInterrupt
    record(store, BASE, completion("VERDICT: A"))
    assert store.ledger.find([BASE.key()])[BASE.key()].completion == completion("VERDICT: A")


def test_a_question_whose_recording_failed_is_stored_with_the_next_attempt(store: Store) -> None:
    odd = Attempt(BASE.key(), BASE, "", PAYER, None, completion("x"))  # type: ignore[arg-type]
    with pytest.raises(sa.exc.IntegrityError):
        store.ledger.record([odd])
    call_id = record(store, BASE, completion("VERDICT: A"))
    assert tuple(store.ledger.transcript(call_id)[0]) == BASE.messages


roles: st.SearchStrategy[Role] = st.sampled_from(["system", "user", "assistant"])
messages = st.builds(Message, roles, st.lists(st.text(max_size=12), max_size=4).map(tuple))
KEEPS_ITS_STORE = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@KEEPS_ITS_STORE
@given(st.lists(messages, min_size=1, max_size=4).map(tuple), st.text())
@pytest.mark.postgres
def test_a_transcript_is_exactly_what_was_asked_and_answered(
    store: Store, asked: tuple[Message, ...], said: str
) -> None:
    request = replace(BASE, messages=asked)
    shown, tried = store.ledger.transcript(record(store, request, completion(said)))
    assert [(m.role, m.content) for m in shown] == [(m.role, storable(m.content)) for m in asked]
    assert tried[-1]["body"] == storable(said)


@KEEPS_ITS_STORE
@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_a_call_is_one_row_however_often_it_is_tried(store: Store, drawn: list[int]) -> None:
    before = rows(store, attempts)
    for number in drawn:
        record(store, replace(BASE, draw=Draw("once", number)), completion("x"))
    assert rows(store, attempts) == before + len(drawn)
    with store.database.begin() as connection:
        mine = sa.select(calls.c.draw).where(calls.c.series == "once")
        kept = list(connection.scalars(mine))
    assert len(kept) == len(set(kept))
    assert set(drawn) <= set(kept)


def test_an_unknown_call_has_no_transcript(store: Store) -> None:
    assert store.ledger.transcript(404) == ([], [])


# --- what was paid -------------------------------------------------------------------------------


@pytest.mark.postgres
def test_usage_adds_up_by_experiment_stage_and_model(store: Store) -> None:
    expected: dict[tuple[str, str, str, str], list[float]] = defaultdict(lambda: [0, 0, 0, 0, 0.0])
    number = 0
    for study, tag in (("s", "s/a"), ("s", "s/b"), ("t", "t/a")):
        for stage in ("scorer", "prober"):
            for model in ("openai:gpt-5.2", "sim:strict"):
                for failed in (False, True, False):
                    number += 1
                    request = replace(BASE, model=model, draw=Draw("7", number))
                    said = Completion("x", "stop", model, number, 2 * number, number / 8)
                    record(
                        store,
                        request,
                        None if failed else said,
                        error="down" if failed else None,
                        payer=Payer(1, study, tag, stage),
                    )
                    total = expected[study, tag, stage, model]
                    total[0] += 1
                    if not failed:
                        total[1] += 1
                        total[2] += said.input_tokens
                        total[3] += said.output_tokens
                        total[4] += said.usd or 0
    fields = ("attempts", "calls", "input_tokens", "output_tokens", "usd")
    for asked in (None, "s", "t"):
        found = {
            (u["study"], u["tag"], u["stage"], u["model"]): [u[name] for name in fields]
            for u in store.usage.rows(study=asked)
        }
        assert found == {key: sums for key, sums in expected.items() if asked in (None, key[0])}


def test_what_was_paid_survives_closing_the_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    first = Store.open(url)
    record(first, BASE, completion("A"))
    first.close()
    second = Store.open(url)
    assert second.ledger.find([BASE.key()])[BASE.key()].completion == completion("A")
    second.close()
