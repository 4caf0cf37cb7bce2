"""A judge's own prompt and items with named parts, the whole path: plan, run, replay, report."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
import yaml

from conftest import Call, Scripted, succeed
from engines import replace_engine
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.engine import Engine
from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab import Lab
from judge_gym.records import (
    Completion,
    Draw,
    Evidence,
    Message,
    Pool,
    Request,
    content_hash,
    render_fields,
)
from judge_gym.records.requests import Item
from judge_gym.store import Payer, Store, export_ledger, import_ledger
from judge_gym.web import serve
from stores import blank, recorded

ITEMS = [
    {"input": "It crashed.", "output": "These are the exact steps.", "reference": "Steps."},
    {"input": "It is slow.", "output": "That is your own fault.", "reference": "An apology."},
    {"input": "Where is it?", "output": "It was refunded, here is how.", "reference": "A place."},
]
RUBRIC = {
    "kind": "ordinal",
    "stages": [
        {"label": "not helpful", "criteria": ['says "your own fault" or "cannot help"']},
        {"label": "helpful", "criteria": ['gives the "exact steps" or says "here is how"']},
    ],
}
PROMPT = """---
read: last line
---
Question: {input}
Reply: {output}

{rubric}

Write one of {labels} on the last line, or ABSTAIN.
"""
GRADE = """---
read: json: grade
labels: {PASS: helpful, FAIL: not helpful}
---
{output}

Answer in JSON: {"why": "...", "grade": "PASS" or "FAIL"}
"""


def write(folder: Path, **changes: Any) -> Path:
    lines = "\n".join(json.dumps(item) for item in ITEMS)
    (folder / "items.jsonl").write_text(lines)
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    (folder / "judge.md").write_text(PROMPT)
    (folder / "grade.md").write_text(GRADE)
    study = {
        "study": "own",
        "samples": 1,
        "probe": False,
        "evidence": {"replies": {"files": "items.jsonl"}},
        "tasks": [{"concept": "helpfulness", "evidence": "replies", "rubric": "rubric.json"}],
        "judges": ["sim:balanced"],
        **changes,
    }
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return path


def answers(lab: Lab, path: Path, said: Mapping[str, str]) -> list[Request]:
    """Runs a study whose judge answers by words in its prompt; what it was asked."""

    def answer(request: Request) -> str:
        prompt = request.messages[-1].content
        return next(reply for word, reply in said.items() if word in prompt)

    models = Scripted(answer)
    replace_engine(lab, Engine(lab.store, models))
    assert lab.runs.run(path).status == "complete"
    return models.asked


def test_ours_and_theirs_are_one_study_and_points_without_an_effect_fold(
    lab: Lab, tmp_path: Path
) -> None:
    vary = {
        "prompt.template": ["none", "judge.md", "grade.md"],
        "verdict.method": ["single", "subset"],
        "evidence.fields": ["all", ["output", "input"]],
    }
    path = write(tmp_path, vary=vary)
    prepared = lab.studies.prepare(path)
    # Of ours 2 x 2 points, of theirs one each.
    assert len(prepared.sweep.experiments) == 6 and len(prepared.sweep.duplicates) == 6
    assert lab.runs.run(path).status == "complete"
    rows = lab.experiments.exported_samples("own")
    assert (rows["status"] == "scored").mean() > 0.8, rows["status"].value_counts()
    levels = sorted(set(rows["prompt.template"]))
    digests = {content_hash(text)[:12] for text in (PROMPT, GRADE)}
    assert {level.partition("~")[2] for level in levels} == {"", *digests}
    theirs = rows[(rows["prompt.template"] != "none") & (rows["status"] == "scored")]
    judged = theirs.set_index("evidence_title")["stages"]
    assert set(judged["items 1"]) == {"2"} and set(judged["items 2"]) == {"1"}
    assert set(rows["verdict_line"][rows["prompt.template"].str.startswith("grade")]) <= {
        "PASS",
        "FAIL",
    }


def test_each_status_of_an_answer_is_kept(lab: Lab, tmp_path: Path) -> None:
    path = write(tmp_path, design={"prompt.template": "judge.md"})
    said = {"crashed": "Good.\n**Helpful**", "slow": "abstain", "Where": "I like it."}
    asked = answers(lab, path, said)
    rows = lab.experiments.exported_samples("own").set_index("evidence_title")
    assert dict(rows["status"]) == {
        "items 1": "scored",
        "items 2": "abstained",
        "items 3": "parse_failed",
    }
    assert rows["verdict_line"].tolist() == ["**Helpful**", "abstain", "I like it."]
    assert [len(request.messages) for request in asked] == [1, 1, 1]
    assert asked[0].messages[0].content.startswith("Question: It crashed.\nReply: These are")


def test_only_the_text_of_a_prompt_makes_an_experiment(lab: Lab, tmp_path: Path) -> None:
    def digest(file: str, text: str) -> str:
        path = write(tmp_path, design={"prompt.template": file})
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
        [experiment] = lab.studies.prepare(path).sweep.experiments
        return experiment.digest

    first = digest("judge.md", PROMPT)
    assert digest("prompts/renamed.md", PROMPT) == first
    assert digest("judge.md", PROMPT.replace("\n", "\r\n")) == first
    assert digest("judge.md", PROMPT + "Be strict.") != first


def test_a_run_goes_on_and_is_read_again_without_the_file(lab: Lab, tmp_path: Path) -> None:
    path = write(tmp_path, design={"prompt.template": "judge.md"})
    assert lab.runs.run(path).status == "complete"
    (tmp_path / "judge.md").unlink()
    [tag] = [row["tag"] for row in lab.studies.find("own")]
    assert lab.runs.run("own", samples=2).status == "complete"
    assert len(lab.experiments.list_samples(tag)) == 2 * len(ITEMS)
    assert not lab.runs.reparse("own")["changes"]
    assert lab.studies.find(str(path)) == lab.studies.find("own")
    prompts = {call["messages"][-1][1] for call in _calls(lab)}
    assert all(prompt.startswith("Question: ") for prompt in prompts)
    with pytest.raises(DesignError, match=r":\d+: design.prompt.template: there is no file"):
        lab.runs.plan(path)


def _calls(lab: Lab) -> list[dict[str, Any]]:
    rows = [lab.pages.transcript(id) for id in range(1, 2 * len(ITEMS) + 1)]
    return [{"messages": [(m.role, m.content) for m in messages]} for messages, _ in rows]


def test_a_plan_says_what_is_missing_in_a_prompt(call: Call, tmp_path: Path) -> None:
    path = write(tmp_path, vary={"prompt.template": ["none", "grade.md"]})
    said = " ".join(succeed(call("plan", path)).err.split())
    assert "note: grade.md names no way to abstain" in said
    (tmp_path / "grade.md").write_text(GRADE.replace("grade", "mark", 1).replace("FAIL", "BAD", 1))
    said = " ".join(succeed(call("plan", path)).err.split())
    assert "grade.md does not name the label 'not helpful'" in said
    assert "grade.md does not name the JSON key 'mark'" in said


REFUSED = [
    ({"prompt.template": "gone.md"}, "design.prompt.template: there is no file gone.md"),
    ({"evidence.fields": "context"}, "unknown named part 'context' for evidence.fields; choose"),
    ({"evidence.fields": "inptu"}, "evidence.fields cannot be 'inptu'; it takes all, or names"),
]


@pytest.mark.parametrize(("design", "says"), REFUSED)
def test_what_cannot_be_shown_is_refused_with_its_line(
    lab: Lab, tmp_path: Path, design: dict[str, Any], says: str
) -> None:
    path = write(tmp_path, design=design)
    with pytest.raises(DesignError) as refusal:
        lab.runs.plan(path)
    assert says in refusal.value.message.replace(f"{tmp_path}/", "")
    assert refusal.value.message.startswith(f"{path}:")
    assert lab.store.experiments.rows() == []


def test_a_prompt_with_an_unknown_placeholder_is_refused_with_its_line(
    lab: Lab, tmp_path: Path
) -> None:
    path = write(tmp_path, vary={"prompt.template": ["none", "judge.md"]})
    (tmp_path / "judge.md").write_text("---\nread: last line\n---\n{context}")
    with pytest.raises(DesignError, match=rf"^{path}:\d+: judge.md: these items have no context"):
        lab.runs.plan(path)


def test_an_item_without_any_of_the_parts_is_refused(lab: Lab, tmp_path: Path) -> None:
    path = write(tmp_path, design={"evidence.fields": "reference"})
    with (tmp_path / "items.jsonl").open("a") as file:
        file.write('\n{"title": "bare", "output": "Nothing else."}')
    with pytest.raises(DesignError, match="'bare' has none of these parts"):
        lab.runs.plan(path)


def test_texts_without_parts_refuse_the_knob(lab: Lab, tmp_path: Path) -> None:
    path = write(tmp_path, design={"evidence.fields": "output"})
    (tmp_path / "items.jsonl").write_text('{"text": "A text."}')
    with pytest.raises(DesignError, match=r"evidence.fields has no effect on any task"):
        lab.runs.plan(path)


def test_a_declared_contrast_compares_ours_and_theirs(lab: Lab, tmp_path: Path) -> None:
    contrast = {"knob": "prompt.template", "level": "judge.md", "base": "none"}
    vary = {"prompt.template": ["none", "judge.md"]}
    path = write(tmp_path, vary=vary, contrasts=[contrast])
    prepared = lab.studies.prepare(path)
    [declared] = prepared.declared["contrasts"]
    assert declared["level"] == f"judge.md~{content_hash(PROMPT)[:12]}"
    assert declared["base"] == "none"


def test_a_setup_is_named_by_the_file_of_its_prompt_where_that_tells_it_apart() -> None:
    def names(*levels: str) -> list[str]:
        rows = [
            {
                **{"judge.model": "sim:a", "evidence": str(n), "replicate": 0, "status": "scored"},
                **{"stages": "1", "n_stages": 2, "concept": "x", "prompt.template": level},
            }
            for level in levels
            for n in range(2)
        ]
        return [setup.name for setup in setups_of(tidy(pd.DataFrame(rows)))]

    assert names("none", "a.md~0123456789ab") == ["a", "a, template a.md"]
    assert names("a.md~01", "b.md~23") == ["a, template a.md", "a, template b.md"]
    assert names("none", "a.md~0123456789ab", "a.md~ba9876543210", "b.md~0") == [
        "a",
        "a, template a.md~0123456789ab",
        "a, template a.md~ba9876543210",
        "a, template b.md",
    ]


def test_an_experiment_of_no_study_has_no_prompt_of_its_own(lab: Lab) -> None:
    window = lab.evidence.create_window("2026-01-01", "2026-01-31", "Valdoria")
    lab.evidence.load(window, [{"title": "a", "text": "A text."}])
    with pytest.raises(DesignError, match=r"prompt.template is a file that a study names"):
        lab.experiments.create(
            "tag",
            window,
            "sim:balanced",
            "ecc",
            "fascism",
            {"prompt.template": "judge.md", "evidence.editor": "sim:editor"},
        )


def test_a_study_that_is_sent_names_no_prompt_outside_of_its_folder(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for vary, design in (({}, "../secret.md"), ({}, "/etc/hostname"), (["../secret.md"], "none")):
        named = {"vary": {"prompt.template": ["judge.md", *vary]}} if vary else {}
        path = write(tmp_path, design={"prompt.template": design}, **named)
        with pytest.raises((DesignError, ConflictError), match=r"secret|hostname"):
            lab.studies.prepare_text(path.read_text())
    path = write(tmp_path, design={"prompt.template": "judge.md"})
    [experiment] = lab.studies.prepare_text(path.read_text()).sweep.experiments
    assert experiment.template == PROMPT


def test_a_judge_that_prefers_what_it_reads_first_is_found_out(lab: Lab, tmp_path: Path) -> None:
    stages = [{"label": "First", "criteria": ["x"]}, {"label": "Second", "criteria": ["y"]}]
    path = write(tmp_path, design={"prompt.template": "pair.md"})
    (tmp_path / "rubric.json").write_text(json.dumps({"kind": "nominal", "stages": stages}))
    (tmp_path / "items.jsonl").write_text(
        json.dumps({"input": "Which?", "responses": ["one", "two"]})
    )
    (tmp_path / "pair.md").write_text(
        "---\nread: regex: \\[\\[(.)\\]\\]\nlabels: {A: First, B: Second}\n---\n"
        "{input}\nA: {response_a}\nB: {response_b}\nAnswer [[A]] or [[B]]."
    )
    asked = answers(lab, path, {"Which?": "I take [[A]]."})
    assert sorted(request.messages[0].content.split("\n")[1] for request in asked) == [
        "A: one",
        "A: two",
    ]
    rows = lab.experiments.exported_samples("own").set_index("flipped")
    assert dict(rows["stages"]) == {False: "1", True: "2"}


def test_a_sample_page_marks_where_the_verdict_stands(lab: Lab, tmp_path: Path) -> None:
    path = write(tmp_path, design={"prompt.template": "judge.md"})
    answers(lab, path, {"crashed": "Good.\n**Helpful**", "": "abstain"})
    with (
        serve(lab, port=0, work=False) as at,
        httpx.Client(headers={"Authorization": f"Bearer {at.token}"}) as http,
    ):
        rows = lab.experiments.exported_samples("own").sort_values("evidence_title")
        ids = rows["sample"].tolist()
        pages = [http.get(f"{at.url}/samples/{id}").raise_for_status().text for id in ids]
    assert "<mark>**Helpful**</mark>" in pages[0]
    assert '<span id="verdict">helpful</span>' in pages[0]
    assert "asked in words of its own, judge.md~" in pages[0] and "Asked for single" not in pages[0]
    assert "<mark>abstain</mark>" in pages[1]


def test_items_of_named_parts_can_be_loaded_one_by_one(lab: Lab) -> None:
    window = lab.evidence.create_window("2026-01-01", "2026-01-31", "Valdoria")
    messages = [{"role": "user", "content": "Hi"}]
    sent = Item(title="a", output="Fine.", messages=messages).model_dump()
    assert lab.evidence.load(window, [sent]) == 1
    [item] = lab.store.evidence.window_items(window)
    assert item.fields == {"messages": "user:\n  Hi", "output": "Fine."}


# --- the store -----------------------------------------------------------------------------------

PARTS = {"input": "q", "output": "a"}
ITEM = Evidence("t", render_fields(PARTS), fields=PARTS)


@pytest.mark.postgres
def test_parts_are_stored_in_their_order(store: Store) -> None:
    saved = store.evidence.save_pool(Pool((ITEM, Evidence("u", "plain"))))
    found = store.evidence.find_pool(saved.id)
    assert [*found.items[0].fields.items()] == [("input", "q"), ("output", "a")]
    assert found.items[1].fields == {}
    assert found.hash == saved.hash == Pool((ITEM, Evidence("u", "plain"))).hash


def test_a_text_whose_parts_are_named_later_gets_them(store: Store) -> None:
    store.evidence.save_pool(Pool((Evidence("t", ITEM.text),)))
    saved = store.evidence.save_pool(Pool((ITEM,)))
    assert store.evidence.find_pool(saved.id).items[0].fields == PARTS


def test_parts_travel_with_a_ledger(store: Store, tmp_path: Path) -> None:
    store.evidence.name_pool("frozen", store.evidence.save_pool(Pool((ITEM,))))
    request = Request("sim:a", (Message("user", ("Hi",)),), Draw("s"))
    recorded(
        store,
        request,
        Payer(1, "own", "own/tag", "scorer"),
        Completion("Hi", "stop", "sim:a", 1, 1, 0.0),
    )
    export_ledger(store.database, tmp_path / "ledger.gz")
    other = Store.open(blank(tmp_path / "other.db"))
    import_ledger(other.database, tmp_path / "ledger.gz")
    [item] = other.evidence.find_named_pool("frozen").items
    assert (item.fields, item.text) == (PARTS, ITEM.text)
    other.close()
