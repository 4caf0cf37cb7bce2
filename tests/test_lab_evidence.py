"""The verbs over what is judged: windows fill, pools freeze, people's labels find their items."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import TEXTS, Scripted
from engines import replace_engine
from judge_gym.engine import Engine
from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.lab.label_frames import label_frame
from judge_gym.studies import PoolSpec, WindowSpec
from stores import contents

WriteStudy = Callable[..., Path]
NEWS: tuple[dict[str, Any], ...] = (
    {"title": "Budget", "text": "The budget was adopted in full.", "url": "https://x/budget"},
    {"title": "Fine", "text": "The regulator fined one station.", "metadata": {"id": "n-2"}},
    {"title": "Decree", "text": "Judges were dismissed by decree."},
    {"title": "Decree", "text": "An editor was detained by decree."},
)
PAIRS = [
    {"pair_id": f"p{n}", "source": "mine", "question": f"What is {n} and {n}?",
     "response_A": f"It is {2 * n}.", "response_B": f"It is {3 * n}.", "label": label}
    for n, label in ((1, "A>B"), (2, "B>A"))
]  # fmt: skip
RUBRIC = {
    "kind": "ordinal",
    "stages": [{"label": name, "criteria": ["a sign"]} for name in ("Calm", "Tense", "Harsh")],
}


def write(path: Path, *items: Any) -> Path:
    """A file of JSON lines."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, items)))
    return path


@pytest.fixture
def window(lab: Lab, tmp_path: Path) -> int:
    """A window that holds the news as items 1 to 4."""
    write(tmp_path / "news.jsonl", *NEWS)
    window_id = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    assert lab.load_evidence(window_id, "news.jsonl", folder=tmp_path) == 4
    return window_id


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A benchmark of two items in a folder."""
    folder = tmp_path / "bench"
    write(folder / "items.jsonl", {**NEWS[0], "truth": "Calm"}, {**NEWS[1], "truth": 2})
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    (folder / "benchmark.toml").write_text('name = "tones"\nconcept = "tone"\n')
    return folder


def titles(lab: Lab, window_id: int) -> list[str]:
    return [row["title"] for row in lab.evidence.list(window_id) if not row["dropped"]]


# --- windows -------------------------------------------------------------------------------------


def test_collecting_from_files_fills_a_window_of_that_country(lab: Lab, tmp_path: Path) -> None:
    write(tmp_path / "news.jsonl", *NEWS)
    spec = PoolSpec(files="*.jsonl", window=WindowSpec(country="Valdoria"))
    made = lab.evidence.collect_pool(spec, folder=tmp_path)
    assert (made.added, made.held) == (4, 4)
    assert lab.evidence.collect_pool(spec, folder=tmp_path).added == 0
    [listed] = lab.evidence.list_windows()
    assert (listed["window"], listed["country"], listed["items"]) == (1, "Valdoria", 4)
    assert [row["added"] for row in listed["collections"]] == [4, 0]
    assert listed["collections"][1]["dropped"] == {"already there": 4}
    assert all(row["source"] == "files" for row in listed["collections"])


def test_loading_counts_what_the_window_then_holds(lab: Lab, window: int, tmp_path: Path) -> None:
    write(tmp_path / "more.jsonl", NEWS[0], {"title": "New", "text": "A bill is under review."})
    assert lab.load_evidence(window, ["news.jsonl", "more.jsonl"], folder=tmp_path) == 5
    assert titles(lab, window) == ["Budget", "Fine", "Decree", "Decree", "New"]
    lab.evidence.drop([1])
    assert lab.load_evidence(window, "news.jsonl", folder=tmp_path) == 4


def test_a_study_of_files_alone_has_nothing_to_collect(lab: Lab, write_study: WriteStudy) -> None:
    assert lab.evidence.collect_study(write_study(), again=True) == {}
    assert lab.evidence.list_windows() == []


@pytest.mark.parametrize("kind", ["folder", "pairs"])
def test_a_benchmarks_items_keep_their_known_answers(
    lab: Lab, benchmark: Path, tmp_path: Path, kind: str
) -> None:
    path = benchmark if kind == "folder" else write(tmp_path / "pairs.jsonl", *PAIRS)
    window_id = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    assert lab.load_benchmark_evidence(window_id, path) == 2
    assert lab.load_benchmark_evidence(window_id, path) == 2
    truths = [1, 2]
    assert [row["truth"] for row in lab.evidence.list(window_id)] == truths
    [listed] = lab.evidence.list_windows()
    assert [row["added"] for row in listed["collections"]] == [2, 0]
    name = "tones" if kind == "folder" else "judgebench"
    assert {row["source"] for row in listed["collections"]} == {name}


def test_a_benchmark_that_cannot_be_read_or_has_no_window_adds_nothing(
    lab: Lab, benchmark: Path, tmp_path: Path
) -> None:
    with pytest.raises(NotFoundError, match="99"):
        lab.load_benchmark_evidence(99, benchmark)
    window_id = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    before = contents(tmp_path / "lab.db")
    with pytest.raises(DesignError, match="no-such-folder"):
        lab.load_benchmark_evidence(window_id, tmp_path / "no-such-folder")
    (benchmark / "rubric.json").unlink()
    with pytest.raises(DesignError, match=r"rubric\.json"):
        lab.load_benchmark_evidence(window_id, benchmark)
    assert contents(tmp_path / "lab.db") == before


def test_an_item_is_shown_with_its_text_and_every_view(lab: Lab, write_study: WriteStudy) -> None:
    replace_engine(lab, Engine(lab.store, Scripted(lambda request: "A budget of 7 was adopted.")))
    lab.runs.run(write_study(), workflows=["evidence"])
    [calm] = [item for item in lab.store.evidence.all_evidence() if item.title == "calm"]
    shown = lab.evidence.show(calm.id)
    assert (shown["id"], shown["title"], shown["text"]) == (calm.id, "calm", calm.text)
    assert shown["words"] == 11
    assert (shown["hash"], shown["responses"]) == (calm.hash, [])
    [view] = shown["views"]
    assert (view["editor"], view["status"]) == ("sim:editor", "scored")
    assert view["text"] == "A budget of 7 was adopted."
    assert view["checks"] is not None
    assert (view["checks"]["words"], view["checks"]["numbers"]) == (6, ["7"])
    with pytest.raises(NotFoundError, match="99"):
        lab.evidence.show(99)


def test_a_pair_is_shown_with_both_responses(lab: Lab, tmp_path: Path) -> None:
    window_id = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    lab.load_benchmark_evidence(window_id, write(tmp_path / "pairs.jsonl", *PAIRS))
    shown = lab.evidence.show(1)
    assert (shown["text"], shown["responses"]) == ("What is 1 and 1?", ["It is 2.", "It is 3."])
    assert shown["metadata"]["id"] == "p1"


def test_a_window_may_be_one_day_and_does_not_end_before_it_starts(lab: Lab) -> None:
    lab.create_window("2026-01-31", "2026-01-31", "Valdoria")
    with pytest.raises(DesignError, match="2026-01-31 to 2026-01-30"):
        lab.create_window("2026-01-31", "2026-01-30", "Valdoria")


# --- dropping ------------------------------------------------------------------------------------


def test_dropped_evidence_is_listed_as_such_and_can_be_put_back(lab: Lab, window: int) -> None:
    assert lab.evidence.drop([1, 3]) == 2
    assert [row["dropped"] for row in lab.evidence.list(window)] == [True, False, True, False]
    assert lab.evidence.drop([1], undo=True) == 1
    assert [row["dropped"] for row in lab.evidence.list(window)] == [False, False, True, False]


def test_evidence_of_several_windows_is_dropped_from_the_one_that_is_named(
    lab: Lab, window: int, tmp_path: Path
) -> None:
    other = lab.create_window("2026-02-01", "2026-02-28", "Valdoria")
    lab.load_evidence(other, "news.jsonl", folder=tmp_path)
    with pytest.raises(DesignError, match=rf"windows {window}, {other}; name one of them"):
        lab.evidence.drop([1])
    assert lab.evidence.drop([1], window_id=other) == 1
    assert (len(titles(lab, window)), len(titles(lab, other))) == (4, 3)


def test_evidence_that_is_nowhere_is_not_dropped(lab: Lab, window: int) -> None:
    with pytest.raises(DesignError, match="no window"):
        lab.evidence.drop([99])
    with pytest.raises(NotFoundError, match="99"):
        lab.evidence.drop([1, 99])
    with pytest.raises(NotFoundError, match="99"):
        lab.evidence.drop([1], window_id=99)
    assert len(titles(lab, window)) == 4


# --- pools ---------------------------------------------------------------------------------------


def test_a_frozen_pool_stays_what_it_was_when_its_window_changes(
    lab: Lab, window: int, tmp_path: Path
) -> None:
    frozen = lab.evidence.freeze_pool("january", window_id=window)
    assert lab.evidence.freeze_pool("january", window_id=window) == frozen
    write(tmp_path / "late.jsonl", {"title": "Late", "text": "A bill is under review."})
    lab.load_evidence(window, "late.jsonl", folder=tmp_path)
    lab.evidence.drop([1])
    with pytest.raises(ConflictError, match="'january'"):
        lab.evidence.freeze_pool("january", window_id=window)
    assert lab.store.evidence.find_named_pool("january").hash == frozen["hash"]
    lab.evidence.freeze_pool("february", window_id=window)
    later = lab.evidence.list_pool_items("february")
    assert [item["title"] for item in later] == ["Fine", "Decree", "Decree", "Late"]
    assert [(row["name"], row["items"]) for row in lab.evidence.list_pools()] == [
        ("february", 4), ("january", 4),
    ]  # fmt: skip


def test_a_pool_is_frozen_from_files_without_a_window(
    lab: Lab, window: int, tmp_path: Path
) -> None:
    lab.evidence.freeze_pool("loose", files=["news.jsonl"], folder=tmp_path)
    pool = lab.store.evidence.find_named_pool("loose")
    assert pool.window is None
    assert [item.id for item in pool.items] == [1, 2, 3, 4], "the texts are those of the window"
    [listed] = lab.evidence.list_pools()
    assert (listed["items"], listed["hash"], listed["window_id"]) == (4, pool.hash, None)


def test_a_pool_comes_from_one_place_that_holds_something(
    lab: Lab, window: int, tmp_path: Path
) -> None:
    with pytest.raises(DesignError, match="one window, from files or from an experiment"):
        lab.evidence.freeze_pool("x")
    with pytest.raises(DesignError, match="one window, from files or from an experiment"):
        lab.evidence.freeze_pool("x", window_id=window, files=["news.jsonl"], folder=tmp_path)
    with pytest.raises(NotFoundError, match="99"):
        lab.evidence.freeze_pool("x", window_id=99)
    with pytest.raises(DesignError, match=r"missing\.jsonl"):
        lab.evidence.freeze_pool("x", files=["missing.jsonl"], folder=tmp_path)
    lab.evidence.drop([1, 2, 3, 4])
    with pytest.raises(ConflictError, match=f"window {window} holds nothing"):
        lab.evidence.freeze_pool("x", window_id=window)
    assert lab.evidence.list_pools() == []


def test_what_an_experiment_judges_is_frozen_for_other_studies(
    lab: Lab, write_study: Callable[..., Path]
) -> None:
    tags = lab.runs.run(write_study()).to_json()["runs"]
    frozen = lab.evidence.freeze_pool("again", tag=tags[0]["tag"])
    titles = [item["title"] for item in lab.evidence.list_pool_items("again")]
    assert (titles, frozen["items"]) == ([*TEXTS], len(TEXTS))
    assert lab.evidence.freeze_pool("again", tag=tags[0]["tag"]) == frozen
    with pytest.raises(NotFoundError, match="there is no experiment 'none'"):
        lab.evidence.freeze_pool("x", tag="none")


def test_a_diff_of_pools_says_what_only_one_of_them_has(lab: Lab, tmp_path: Path) -> None:
    write(tmp_path / "old.jsonl", NEWS[0], NEWS[1], {**NEWS[2], "truth": 1})
    write(tmp_path / "new.jsonl", {**NEWS[2], "truth": 2}, NEWS[1], NEWS[3])
    for name in ("old", "new"):
        lab.evidence.freeze_pool(name, files=[f"{name}.jsonl"], folder=tmp_path)
    found = lab.evidence.diff_pools("old", "new")
    assert (found["same"], found["shared"], found["reordered"]) == (False, 2, True)
    assert [row["title"] for row in found["added"]] == ["Decree"]
    assert [row["id"] for row in found["added"]] == [4]
    assert [row["title"] for row in found["removed"]] == ["Budget"]
    assert [(row["id"], row["was"], row["truth"]) for row in found["truths_changed"]] == [(3, 1, 2)]


def test_pools_of_the_same_texts_are_the_same_whatever_their_names(
    lab: Lab, window: int, tmp_path: Path
) -> None:
    lab.evidence.freeze_pool("held", window_id=window)
    lab.evidence.freeze_pool("again", window_id=window)
    lab.evidence.freeze_pool("loose", files=["news.jsonl"], folder=tmp_path)
    for other in ("again", "loose"):
        assert lab.evidence.diff_pools("held", other) == {
            "same": True, "shared": 4, "added": [], "removed": [], "reordered": False,
            "truths_changed": [],
        }  # fmt: skip
    with pytest.raises(NotFoundError, match="'hold'") as refusal:
        lab.evidence.diff_pools("held", "hold")
    assert set(refusal.value.choices) == {"held", "again", "loose"}


# --- labels --------------------------------------------------------------------------------------


@pytest.fixture
def labels(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of labels."""

    def written(*rows: str, header: str = "item,rater,stage") -> Path:
        path = tmp_path / "labels.csv"
        path.write_text("\n".join([header, *rows]))
        return path

    return written


Labels = Callable[..., Path]


def test_a_published_id_that_is_the_number_of_another_item_is_not_guessed(
    lab: Lab, window: int, tmp_path: Path, labels: Labels
) -> None:
    write(tmp_path / "own.jsonl", {"title": "Own", "text": "Its own.", "metadata": {"id": "2"}})
    lab.load_evidence(window, "own.jsonl", folder=tmp_path)
    with pytest.raises(DesignError, match=r"'2' may be evidence 2, 5"):
        lab.labels.import_file(labels("2,ann,1"))
    assert lab.labels.list() == []


def test_an_item_is_found_by_number_address_hash_published_id_and_title(
    lab: Lab, window: int, labels: Labels
) -> None:
    hash = lab.evidence.show(4)["hash"]
    path = labels("https://x/budget,ann,1", "n-2,ann,2", "3,ann,3", f"{hash},ann,4", "Fine,bob,1")
    assert lab.labels.import_file(path) == {"new": 5, "same": 0, "changed": 0}
    assert [(row["evidence"], row["rater"], row["stage"]) for row in lab.labels.list()] == [
        (1, "ann", "1"), (2, "ann", "2"), (3, "ann", "3"), (4, "ann", "4"), (2, "bob", "1"),
    ]  # fmt: skip
    assert {row["concept"] for row in lab.labels.list()} == {""}


@pytest.mark.parametrize(
    ("row", "fault", "says"),
    [
        ("Decree,bob,1", DesignError, r"'Decree' may be evidence 3, 4; name it by number"),
        ("Nowhere,bob,1", NotFoundError, r"no evidence 'Nowhere'.*nothing was imported"),
        ("99,bob,1", NotFoundError, "no evidence '99'"),
        ("budget,bob,1", NotFoundError, "no evidence 'budget'"),
    ],
)
def test_one_item_that_is_not_clear_refuses_the_whole_file(
    lab: Lab, window: int, labels: Labels, row: str, fault: type[Exception], says: str
) -> None:
    with pytest.raises(fault, match=says):
        lab.labels.import_file(labels("1,ann,1", row, "2,ann,1"))
    assert lab.labels.list() == []


def test_labels_again_are_the_same_and_differing_ones_need_a_word(
    lab: Lab, window: int, labels: Labels
) -> None:
    lab.labels.import_file(labels("1,ann,1", "2,ann,2"))
    assert lab.labels.import_file(labels("Budget,ann,1", "2,ann,2"))["same"] == 2
    with pytest.raises(ConflictError, match="replace"):
        lab.labels.import_file(labels("3,ann,3", "2,ann,1"))
    assert len(lab.labels.list()) == 2
    counts = lab.labels.import_file(labels("3,ann,3", "2,ann,1"), replace=True)
    assert counts == {"new": 1, "same": 0, "changed": 1}
    assert [row["stage"] for row in lab.labels.list()] == ["1", "3", "1"]


def test_raters_may_judge_for_one_concept(lab: Lab, window: int, labels: Labels) -> None:
    lab.labels.import_file(labels("1,ann,1"), concept="fascism")
    lab.labels.import_file(labels("1,ann,4"))
    assert [(row["concept"], row["stage"]) for row in lab.labels.list()] == [
        ("fascism", "1"), ("", "4"),
    ]  # fmt: skip


def grade_items(write_study: WriteStudy, tmp_path: Path, **changes: Any) -> Path:
    """A study of the news by a given rubric of three stages."""
    write(tmp_path / "news.jsonl", *NEWS)
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    task = {"type": "benchmark", "concept": "tone", "evidence": "here", "rubric": "rubric.json"}
    given = {"evidence": {"here": {"files": "news.jsonl"}}, "tasks": [task], "design": {}}
    return write_study(**{**given, "samples": 1, "judges": ["sim:balanced"], **changes})


def test_the_labels_of_a_study_are_about_its_items_and_in_its_stages(
    lab: Lab, write_study: WriteStudy, tmp_path: Path, labels: Labels
) -> None:
    lab.runs.run(grade_items(write_study, tmp_path))
    assert lab.labels.import_file(labels("1,ann,3", "2,ann,Calm"), target="small")["new"] == 2
    tag = "small/tone/here/sim:balanced"
    assert lab.labels.import_file(labels("1,bob,Harsh"), target=tag)["new"] == 1
    for wrong in ("4", "0", "calm", "Terrible"):
        with pytest.raises(
            DesignError, match=rf"bob.*'{wrong}'.*1, 2, 3, Calm, Tense, Harsh"
        ) as no:
            lab.labels.import_file(labels("2,bob,1", f"3,bob,{wrong}"), target="small")
        assert no.value.choices == ("1", "2", "3", "Calm", "Tense", "Harsh")
    assert len(lab.labels.list()) == 3


def test_a_title_that_is_ambiguous_in_the_lab_may_be_clear_in_a_study(
    lab: Lab, window: int, write_study: WriteStudy, tmp_path: Path, labels: Labels
) -> None:
    path = grade_items(write_study, tmp_path)
    write(tmp_path / "news.jsonl", *NEWS[:3])
    lab.runs.run(path)
    with pytest.raises(DesignError, match="name it by number"):
        lab.labels.import_file(labels("Decree,ann,1"))
    assert lab.labels.import_file(labels("Decree,ann,1"), target="small")["new"] == 1
    assert [row["evidence"] for row in lab.labels.list()] == [3]
    with pytest.raises(NotFoundError, match="no evidence '4'"):
        lab.labels.import_file(labels("4,ann,1"), target="small")


def test_a_study_whose_judges_write_their_rubrics_knows_its_stages_by_number(
    lab: Lab, write_study: WriteStudy, labels: Labels
) -> None:
    lab.runs.run(write_study(samples=1, design={"evidence.editor": "sim:editor", "rubric.scale": 3,
                                           "rubric.critic": "sim:critic"}))  # fmt: skip
    assert lab.labels.import_file(labels("calm,ann,3"), target="small")["new"] == 1
    with pytest.raises(DesignError, match=r"'4'; choose 1, 2, 3$"):
        lab.labels.import_file(labels("calm,bob,4"), target="small")


def test_labels_for_a_study_that_is_not_there_are_refused(
    lab: Lab, window: int, labels: Labels
) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        lab.labels.import_file(labels("1,ann,1"), target="nobody")
    assert lab.labels.list() == []


def test_people_are_read_in_the_stages_of_the_experiment(
    lab: Lab, write_study: WriteStudy, tmp_path: Path, labels: Labels
) -> None:
    lab.runs.run(grade_items(write_study, tmp_path))
    lab.labels.import_file(labels("1,ann,Harsh", "2,ann,2"))
    lab.labels.import_file(labels("3,ann,1"), concept="tone")
    lab.labels.import_file(labels("3,ann,2"), concept="something else")
    lab.labels.import_file(labels("4,ann,no idea"))
    people = label_frame(lab.store, lab.studies.find("small"))
    assert set(people["tag"]) == {"small/tone/here/sim:balanced"}
    assert list(zip(people["evidence"], people["rater"], people["stage"], strict=True)) == [
        (1, "ann", 3), (2, "ann", 2), (3, "ann", 1),
    ]  # fmt: skip


# --- odd cases -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "country", "says"),
    [
        ("2026-02-01", "2026-01-01", "Valdoria", "ends after it starts"),
        ("2026-01-01", "2026-02-01", "", "country"),
    ],
)
def test_a_window_that_no_study_could_name_is_refused(
    lab: Lab, start: str, end: str, country: str, says: str
) -> None:
    with pytest.raises(DesignError, match=says):
        lab.create_window(start, end, country)
    assert lab.evidence.list_windows() == []


def test_a_freeze_that_is_refused_writes_nothing(lab: Lab, window: int, tmp_path: Path) -> None:
    lab.evidence.freeze_pool("january", window_id=window)
    write(tmp_path / "late.jsonl", {"title": "Late", "text": "A bill is under review."})
    before = contents(tmp_path / "lab.db")
    with pytest.raises(ConflictError, match="'january'"):
        lab.evidence.freeze_pool("january", files=["late.jsonl"], folder=tmp_path)
    assert contents(tmp_path / "lab.db") == before


def test_a_label_beyond_the_scale_is_no_opinion_on_it(
    lab: Lab, write_study: WriteStudy, tmp_path: Path, labels: Labels
) -> None:
    """Without a study nobody checks stages; a seventh of three must not count as an opinion."""
    lab.runs.run(grade_items(write_study, tmp_path))
    lab.labels.import_file(labels("1,ann,7", "2,ann,0", "3,ann,2"))
    assert list(label_frame(lab.store, lab.studies.find("small"))["stage"]) == [2]


def test_a_corrected_answer_of_a_benchmark_reaches_its_window(
    lab: Lab, benchmark: Path, tmp_path: Path
) -> None:
    window_id = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    lab.load_benchmark_evidence(window_id, benchmark)
    write(benchmark / "items.jsonl", *({**item, "truth": "Harsh"} for item in NEWS[:2]))
    assert lab.load_benchmark_evidence(window_id, benchmark) == 2
    assert [row["truth"] for row in lab.evidence.list(window_id)] == [3, 3]


def test_a_rater_who_contradicts_himself_in_one_file_is_refused(
    lab: Lab, window: int, labels: Labels
) -> None:
    """By two names of one item; with `replace` the last line would win in silence."""
    for replacing in (False, True):
        with pytest.raises((DesignError, ConflictError), match="ann"):
            lab.labels.import_file(labels("1,ann,1", "Budget,ann,2"), replace=replacing)
    assert lab.labels.list() == []
