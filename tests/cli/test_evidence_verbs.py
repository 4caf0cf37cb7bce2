"""The command line over what is judged: evidence, pools, labels; how each command ends."""

import json
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import Call, CommandResult, succeed
from judge_gym.cli import main
from judge_gym.lab import Lab
from stores import contents
from web import Answer, Asked, Web, page, rss, story

WriteStudy = Callable[..., Path]
DATES = ("--country", "Valdoria", "--start", "2026-01-01", "--end", "2026-01-31")
NEWS = """\
{"title": "Budget", "text": "The budget was adopted in full.", "url": "https://x/budget"}
{"title": "Fine", "text": "The regulator fined one station.", "date": "2026-01-07"}
{"title": "Old", "text": "A harbour was opened.", "date": "2025-12-31"}
"""
DAY = "Sat, 10 Jan 2026 08:00:00 GMT"


@pytest.fixture
def news(tmp_path: Path) -> str:
    (tmp_path / "news.jsonl").write_text(NEWS)
    return "news.jsonl"


def filled(call: Call, news: str) -> CommandResult:
    return succeed(call("evidence", "add", news, *DATES))


# --- evidence add --------------------------------------------------------------------------------


def test_add_says_what_was_found_added_and_left_out(call: Call, news: str) -> None:
    said = filled(call, news)
    assert "3 found, 2 added to window 1, which holds 2; left out: 1 outside the dates" in said.out
    assert "note: 'Budget' has no date" in said.err
    again = succeed(call("evidence", "add", news, *DATES)).out
    assert "3 found, 0 added to window 1, which holds 2" in again
    assert "2 already there" in again


def test_add_prints_one_json_document(call: Call, news: str) -> None:
    said = succeed(call("evidence", "add", news, *DATES, "--json"))
    assert said.err == ""
    assert said.json == {
        "evidence": "",
        "window": 1,
        "source": "files",
        "found": 3,
        "added": 2,
        "held": 2,
        "dropped": {"outside the dates": 1},
        "notes": ["'Budget' has no date"],
        "error": "",
    }


def test_add_takes_files_folders_and_patterns_into_a_window_by_number(
    call: Call, news: str, tmp_path: Path
) -> None:
    filled(call, news)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("A bill is under review.")
    (tmp_path / "b.md").write_text("An editor was detained.")
    said = succeed(call("evidence", "add", "more", "*.md", "--window", "1", "--json")).json
    assert (said["window"], said["added"], said["held"]) == (1, 2, 4)


# --- evidence list, show, drop -------------------------------------------------------------------


def test_windows_and_their_items_are_listed(call: Call, news: str) -> None:
    succeed(call("db", "upgrade"))
    for words in (("evidence", "list"), ("evidence", "list", "--json")):
        empty = succeed(call(*words))
        assert "judge-gym evidence add" in empty.out or empty.json == []
    filled(call, news)
    [window] = succeed(call("evidence", "list", "--json")).json
    assert (window["window"], window["country"], window["items"]) == (1, "Valdoria", 2)
    assert (window["start"], window["end"]) == ("2026-01-01", "2026-01-31")
    [made] = window["collections"]
    assert (made["source"], made["added"]) == ("files", 2)
    assert made["dropped"] == {"outside the dates": 1}
    items = succeed(call("evidence", "list", "1", "--json")).json
    assert [(item["id"], item["title"], item["dropped"]) for item in items] == [
        (1, "Budget", False), (2, "Fine", False),
    ]  # fmt: skip
    assert "Valdoria" in succeed(call("evidence", "list")).out
    text = succeed(call("evidence", "list", "1")).out
    assert "Budget" in text and "https://x/budget" in text


def test_an_item_is_shown_beside_its_views(call: Call, write_study: WriteStudy) -> None:
    path = write_study(judges=["sim:balanced"], samples=1)
    text = "The budget was adopted unanimously and published in full, as scheduled."
    filled_window = ("--country", "Valdoria")
    succeed(call("evidence", "add", "evidence.jsonl", *filled_window))
    before = succeed(call("evidence", "show", "1")).out
    assert text in before
    assert "no views of it yet" in before
    succeed(call("evidence", path))
    shown = succeed(call("evidence", "show", "1", "--json")).json
    assert (shown["title"], shown["text"]) == ("calm", text)
    [view] = shown["views"]
    assert view["editor"] == "sim:editor"
    after = succeed(call("evidence", "show", "1")).out
    assert "1. calm" in after
    assert "neutralized by sim:editor" in after
    assert f"{view['checks']['words']} words" in after


def test_dropped_items_stay_out_until_they_are_restored(call: Call, news: str) -> None:
    filled(call, news)
    assert "dropped 1" in succeed(call("evidence", "drop", "1")).out
    again = succeed(call("evidence", "add", news, *DATES, "--json")).json
    assert (again["added"], again["held"]) == (0, 1)
    items = succeed(call("evidence", "list", "1", "--json")).json
    assert [item["dropped"] for item in items] == [True, False]
    assert succeed(call("evidence", "drop", "1", "--json")).json == {"dropped": 0}
    assert succeed(call("evidence", "drop", "1", "--undo", "--json")).json == {"restored": 1}
    assert "restored 0" in succeed(call("evidence", "drop", "1", "--undo", "--window", "1")).out


# --- pools ---------------------------------------------------------------------------------------


def test_pools_are_frozen_listed_and_compared(call: Call, news: str, tmp_path: Path) -> None:
    succeed(call("db", "upgrade"))
    assert "judge-gym pool freeze" in succeed(call("pool", "list")).out
    assert succeed(call("pool", "list", "--json")).json == []
    filled(call, news)
    old = succeed(call("pool", "freeze", "old", "--window", "1", "--json")).json
    assert (old["name"], old["items"]) == ("old", 2)
    assert f"froze old: 2 items, {old['hash'][:12]}" in succeed(
        call("pool", "freeze", "old", "--window", "1")
    ).out  # fmt: skip
    (tmp_path / "new.txt").write_text("A bill is under review.")
    succeed(call("evidence", "add", "new.txt", "--window", "1"))
    succeed(call("evidence", "drop", "1"))
    succeed(call("pool", "freeze", "new", "--window", "1"))
    succeed(call("pool", "freeze", "twin", "--window", "1"))
    found = succeed(call("pool", "diff", "old", "new", "--json")).json
    assert (found["same"], found["shared"]) == (False, 1)
    assert [row["title"] for row in found["added"]] == ["new"]
    assert [row["title"] for row in found["removed"]] == ["Budget"]
    text = succeed(call("pool", "diff", "old", "new")).out
    assert all(words in text for words in ("1 items in both", "only in new", "only in old"))
    assert "new and twin are the same pool" in succeed(call("pool", "diff", "new", "twin")).out
    listed = succeed(call("pool", "list", "--json")).json
    assert [(row["name"], row["items"], row["hash"]) for row in listed][1] == (
        "old", 2, old["hash"],
    )  # fmt: skip
    assert old["hash"][:12] in succeed(call("pool", "list")).out


def test_a_pool_frozen_from_files_serves_a_study(
    call: Call, write_study: WriteStudy, news: str
) -> None:
    succeed(call("pool", "freeze", "loose", news))
    filled(call, news)
    succeed(call("pool", "freeze", "january", "--window", "1"))
    path = write_study(evidence={"here": {"pool": "january"}}, samples=1)
    assert succeed(call("run", path, "--json")).json["status"] == "complete"
    refused = call("run", write_study(evidence={"here": {"pool": "loose"}}))
    assert (refused.code, "no window" in refused.err) == (2, True)


# --- labels --------------------------------------------------------------------------------------


def test_labels_are_imported_once_and_listed(call: Call, news: str, tmp_path: Path) -> None:
    filled(call, news)
    assert succeed(call("labels", "list", "--json")).json == []
    (tmp_path / "labels.csv").write_text("item,rater,stage\nBudget,ann,1\n2,ann,3\n")
    assert succeed(call("labels", "import", "labels.csv")).out.split() == (
        "2 new, 0 same, 0 changed labels".split()
    )
    assert succeed(call("labels", "import", "labels.csv", "--json")).json == {
        "new": 0, "same": 2, "changed": 0,
    }  # fmt: skip
    (tmp_path / "labels.csv").write_text("item,rater,stage\nBudget,ann,2\n")
    assert call("labels", "import", "labels.csv").code == 2
    changed = succeed(call("labels", "import", "labels.csv", "--replace", "--json")).json
    assert changed == {"new": 0, "same": 0, "changed": 1}
    succeed(call("labels", "import", "labels.csv", "--concept", "tone"))
    assert succeed(call("labels", "list", "--json")).json == [
        {"evidence": 2, "title": "Fine", "study": "", "concept": "", "rater": "ann", "stage": "3"},
        {
            "evidence": 1,
            "title": "Budget",
            "study": "",
            "concept": "",
            "rater": "ann",
            "stage": "2",
        },
        {
            "evidence": 1,
            "title": "Budget",
            "study": "",
            "concept": "tone",
            "rater": "ann",
            "stage": "2",
        },
    ]
    assert "Budget" in succeed(call("labels", "list")).out


def test_labels_of_a_study_are_checked_against_its_stages(
    call: Call, write_study: WriteStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed(call("run", write_study(samples=1)))
    labels = tmp_path / "labels.csv"
    labels.write_text("item,rater,stage\ncalm,ann,4\nharsh,ann,4\n")
    succeed(call("labels", "import", labels, "--study", "small"))
    labels.write_text("item,rater,stage\ncalm,bob,5\n")
    said = call("labels", "import", labels, "--study", "small", "--json")
    assert (said.code, said.json["error"]["choices"]) == (2, ["1", "2", "3", "4"])
    # Uses of the test part are counted, the same estimates once.
    assert "no split" in succeed(call("labels", "status", "small")).out
    split = succeed(call("labels", "split", "small", "--shares", "50,0,50", "--json")).json
    assert [(part["part"], part["known"]) for part in split["parts"]] == [("train", 1), ("test", 1)]
    assert split["uses"] == 0
    # Where this session may not write, a use is shown and cannot be recorded.
    succeed(call("db", "mark", "prod"))
    assert succeed(call("judges", "small", "--json")).json["split"]["uses"] == 1
    succeed(call("report", "small", "--out", tmp_path / "report.md"))
    assert "was never used" in succeed(call("labels", "status", "small")).out
    succeed(call("--profile", "prod", "db", "mark", "dev"))
    monkeypatch.delenv("JUDGE_GYM_PROFILE")
    for _ in range(2):
        assert succeed(call("judges", "small", "--json")).json["split"]["uses"] == 1
    assert "was used once" in succeed(call("labels", "status", "small")).out
    refused = call("labels", "split", "small", "--seed", "1")
    assert (refused.code, "is split already, with seed 0" in refused.err) == (2, True)
    anew = succeed(call("labels", "split", "small", "--seed", "1", "--replace", "--json")).json
    assert (anew["seed"], anew["uses"]) == (1, 1)


# --- a study that searches a feed ----------------------------------------------------------------


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


def put(web: Web, *subjects: str) -> str:
    """A feed of articles on these subjects; its address."""
    items = [
        {"title": s, "link": web.on(f"/{s}", page(s, story(s))), "date": DAY} for s in subjects
    ]
    return web.on("/feed", rss(*items))


def feed_study(write_study: WriteStudy, url: str, **changes: Any) -> Path:
    window = {"country": "Norway", "start": "2026-01-01", "end": "2026-01-31"}
    given = {"evidence": {"wire": {"feeds": url, "window": window}}, "samples": 1,
             "protocol": "contested-concepts",
             "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "wire"}]}  # fmt: skip
    return write_study(**{**given, **changes})


def test_a_feed_study_collects_once_and_fetches_nothing_when_run_again(
    call: Call, web: Web, write_study: WriteStudy
) -> None:
    path = feed_study(write_study, put(web, "budget", "fishery"))
    assert call("plan", path).code == 2, "nothing has been collected yet"
    first = succeed(call("run", path, "--allow-private", "--json"))
    assert first.err == ""
    assert first.json["status"] == "complete"
    assert sorted(web.paths()) == ["/budget", "/feed", "/fishery"]
    put(web, "budget", "fishery", "harbour")
    fetched = len(web.asked)
    again = succeed(call("run", path, "--json")).json
    assert [run["calls"] for run in again["runs"]] == [0, 0]
    assert "the study's evidence was collected already" in succeed(
        call("evidence", "add", path)
    ).out  # fmt: skip
    assert succeed(call("evidence", "add", path, "--json")).json == []
    succeed(call("plan", path))
    succeed(call("report", path))
    assert len(web.asked) == fetched, "what was collected stays what it was"


def test_a_feed_study_reports_what_it_collects(
    call: Call, web: Web, write_study: WriteStudy
) -> None:
    said = succeed(call("run", feed_study(write_study, put(web, "budget")), "--allow-private"))
    assert "wire: 1 found, 1 added to window 1, which holds 1" in said.err
    assert "small/fascism/wire/sim:balanced" in said.out


def test_searching_a_study_again_adds_only_what_is_new(
    call: Call, web: Web, write_study: WriteStudy
) -> None:
    path = feed_study(write_study, put(web, "budget", "fishery"))
    words = ("evidence", "add", path, "--again", "--allow-private")
    [first] = succeed(call(*words, "--json")).json
    assert (first["evidence"], first["source"], first["added"]) == ("wire", "feeds", 2)
    [again] = succeed(call(*words, "--json")).json
    assert (again["added"], again["held"], again["dropped"]) == (0, 2, {"already there": 2})
    put(web, "budget", "harbour")
    assert "wire: 2 found, 1 added to window 1, which holds 3" in succeed(call(*words)).out
    assert web.paths().count("/budget") == 1


def test_a_private_address_is_refused_without_the_flag(
    call: Call, web: Web, write_study: WriteStudy
) -> None:
    path = feed_study(write_study, put(web, "budget"))
    said = call("run", path)
    assert (said.code, said.out) == (1, "")
    assert re.search(r"^judge-gym: .*/feed: private address", said.err, re.MULTILINE)
    error = call("run", path, "--json")
    assert error.code == 1
    assert error.json["error"]["kind"] == "source"
    assert "private address" in error.json["error"]["message"]
    assert web.asked == []
    assert succeed(call("run", path, "--allow-private", "--json")).json["status"] == "complete"


def test_a_feed_may_be_named_on_the_command_line(call: Call, web: Web) -> None:
    url = put(web, "budget", "fishery")
    words = ("evidence", "add", "--feed", url, "--country", "Norway", "--allow-private")
    made = succeed(call(*words, "--query", "fishery", "--json")).json
    assert (made["source"], made["added"]) == ("feeds", 1)
    assert made["dropped"] == {"not in the query": 1}
    other = succeed(call(*words, "--limit", "1", "--json")).json
    assert (other["window"], other["added"]) == (2, 1), "another search has its own window"
    listed = succeed(call("evidence", "list", "--json")).json
    assert [row["search"] for row in listed] == [f"feeds {url}: fishery", f"feeds {url}"]


def test_a_source_that_fails_is_exit_1_and_what_it_gave_is_kept(call: Call, web: Web) -> None:
    good, broken = put(web, "budget"), web.on("/broken", Answer("gone", 410))
    words = ("evidence", "add", "--feed", good, "--feed", broken, "--country", "Norway")
    said = call(*words, "--allow-private")
    assert said.code == 1
    assert "1 found, 1 added to window 1, which holds 1" in said.out
    assert re.search(r"^judge-gym: .*/broken: HTTP 410; items found before are kept$", said.err,
                     re.MULTILINE)  # fmt: skip
    told = call(*words, "--allow-private", "--json")
    assert (told.code, told.err) == (1, "")
    assert "HTTP 410" in told.json["error"]
    [row] = succeed(call("evidence", "list", "--json")).json
    assert row["items"] == 1
    assert all("HTTP 410" in made["error"] for made in row["collections"])


def interrupt(asked: Asked) -> Answer:
    time.sleep(0.2)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return Answer("late", delay=5)


def test_ctrl_c_is_exit_130_and_the_same_command_continues(
    call: Call, web: Web, write_study: WriteStudy
) -> None:
    path = feed_study(write_study, put(web, "budget", "fishery"))
    web.on("/fishery", interrupt)
    said = call("evidence", "add", path, "--allow-private")
    assert said.code == 130
    assert "1 added" in said.out
    assert "interrupted; continue with: judge-gym" in said.err
    told = call("run", path, "--allow-private", "--json")
    assert (told.code, told.out) == (130, "")
    put(web, "budget", "fishery")
    succeed(call("run", path, "--allow-private"))
    [row] = succeed(call("evidence", "list", "--json")).json
    assert row["items"] == 2
    assert web.paths().count("/budget") == 1


# --- bad input -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A call with a fault, and what must be said."""

    id: str
    words: str
    says: list[str]
    files: dict[str, str] = field(default_factory=dict)
    choices: list[str] = field(default_factory=list)


LABELS = "labels import labels.csv"
HEAD = "item,rater,stage\n"
CASES = [
    # evidence add
    Case("no-origin", "evidence add --country V", ["one origin", "--feed", "given: none"]),
    Case("two-origins", "evidence add news.jsonl --feed https://x/f --country V",
         ["one origin", "files and feeds"]),
    Case("files-and-search", "evidence add n.jsonl --search gdelt --query q", ["files and gdelt"]),
    Case("query-and-addresses", "evidence add --feed https://x/f --search gdelt --query q",
         ["gdelt takes a query and no addresses"]),
    Case("no-addresses", "evidence add --search feeds --country V", ["feeds needs addresses"]),
    Case("unknown-search", "evidence add --search wiki --query q --country V",
         ["unknown search 'wiki'", "'gdelt' or 'firecrawl'"]),
    Case("gdelt-query", "evidence add --search gdelt --country V",
         ["gdelt needs a query"]),
    Case("firecrawl-query", "evidence add --search firecrawl --country V",
         ["firecrawl needs a query"]),
    Case("blank-query", "evidence add --search gdelt --query= --country V",
         ["gdelt needs a query"]),
    Case("firecrawl-key", "evidence add --search firecrawl --query court --country V",
         ["FIRECRAWL_API_KEY"]),
    Case("query-grammar", "evidence add --feed https://x/f --country V --query (a)(b)-(c)",
         ["parentheses"]),
    Case("no-window", "evidence add news.jsonl", ["--country NAME"]),
    Case("bad-date", "evidence add news.jsonl --country V --start 1.1.2026",
         ["YYYY-MM-DD", "1.1.2026"]),
    Case("no-such-day", "evidence add news.jsonl --country V --end 2026-02-30", ["YYYY-MM-DD"]),
    Case("backwards", "evidence add news.jsonl --country V --start 2026-02-01 --end 2026-01-01",
         ["must end after it starts"]),
    Case("window-and-country", "evidence add news.jsonl --window 1 --country V",
         ["--window", "--country"]),
    Case("window-and-date", "evidence add news.jsonl --window 1 --end 2026-01-01", ["--window"]),
    Case("unknown-window", "evidence add news.jsonl --window 99", ["no window 99"]),
    Case("missing-file", "evidence add missing.jsonl --country V", ["missing.jsonl"]),
    Case("empty-folder", "evidence add empty --country V", ["empty"],
         files={"empty/notes.pdf": "x"}),
    Case("kind", "evidence add notes.pdf --country V", ["notes.pdf"], files={"notes.pdf": "x"},
         choices=[".jsonl", ".md"]),
    Case("broken-line", "evidence add bad.jsonl --country V", ["bad.jsonl:2", "broken JSON"],
         files={"bad.jsonl": '{"text": "x"}\n{'}),
    Case("broken-csv", "evidence add bad.csv --country V", ["bad.csv", "broken CSV"],
         files={"bad.csv": 'text\n"unclosed'}),
    Case("no-study", "evidence add missing.yaml", ["missing.yaml"]),
    Case("limit", "evidence add news.jsonl --country V --limit 0", ["limit", "1"]),
    Case("window-word", "evidence add news.jsonl --window one", ["window", "integer"]),
    # evidence list, show, drop
    Case("list-window", "evidence list 99", ["no window 99", "judge-gym evidence list"]),
    Case("show-item", "evidence show 99", ["no evidence 99", "judge-gym evidence list"]),
    Case("show-word", "evidence show Budget", ["integer"]),
    Case("drop-item", "evidence drop 99", ["no window"]),
    Case("drop-one-of-two", "evidence drop 1 99", ["99"]),
    Case("drop-elsewhere", "evidence drop 1 --window 99", ["99"]),
    Case("drop-nothing", "evidence drop", ["ids"]),
    # pools
    Case("freeze-nothing", "pool freeze x", ["one window, from files"]),
    Case("freeze-both", "pool freeze x news.jsonl --window 1", ["one window, from files"]),
    Case("freeze-window", "pool freeze x --window 99", ["no window 99"]),
    Case("freeze-file", "pool freeze x missing.jsonl", ["missing.jsonl"]),
    Case("diff-pool", "pool diff january februry", ["'februry'"], choices=["january"]),
    # labels
    Case("no-labels", "labels import missing.csv", ["missing.csv"]),
    Case("labels-header", LABELS, ["labels.csv:1", "stage"],
         files={"labels.csv": "item,rater\n1,a\n"}),
    Case("labels-broken", LABELS, ["labels.csv:2", "broken CSV"],
         files={"labels.csv": HEAD + '"1,ann,1\n'}),
    Case("labels-cells", LABELS, ["labels.csv:2"], files={"labels.csv": HEAD + "1,ann\n"}),
    Case("labels-none", LABELS, ["labels.csv", "no labels"], files={"labels.csv": HEAD}),
    Case("labels-item", LABELS, ["'Nowhere'", "nothing was imported"],
         files={"labels.csv": HEAD + "1,bob,1\nNowhere,bob,1\n"}),
    Case("labels-title", LABELS, ["'Twin'", "2, 3", "by number"],
         files={"labels.csv": HEAD + "Twin,bob,1\n"}),
    Case("labels-changed", LABELS, ["ann", "replace"],
         files={"labels.csv": HEAD + "1,bob,1\n1,ann,2\n"}),
    Case("labels-twice", LABELS, ["labels.csv:3", "line 2"],
         files={"labels.csv": HEAD + "1,bob,1\n1,bob,2\n"}),
    Case("labels-study", f"{LABELS} --study nobody", ["nobody"],
         files={"labels.csv": HEAD + "1,bob,1\n"}),
    # words
    Case("pool-verb", "pool thaw january", ["thaw"]),
    Case("labels-verb", "labels publish", ["publish"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def worked_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lab that holds a window, a frozen pool and a label."""
    folder = tmp_path_factory.mktemp("worked-in")
    titles = ("Budget", "Twin", "Twin")
    rows = [{"title": title, "text": f"Text {n}."} for n, title in enumerate(titles)]
    (folder / "news.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "first.csv").write_text(HEAD + "1,ann,1\n")
    with Lab.open(f"sqlite:///{folder / '.judge-gym' / 'lab.db'}") as lab:
        window = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
        assert lab.load_evidence(window, "news.jsonl", folder=folder) == 3
        lab.evidence.freeze_pool("january", window_id=window)
        lab.labels.import_file(folder / "first.csv")
    return folder


@pytest.fixture
def folder(worked_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    copy = tmp_path / "work"
    shutil.copytree(worked_in, copy)
    monkeypatch.chdir(copy)
    for name in ("JUDGE_GYM_DATABASE_URL", "FIRECRAWL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return copy


def answered(words: list[str], capsys: pytest.CaptureFixture[str]) -> CommandResult:
    with pytest.raises(SystemExit) as end:
        main(words)
    said = capsys.readouterr()
    assert isinstance(end.value.code, int)
    return CommandResult(end.value.code, said.out, said.err)


def refuse(folder: Path, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """The call is refused in one line, in text and in JSON, and loses nothing."""
    for name, text in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    database = folder / ".judge-gym" / "lab.db"
    before = contents(database)
    said = answered(case.words.split(), capsys)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(r"judge-gym: .+\n", said.err)
    assert all(words in said.err for words in (*case.says, *case.choices))
    said = answered([*case.words.split(), "--json"], capsys)
    assert (said.code, said.err) == (2, "")
    error = said.json["error"]
    assert set(error) == {"kind", "message", "choices"}
    assert all(words in error["message"] for words in case.says)
    assert set(case.choices) <= set(error["choices"])
    assert contents(database) == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_bad_input_is_answered_in_one_line_and_loses_nothing(
    folder: Path, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse(folder, case, capsys)


def test_a_name_taken_by_another_pool_still_means_the_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.txt").write_text("Another text.")
    before = answered(["pool", "list", "--json"], capsys).json
    said = answered(["pool", "freeze", "january", "other.txt"], capsys)
    assert said.code == 2
    assert re.fullmatch(r"judge-gym: .*'january'.*another name\n", said.err)
    error = answered(["pool", "freeze", "january", "other.txt", "--json"], capsys).json["error"]
    assert error["kind"] == "conflict"
    assert answered(["pool", "list", "--json"], capsys).json == before


# --- odd cases -----------------------------------------------------------------------------------

STUDY = """\
study: small
evidence: {here: {files: news.jsonl, window: {country: V}}}
protocol: contested-concepts
tasks: [{type: ecc, concept: fascism, evidence: here}]
judges: ["sim:balanced"]
design: {evidence.editor: "sim:editor", rubric.critic: "sim:critic"}
"""
DEFECTS = [
    Case("window-zero", "evidence add news.jsonl --window 0", ["no window 0"]),
    # What a command cannot heed it must not swallow.
    Case("study-and-feed", "evidence add study.yaml --feed https://x/f", ["one origin"],
         files={"study.yaml": STUDY}),
    Case("study-and-files", "evidence add study.yaml news.jsonl", ["news.jsonl"],
         files={"study.yaml": STUDY}),
    Case("study-and-window", "evidence add study.yaml --window 1", ["--window"],
         files={"study.yaml": STUDY}),
    Case("files-and-query", "evidence add news.jsonl --country V --query court", ["--query"]),
    Case("files-and-again", "evidence add news.jsonl --country V --again", ["--again"]),
    Case("name-taken", "pool freeze january news.jsonl", ["'january'"]),
]  # fmt: skip


@pytest.mark.parametrize("case", DEFECTS, ids=lambda case: case.id)
def test_options_without_an_effect_are_refused(
    folder: Path, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse(folder, case, capsys)


@pytest.mark.parametrize("name", ["", " "])
def test_a_pool_without_a_name_is_refused(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answered(["pool", "freeze", name, "--window", "1"], capsys).code == 2
    listed = answered(["pool", "list", "--json"], capsys).json
    assert [pool["name"] for pool in listed] == ["january"]


def test_the_advice_for_an_empty_search_works(
    call: Call, web: Web, write_study: WriteStudy
) -> None:
    path = feed_study(write_study, put(web))
    said = call("run", path, "--allow-private", "--json")
    assert said.code == 2
    advised = re.search(r"judge-gym (evidence add .+)$", said.json["error"]["message"])
    assert advised is not None
    put(web, "budget")
    succeed(call(*advised[1].split(), "--allow-private"))
    assert succeed(call("run", path, "--json")).json["status"] == "complete"


def test_a_private_address_is_refused_with_the_name_of_the_flag(
    call: Call, web: Web, write_study: WriteStudy
) -> None:
    """The same command does not go on: only the flag does."""
    path = feed_study(write_study, put(web, "budget"))
    message = call("run", path, "--json").json["error"]["message"]
    assert "--allow-private" in message
    assert "the same command continues" not in message


def test_an_empty_list_of_labels_says_how_to_import(call: Call) -> None:
    succeed(call("db", "upgrade"))
    assert "judge-gym labels import" in succeed(call("labels", "list")).out
