"""People's labels stand beside verdicts: on items, in the drawer, on samples, in comparisons."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import pytest

from documents import parse, text
from judge_gym.client import Client
from judge_gym.records.numbers import difference_with_interval
from lab_server import ServedLab, serve_lab

WORDS = ("fail", "pass")
PEOPLE = {  # ann, ben, cem
    "=calm": ("pass", "pass", "pass"),
    "tense": ("fail", "pass", ""),
    "harsh": ("pass", "pass", "fail"),
    "plain": ("fail", "fail", "fail"),
    "unread": ("", "", ""),
}
TEXTS = {
    "=calm": "The budget was adopted unanimously and published in full.",
    "tense": "The regulator warned two stations and fined one.",
    "harsh": "Judges were dismissed by decree, an editor was detained.",
    "plain": "The session opened on time and closed early.",
    "unread": "A newspaper was banned.",
}
RATERS = ("ann", "ben", "cem")
SETUPS = ("balanced", "strict")
HTML = {"Accept": "text/html"}


def write_study(folder: Path) -> Path:
    with (folder / "texts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "text", *RATERS])
        writer.writerows([title, TEXTS[title], *labels] for title, labels in PEOPLE.items())
    stages = [{"label": word, "criteria": [f"it may {word}"]} for word in WORDS]
    (folder / "rubric.json").write_text(json.dumps({"stages": stages}))
    study = {
        "study": "checks",
        "samples": 3,
        "evidence": {"texts": {"files": "texts.csv", "labels": [*RATERS]}},
        "tasks": [{"concept": "quality", "evidence": "texts", "rubric": "rubric.json"}],
        "judges": [f"sim:{name}" for name in SETUPS],
        "probe": False,
    }
    (folder / "study.yaml").write_text(json.dumps(study))
    return folder / "study.yaml"


def write_known_answers(folder: Path) -> Path:
    answers = [{"title": title, "text": text, "truth": "fail"} for title, text in TEXTS.items()]
    (folder / "known.jsonl").write_text("\n".join(map(json.dumps, answers)))
    task = {"type": "benchmark", "concept": "quality", "evidence": "texts", "rubric": "rubric.json"}
    study = {
        "study": "known",
        "samples": 1,
        "evidence": {"texts": {"files": "known.jsonl"}},
        "tasks": [task],
        "judges": ["sim:balanced"],
        "probe": False,
    }
    (folder / "known.yaml").write_text(json.dumps(study))
    return folder / "known.yaml"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("people"), run=False) as opened:
        opened.lab.runs.run(str(write_study(opened.folder)))
        opened.lab.runs.run(str(write_known_answers(opened.folder)))
        yield opened


def page(lab: ServedLab, path: str) -> Any:
    answer = lab.ask("GET", path, headers=HTML)
    assert answer.status_code == 200, (path, answer.text[:500])
    return parse(answer.text)


def items(lab: ServedLab, **query: Any) -> list[str]:
    """The titles of the items that a page lists."""
    table = page(lab, f"/studies/checks/items?{urlencode(query)}").find(".//table[@id='items']")
    return [] if table is None else titles_of(table)


def titles_of(table: Any) -> list[str]:
    """The titles of the items in a table."""
    return [text(link) for link in table.findall(".//tbody//a")]


def usual_verdicts(lab: ServedLab, setup: str) -> dict[str, str]:
    """The verdict that a setup gave most often, by title; the later stage of a tie."""
    frame = lab.lab.experiments.samples("checks")
    own = frame[(frame["judge.model"] == f"sim:{setup}")]
    found = {}
    for title, part in own.groupby("evidence_title"):
        scored = Counter(part.loc[part["status"] == "scored", "stages"])
        if scored:
            stage = max(scored, key=lambda stage: (scored[stage], stage))
            found[str(title)] = WORDS[int(stage) - 1]
        else:
            found[str(title)] = Counter(part["status"]).most_common(1)[0][0]
    return found


def majority(title: str) -> str:
    counts = Counter(label for label in PEOPLE[title] if label).most_common()
    if not counts:
        return ""
    return "divided" if len(counts) > 1 and counts[0][1] == counts[1][1] else counts[0][0]


def test_each_item_has_the_labels_of_people_in_words(lab: ServedLab) -> None:
    table = page(lab, "/studies/checks/items?sort=position").find(".//table[@id='items']")
    column = [text(cell) for cell in table.iter("td") if cell.get("data-name") == "people"]
    assert column == ["pass ×3", "fail ×1 pass ×1", "pass ×2 fail ×1", "fail ×3", "–"]
    assert "stage" not in text(table)


def test_items_furthest_from_people_come_first(lab: ServedLab) -> None:
    frame = lab.lab.experiments.samples("checks")
    scored = frame[frame["status"] == "scored"]
    distances = {}
    for title, labels in PEOPLE.items():
        stages = [WORDS.index(label) + 1 for label in labels if label]
        by_setup = [
            sum(abs(int(verdict) - stage) for verdict in part["stages"] for stage in stages)
            / len(part)
            / len(stages)
            for _, part in scored[scored["evidence_title"] == title].groupby("tag")
            if stages
        ]
        if by_setup:
            distances[title] = sum(by_setup) / len(by_setup)
    listed = lab.get("/api/items", study="checks", sort="people")["items"]
    given = {row["title"]: row["from_people"] for row in listed if row["from_people"] is not None}
    assert given == pytest.approx(distances)
    assert [*given.values()] == sorted(given.values(), reverse=True)
    assert listed[-1]["title"] == "unread" and listed[-1]["people"] == {}


@pytest.mark.parametrize("setup", SETUPS)
def test_disagreements_are_items_whose_verdict_is_not_what_most_people_said(
    lab: ServedLab, setup: str
) -> None:
    verdicts = usual_verdicts(lab, setup)
    expected = {
        title
        for title, verdict in verdicts.items()
        if majority(title) in WORDS and verdict != majority(title)
    }
    assert {*items(lab, setup=setup, differs=1)} == expected
    shown = page(lab, f"/studies/checks/items?{urlencode({'setup': setup})}")
    marked = {
        text(row.find(".//a"))
        for row in shown.find(".//table[@id='items']").iterfind(".//tbody/tr")
        if row.find(".//b[@class='wrong']") is not None
    }
    assert marked == {title for title in expected if verdicts[title] in WORDS}
    lists = {
        text(link): link.get("href") for link in shown.find(".//nav[@aria-label='Lists of items']")
    }
    [link] = [href for name, href in lists.items() if name.startswith("Disagreements")]
    followed = page(lab, link).find(".//table[@id='items']")
    assert {*titles_of(followed)} == expected


def test_each_number_of_the_confusion_table_leads_to_as_many_items(lab: ServedLab) -> None:
    shown = page(lab, "/parts/study/judges?study=checks")
    table = shown.find(".//table[@class='confusion']")
    title = text(shown.find(".//section[@aria-label='Verdicts and labels']//h2"))
    setup = title.removeprefix("People said, ").removesuffix(" said")
    verdicts = usual_verdicts(lab, setup)
    expected = Counter((verdicts[title], majority(title)) for title in PEOPLE if majority(title))
    heads = [text(head).replace(" ", "_") for head in table.findall(".//thead/tr/th")]
    found: Counter[tuple[str, str]] = Counter()
    for row in table.iterfind(".//tbody/tr"):
        label = text(row.find("th"))
        for verdict, cell in zip(heads, row.iter("td"), strict=True):
            link = cell.find("a")
            if link is None:
                assert text(cell) == "0"
                continue
            listed = page(lab, link.get("href")).find(".//table[@id='items']")
            assert {*titles_of(listed)} == {
                title for title in PEOPLE if (verdicts[title], majority(title)) == (verdict, label)
            }
            found[verdict, label] = int(text(link))
    assert found == expected


def test_the_drawer_and_a_sample_name_each_rater_and_the_label(lab: ServedLab) -> None:
    [item] = [
        row for row in lab.get("/api/items", study="checks")["items"] if row["title"] == "harsh"
    ]
    detail = lab.get(f"/api/items/{item['evidence']}", study="checks", task=item["task"])
    assert detail["labels"] == [
        {"rater": rater, "label": label}
        for rater, label in zip(RATERS, PEOPLE["harsh"], strict=True)
    ]
    query = urlencode({"of": item["task"], "item": item["evidence"]})
    drawer = text(page(lab, f"/studies/checks/items?{query}").find(".//dialog[@id='drawer']"))
    assert "ann pass" in drawer and "cem fail" in drawer and "stage" not in drawer
    sample = detail["answers"][0]["samples"][0]
    people = page(lab, f"/samples/{sample['sample']}").find(".//dd[@id='people']")
    assert text(people) == "ann: pass; ben: pass; cem: fail"


def test_a_comparison_names_the_labels_of_items_on_which_setups_differ(lab: ServedLab) -> None:
    found = lab.lab.reports.compare("checks", a="balanced", b="strict")
    assert found["items"], "simulated judges that never differ test nothing"
    for item in found["items"]:
        counts = Counter(label for label in PEOPLE[item["title"]] if label)
        assert item["people"] == counts
    shown = page(lab, "/parts/compare?of=checks&a=balanced&b=strict")
    cells = [text(cell) for cell in shown.iter("td") if cell.get("data-name") == "People"]
    assert len(cells) == len(found["items"])
    assert (
        cells[0]
        == ", ".join(
            f"{label} ×{n}" for label, n in Counter(found["items"][0]["people"]).most_common()
        )
        or "–" in cells[0]
    )


def test_a_comparison_writes_its_difference_as_reports_do(lab: ServedLab) -> None:
    found = lab.lab.reports.compare("checks", a="balanced", b="strict")
    unit, difference = found["columns"][0]["unit"], found["difference"]
    assert difference is not None
    shown = page(lab, "/parts/compare?of=checks&a=balanced&b=strict")
    assert difference_with_interval(difference, unit) in [text(cell) for cell in shown.iter("td")]


def test_an_export_has_labels_texts_and_answers_on_request(lab: ServedLab) -> None:
    with Client(lab.url, token=lab.local) as client:
        body = client.samples_file("checks", include=["labels", "text", "answer"])
        assert client.experiments.export_csv(["checks"], include=["labels"]).count("label.") == 3
    frame = pd.read_csv(io.BytesIO(body), keep_default_na=False)
    answers = {row["sample"]: row["text"] for row in lab.lab.experiments.list_answers("checks")}
    for row in frame.to_dict("records"):
        title = row["evidence_title"].removeprefix("'")
        assert tuple(row[f"label.{rater}"] for rater in RATERS) == PEOPLE[title]
        assert row["text"] == TEXTS[title]
        assert row["answer"] == answers[row["sample"]]
    assert "'=calm" in set(frame["evidence_title"]), "a spreadsheet must not compute it"
    plain = lab.ask("GET", "/api/samples/file", params={"target": "checks"}).text
    assert "label." not in plain and not {"text"} & {*plain.splitlines()[0].split(",")}


def test_an_unknown_column_of_an_export_is_refused(lab: ServedLab) -> None:
    query = {"target": "checks", "include": "labls"}
    refused = lab.ask("GET", "/api/samples/file", params=query)
    assert refused.status_code == 422 and "labels" in refused.text


def test_what_can_be_chosen_are_the_words_of_the_study(lab: ServedLab) -> None:
    shown = page(lab, "/studies/checks/items?setup=strict&label=divided")
    options = {
        field.get("name"): [option.get("value") for option in field.iter("option")]
        for field in shown.iter("select")
    }
    assert options["label"] == ["", "fail", "pass", "divided"]
    assert {*options["verdict"]} >= {"", *usual_verdicts(lab, "strict").values()} & {"", *WORDS}
    assert items(lab, label="divided") == ["tense"]
    current = [text(link) for link in shown.iter("a") if link.get("aria-current") == "true"]
    assert current == [], "a list that is narrowed further is none of the saved ones"


def test_known_answers_are_crossed_with_verdicts_where_they_decide(lab: ServedLab) -> None:
    frame = lab.lab.experiments.samples("known")
    passed = {*frame.loc[frame["stages"] == "2", "evidence_title"]}
    assert passed, "a judge that is always right tests nothing"
    shown = page(lab, "/parts/study/judges?study=known")
    table = shown.find(".//table[@class='confusion']")
    assert text(shown.find(".//section[@aria-label='Verdicts and known answers']//h2")).startswith(
        "Known answer, "
    )
    column = [text(head) for head in table.findall(".//thead/tr/th")].index("pass")
    [row] = [row for row in table.iterfind(".//tbody/tr") if text(row.find("th")) == "fail"]
    link = row.findall("td")[column].find("a")
    assert text(link) == str(len(passed))
    listed = page(lab, link.get("href")).find(".//table[@id='items']")
    assert {*titles_of(listed)} == passed
    wrong = page(lab, "/studies/known/items?wrong=1").find(".//table[@id='items']")
    assert {*titles_of(wrong)} >= passed
    known = [text(cell) for cell in wrong.iter("td") if cell.get("data-name") == "known"]
    assert {*known} == {"fail"}
