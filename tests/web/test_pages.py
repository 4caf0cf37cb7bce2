"""What the server writes into its pages, read without a browser."""

import re
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from documents import parse, region, rows, text
from hostile import HOSTILE, PATHS, SHORT, TAG, hostile_lab
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.measures.consistency import conflicting_cells
from judge_gym.records.numbers import dollars
from judge_gym.stages.fidelity import check_view, split_at_flags
from judge_gym.store import tables as t
from judge_gym.web import analysis_cache
from judge_gym.web.pages import evidence
from judge_gym.web.pages.evidence import word_differences
from judge_gym.web.pages.home import PAGE
from lab_server import TEXTS, ServedLab, create, serve_lab

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("pages")) as opened:
        window = opened.lab.evidence.list_windows()[0]["window"]
        create(opened.lab, window, "pilot/subset", **{"verdict.method": "subset"})
        opened.lab.runs.run("pilot/subset", samples=2)
        opened.lab.evidence.freeze_pool("january", window_id=window)
        with opened.lab.store.database.begin() as connection:
            named = t.tags.c.tag.in_(["pilot", "pilot/strict", "pilot/subset"])
            connection.execute(t.tags.update().where(named).values(study="press"))
        yield opened


def page(lab: ServedLab, path: str, status: int = 200) -> Any:
    answer = lab.ask("GET", path, headers=HTML)
    assert answer.status_code == status, (path, answer.text[:500])
    return parse(answer.text)


@pytest.mark.parametrize(
    ("path", "words"),
    {
        "/": ["Home", "press", "3 experiments", "1 experiment without a study"],
        "/experiments": ["Experiments", "pilot/strict", "Compare selected", "Failed calls", "ecc"],
        "/experiments?judge=sim:cautious": ["later"],
        "/experiments?task_type=benchmark": ["No experiments match."],
        "/studies/press": ["Findings", "Items", "Compare", "Runs", "Design", "Report"],
        "/studies/press/design": ["What varies", "verdict.method", "subset", "fascism"],
        "/studies/press/runs": ["pilot/strict", "Log"],
        "/parts/study/sentence?study=press": ["Accuracy unknown"],
        "/parts/study/judges?study=press": ["balanced", "strict", "unknown", "Consistency"],
        "/parts/study/judges?study=press&columns=all": [
            "Disagrees with others",
            "Compare selected",
        ],
        "/parts/study/next?study=press": ["cannot be predicted: 3 items", "Other quantities"],
        "/studies/press/next": ["What to buy next", "Where the variance is", "item x setup"],
        "/parts/study/disputed?study=press": ["Where judges disagree most", "All 3 items"],
        "/new": ["New study", "Estimate", "Repeats per item", "verdict.method", "january"],
        "/evidence": ["Frozen pools", "january", "Windows", "Valdoria"],
        "/windows/1": ["Window 1: Valdoria", "calm", "tense", "harsh"],
        "/pools/january": ["3 items", "Use in a new study"],
        "/pools/january?against=january": ["None: both contain the same texts"],
        "/pools?experiment=pilot": ["Items of pilot", "calm"],
        "/evidence/1": ["Original", "View by sim:editor", "Experiments that judge it"],
        "/evidence/1?compare=words": ["every word that differs"],
        "/experiments/pilot": ["The judge is simulated", "complete", "Samples", "Rubrics"],
        "/experiments/later": ["This experiment has not been run"],
        "/compare": ["Comparing …"],
        "/compare?tag=pilot&tag=pilot/subset": ["Comparing …"],
        "/usage": ["Spend", "Download (CSV)", "By day", "By model", "sim:balanced"],
        "/suites": ["No suite runs yet"],
    }.items(),
)
def test_a_page_shows_its_subject(lab: ServedLab, path: str, words: list[str]) -> None:
    read = text(page(lab, path))
    assert [word for word in words if word not in read] == []


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/experiments/nothing", 404, "there is no experiment"),
        ("/experiments/pilot?status=odd", 422, "status"),
        ("/compare?study=nothing", 404, "nothing"),
        ("/studies/nothing", 404, "nothing"),
        ("/samples/999999", 404, "there is no sample 999999"),
        ("/samples/0", 422, "id"),
        ("/compare?tag=pilot&tag=nothing", 404, "there is no experiment"),
        ("/parts/compare?of=pilot&of=pilot/subset&a=x", 404, "unknown setup 'x'"),
        ("/figures/experiment/nothing.svg?tag=pilot", 404, "there is no figure"),
        ("/report/nothing", 404, "nothing"),
        ("/report/pilot/%2e%2e%2fx", 404, ""),
        ("/report/pilot/report.exe", 422, "file"),
        ("/nothing", 404, "not found"),
    ],
)
def test_an_error_is_a_page_that_says_what_is_wrong(
    lab: ServedLab, path: str, status: int, words: str
) -> None:
    shown = page(lab, path, status)
    assert words in text(shown.find(".//main"))
    assert "Studies" in text(shown.find(".//nav")), "the navigation stays"


def test_empty_form_fields_are_no_filter(lab: ServedLab) -> None:
    shown = page(lab, "/experiments/pilot?status=&stage=&evidence=")
    assert len(rows(shown.find(".//table[@id='sample-table']"))) == 15


# --- the items of a study ------------------------------------------------------------------------


def grid(lab: ServedLab, query: str = "") -> list[list[str]]:
    """Returns the title and the cells of each item."""
    table = page(lab, f"/studies/press/items?{query}").find(".//table[@id='items']")
    if table is None:
        return []
    titles = [text(link) for link in table.findall(".//tbody//a")]
    return [[title, *cells] for title, cells in zip(titles, rows(table), strict=True)]


def test_items_are_listed_by_the_disagreement_of_setups(lab: ServedLab) -> None:
    samples = [
        (tag, row)
        for tag in ("pilot", "pilot/strict", "pilot/subset")
        for row in lab.lab.experiments.list_samples(tag)
        if row["status"] == "scored" and not row["is_swap"]
    ]
    expected = {}
    for title in TEXTS:
        verdicts: dict[str, list[str]] = {}
        for tag, row in samples:
            if row["evidence_title"] == title:
                verdicts.setdefault(tag, []).append(row["stages"])
        differing = [
            sum(one != other for one, other in product(first, second)) / len(first) / len(second)
            for first, second in combinations(verdicts.values(), 2)
        ]
        expected[title] = sum(differing) / len(differing)
    listed = [(cells[0], float(cells[-1])) for cells in grid(lab)]
    assert dict(listed) == pytest.approx(expected, abs=0.006)
    assert listed == sorted(listed, key=lambda row: -row[1])
    assert [cells[0] for cells in grid(lab, "sort=position")] == [*TEXTS]


def test_items_are_searched_filtered_and_their_columns_chosen(lab: ServedLab) -> None:
    assert [cells[0] for cells in grid(lab, "search=DECREE")] == ["harsh"]
    [sample, *_] = lab.lab.experiments.list_answers("pilot/strict")
    words = (sample["text"] or "").splitlines()[0]
    found = grid(lab, urlencode({"search": words}))
    assert sample["evidence_title"] in [cells[0] for cells in found]
    assert grid(lab, "search=nowhere-to-be-found") == []
    assert grid(lab, "status=refused") == []
    assert {len(cells) for cells in grid(lab)} == {5}
    setups = [row["setup"] for row in lab.lab.experiments.list_setups("press")]
    two = urlencode({"setup": [setups[2], setups[0]]}, doseq=True)
    for cells, shown in zip(
        grid(lab, "sort=position"), grid(lab, f"sort=position&{two}"), strict=True
    ):
        assert shown[:-1] == [cells[0], cells[1], cells[3]]
    assert lab.ask("GET", "/studies/press/items?setup=unknown", headers=HTML).status_code == 404


def test_the_drawer_has_every_answer_and_leads_to_the_neighbours(lab: ServedLab) -> None:
    link = page(lab, "/studies/press/items").find(".//a[@data-item]").get("href")
    drawer = page(lab, link).find(".//dialog[@id='drawer']")
    [item, *_] = lab.lab.experiments.list_items("press")
    detail = lab.get(f"/api/items/{item['evidence']}", study="press", task=item["task"])
    cards = {card.get("data-setup"): card for card in drawer.iter("article")}
    assert cards.keys() == {answer["setup"] for answer in detail["answers"]}
    for answer in detail["answers"]:
        sections = cards[answer["setup"]].findall(".//section")
        assert len(sections) == len(answer["samples"])
        for sample, section in zip(answer["samples"], sections, strict=True):
            names = [stage[0] for stage in sample["rubric_stages"]]
            said = [names[int(stage) - 1] for stage in sample["stages"].split()]
            assert (" or ".join(said) or sample["status"]) in text(section)
            # Labels stand by their names, and the verdict above the answer.
            opening = re.split(r"\b[A-D]\b", sample["text"])[0]
            assert " ".join(opening.split()) in " ".join(text(section).split())
            assert not re.search(r"(of|VERDICT:) [A-D]\b", text(section))
    assert drawer.find(".//mark") is not None, "the words that differ are marked"
    assert drawer.find(".//a[@rel='prev']") is None
    following = page(lab, drawer.find(".//a[@rel='next']").get("href")).find(".//dialog")
    assert following.find(".//a[@rel='prev']").get("href") == link
    assert "2 of 3" in text(following)


def test_a_fresh_verdict_costs_one_call_and_changes_no_result(lab: ServedLab) -> None:
    [item, *_] = lab.lab.experiments.list_items("press")
    [sample, *_] = lab.lab.experiments.list_samples("pilot", evidence=item["evidence"])
    before = (lab.lab.experiments.samples("press"), lab.lab.reports.usage())
    [tag] = lab.post("/api/runs/sample", sample=sample["sample"])["started"]
    lab.lab.runs.run(tag, series="rerun-1", samples=1)
    after = (lab.lab.experiments.samples("press"), lab.lab.reports.usage())
    assert before[0].equals(after[0])
    assert sum(row["calls"] for row in after[1]) == sum(row["calls"] for row in before[1]) + 1
    query = urlencode({"of": item["task"], "item": item["evidence"]})
    assert "Fresh verdict (rerun-1)" in text(page(lab, f"/studies/press/items?{query}"))


# --- an experiment -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["status=scored", "stage=2", "swap=0", "swap=1", "conflicting=1&swap=0", "evidence=1"]
)
def test_the_samples_shown_are_those_of_the_filter(lab: ServedLab, query: str) -> None:
    samples = lab.lab.experiments.list_samples("pilot")
    frame = tidy(lab.lab.experiments.samples("pilot")).query("not is_swap")
    conflicting = set(conflicting_cells(frame)["evidence"])
    filters: dict[str, Callable[[Any], bool]] = {
        "status=scored": lambda row: row["status"] == "scored",
        "stage=2": lambda row: "2" in row["stages"].split(),
        "swap=0": lambda row: not row["is_swap"],
        "swap=1": lambda row: row["is_swap"],
        "conflicting=1&swap=0": lambda row: row["evidence"] in conflicting,
        "evidence=1": lambda row: row["evidence"] == 1,
    }
    table = page(lab, f"/experiments/pilot?{query}").find(".//table[@id='sample-table']")
    shown = [int(row[0]) for row in rows(table)] if table is not None else []
    assert sorted(shown) == sorted(row["sample"] for row in samples if filters[query](row))


def test_stages_count_the_verdicts_that_name_them(lab: ServedLab) -> None:
    samples = lab.lab.experiments.list_samples("pilot/strict")
    table = region(page(lab, "/parts/experiment?tag=pilot/strict"), "Stages")
    named = [
        sum(str(stage) in row["stages"].split() for row in samples if not row["is_swap"])
        for stage in range(1, 5)
    ]
    assert [int(row[1]) for row in rows(table)] == named


def test_every_rubric_is_shown_with_the_critics_scores(lab: ServedLab) -> None:
    shown = page(lab, "/experiments/pilot").findall(".//div[@id='rubric-list']/details")
    rubrics = lab.lab.experiments.list_rubrics("pilot")
    assert len(shown) == len(rubrics) > 0
    for card, rubric in zip(shown, rubrics, strict=True):
        read = text(card)
        scores = [f"{rubric[name]:.2f}" for name in ("observability", "discriminability")]
        assert all(word in read for word in (rubric["author"], *scores))
        assert all(criterion in read for stage in rubric["stages"] for criterion in stage)


def test_too_many_samples_for_a_page_are_refused(
    lab: ServedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_cache, "MAX_SAMPLES", 3)
    answer = lab.ask("GET", "/parts/experiment", params={"tag": "later"})
    assert answer.status_code == 200 and "There are no samples yet" in answer.text
    answer = lab.ask("GET", "/parts/experiment", params={"tag": "pilot/subset"})  # not cached
    assert answer.status_code == 422
    assert "6 samples are too many" in answer.json()["error"]["message"]


def test_figures_have_the_ink_of_their_theme(lab: ServedLab) -> None:
    parts = page(lab, "/parts/experiment?tag=pilot/strict")
    [source, *_] = [img.get("src") for img in parts.iter("img")]
    drawn = {}
    for theme, ink in analysis_cache.INKS.items():
        answer = lab.ask("GET", f"{source}&theme={theme}")
        assert answer.headers["content-type"] == "image/svg+xml"
        assert ink in answer.text and "currentColor" not in answer.text
        drawn[theme] = answer.text
    assert drawn["light"] != drawn["dark"]


# --- views of evidence ---------------------------------------------------------------------------


def test_what_a_view_adds_is_marked() -> None:
    source = "Twelve judges met in Bergen on 3 May, and 40 of 1,200 officials came."
    view = "In Oslo 12 judges met; 1,300 officials came on 3 May."
    found = split_at_flags(view, check_view(view, source, 150))
    assert "".join(part for part, _ in found) == view
    assert [part for part, flagged in found if flagged] == ["Oslo", "1,300"]


def test_words_are_compared_in_their_order_and_nothing_is_lost() -> None:
    source, view = "The old  king\nsaid no, twice.", "The king said yes, twice."
    differences = word_differences(source, view)
    assert differences is not None
    new, old = differences
    assert "".join(part for part, _ in new) == view
    assert "".join(part for part, _ in old) == source
    assert [part.strip() for part, differs in new if differs] == ["yes,"]
    assert [part.strip() for part, differs in old if differs] == ["old", "no,"]


def test_texts_that_are_too_long_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "COMPARABLE", 10)
    assert word_differences("one two three four", "one two three four") is None


# --- a sample ------------------------------------------------------------------------------------


def test_a_sample_shows_its_prompt_its_answer_and_the_line_that_decided(lab: ServedLab) -> None:
    samples = lab.lab.experiments.list_samples("pilot")
    row = [sample for sample in samples if sample["status"] == "scored"][-1]
    call = lab.get(f"/api/calls/{row['call_id']}")
    shown = page(lab, f"/samples/{row['sample']}")
    turns = ["".join(turn.itertext()) for turn in shown.findall(".//details[@class='turn']/pre")]
    messages = [message["content"] for message in call["messages"]]
    assert turns[: len(messages)] == messages
    answer = shown.find(".//pre[@id='answer']")
    assert text(answer) == " ".join(call["attempts"][-1]["body"].split())
    [mark] = answer.findall("mark")
    labels = dict(pair.split("=") for pair in row["display"].split())
    label = text(mark).removeprefix("VERDICT:").strip()
    assert labels[label] == row["stages"]
    display = rows(shown.find(".//table[@id='display']"))
    assert [cells[1] for cells in display] == list(labels)
    assert [cells[1:3] for cells in display if cells[5]] == [[label, row["stages"]]]
    [name] = [cells[3] for cells in display if cells[5]]
    assert text(shown.find(".//*[@id='verdict']")) == name
    probe = lab.get(f"/api/calls/{row['probe_call_id']}")
    assert probe["attempts"][-1]["body"].splitlines()[-1] in text(shown)


def test_neighbours_of_a_sample_are_those_of_the_filter(lab: ServedLab) -> None:
    ids = [
        row["sample"] for row in lab.lab.experiments.list_samples("pilot") if row["evidence"] == 1
    ]
    walked, path = [], f"/samples/{ids[0]}?tag=pilot&evidence=1"
    while path:
        walked.append(int(path.split("?")[0].rpartition("/")[2]))
        link = page(lab, path).find(".//a[@rel='next']")
        path = link.get("href") if link is not None else ""
    assert walked == ids


# --- runs ----------------------------------------------------------------------------------------


def test_bars_show_what_came_of_the_verdicts(lab: ServedLab) -> None:
    [study] = [row["study"] for row in lab.lab.experiments.list_studies()][:1]
    rows = [row for row in page(lab, f"/studies/{study}/runs").iter("tr") if row.get("data-tag")]
    for row in rows:
        runs = lab.lab.experiments.show(str(row.get("data-tag")))["runs"]
        if not runs:
            assert "not started" in text(row)
            continue
        targets, verdicts = runs[-1]["targets"], runs[-1]["verdicts"]
        todo = targets["score"] + targets["swap"] - sum(verdicts.values())
        [bar] = [bar for bar in row.iter("svg") if bar.get("class") == "outcomes"]
        label = str(bar.get("aria-label"))
        assert label.startswith(f"{verdicts.get('scored', 0)} scored, ")
        assert label.endswith(f"{verdicts.get('provider_error', 0)} failed, {todo} to do")
    assert len(rows) == len(lab.lab.list_experiments(study=study))


# --- compare -------------------------------------------------------------------------------------


def test_a_comparison_states_a_minus_b_whichever_side_a_setup_is_on(lab: ServedLab) -> None:
    frame = lab.lab.experiments.samples("pilot", "pilot/subset").query("status == 'scored'")

    def place(stages: str) -> float:
        named = [int(stage) for stage in stages.split()]
        return (sum(named) / len(named) - 1) / 3

    placed = frame.assign(place=frame["stages"].map(place))
    means = placed.groupby(["evidence", "tag"])["place"].mean().unstack().dropna()
    difference = (means["pilot/subset"] - means["pilot"]).mean()
    names = ("balanced, method subset", "balanced")
    for sign, (a, b) in ((1, names), (-1, names[::-1])):
        targets = [("of", "pilot"), ("of", "pilot/subset")]
        shown = page(lab, f"/parts/compare?{urlencode([*targets, ('a', a), ('b', b)])}")
        [stage] = [row for row in shown.iter("tr") if "Mean stage" in text(row)]
        assert text(stage).endswith(f"{sign * difference:+.2f}")
        heading = text(shown.find(".//h2"))
        assert heading.startswith(f"{a} and {b} are not told apart: 3 items")
        assert f"{abs(difference):.2f} {'higher' if sign * difference > 0 else 'lower'}" in heading
        swapped = f"/compare?{urlencode([*targets, ('a', b), ('b', a)])}"
        assert swapped in [str(link.get("href")) for link in shown.iter("a")]


# --- usage ---------------------------------------------------------------------------------------


def test_totals_are_those_of_the_ledger(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve_lab(tmp_path_factory.mktemp("paid")) as lab:
        with lab.lab.store.database.begin() as connection:
            strict = t.attempts.c.tag == "pilot/strict"
            connection.execute(t.attempts.update().values(usd=0.25, study="cheap"))
            connection.execute(t.attempts.update().where(strict).values(usd=1.5, study="dear"))
        shown = page(lab, "/usage")
        usage = {row["study"]: row for row in lab.lab.reports.usage(by=["study"])}
        paid = {cells[0]: cells[1] for table in shown.iter("table") for cells in rows(table)}
        assert {name: paid[name] for name in usage} == {
            name: dollars(row["usd"] or 0.0) for name, row in usage.items()
        }
        total = sum(row["usd"] or 0 for row in usage.values())
        assert text(shown.find(".//div[@class='figures']/div/b")) == dollars(total or 0.0)
        with lab.lab.store.database.begin() as connection:
            kept = dict(connection.execute(sa.select(t.attempts)).mappings().first() or {})
            connection.execute(
                t.attempts.insert(), [{**kept, "id": None, "usd": None, "study": "unpriced"}]
            )
        shown = page(lab, "/usage")
        paid = {cells[0]: cells[1] for table in shown.iter("table") for cells in rows(table)}
        assert paid["unpriced"] == "–", "an unknown price is not zero"
        assert text(shown.find(".//div[@class='figures']/div/b")).startswith("at least $")


@pytest.mark.parametrize("by", [["study"], ["model"], ["day", "stage"], ["tag", "imported"]])
def test_cached_sums_follow_the_ledger(
    tmp_path_factory: pytest.TempPathFactory, by: list[str]
) -> None:
    with serve_lab(tmp_path_factory.mktemp("sums")) as lab:
        known = [name for name in by if name != "imported"]

        def compare() -> None:
            row: Any
            for row in lab.lab.reports.usage(by=known):
                sums: list[Any] = [
                    sum_
                    for sum_ in lab.lab.pages.spending()
                    if all(sum_[name] == row[name] for name in (*known, "imported"))
                ]
                assert sum(sum_["calls"] for sum_ in sums) == row["calls"]
                assert sum(sum_["usd"] for sum_ in sums) == pytest.approx(row["usd"])
                assert sum(sum_["input_tokens"] for sum_ in sums) == row["input_tokens"]

        compare()
        with lab.lab.store.database.begin() as connection:
            kept = dict(connection.execute(sa.select(t.attempts)).mappings().first() or {})
            kept.pop("id")
            connection.execute(t.attempts.insert(), [kept] * 3)
        compare()
        with lab.lab.store.database.begin() as connection:
            newest = sa.select(sa.func.max(t.attempts.c.id)).scalar_subquery()
            connection.execute(t.attempts.delete().where(t.attempts.c.id == newest))
        compare()


# --- home ----------------------------------------------------------------------------------------


def test_the_list_of_experiments_paginates_in_both_directions(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with serve_lab(tmp_path_factory.mktemp("home"), run=False) as lab:
        window = lab.lab.evidence.list_windows()[0]["window"]
        for number in range(PAGE):
            config: dict[str, Any] = {"rubric.scale": 3 + number % 4}
            create(lab.lab, window, f"sweep/{number:02}", **config)

        def tags(shown: Any) -> list[str]:
            return [row.get("data-tag") for row in shown.iter("tr") if row.get("data-tag")]

        def follow(shown: Any, rel: str) -> Any:
            return page(lab, shown.find(f".//a[@rel='{rel}']").get("href"))

        first = page(lab, "/experiments")
        second = follow(first, "next")
        assert len(tags(first)) == PAGE
        every = sorted(row["tag"] for row in lab.lab.experiments.list())
        assert tags(first) + tags(second) == every
        assert tags(follow(second, "prev")) == tags(first)
        assert tags(follow(second, "first")) == tags(first)


def test_an_empty_lab_says_how_to_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve_lab(tmp_path_factory.mktemp("empty"), run=False) as lab:
        for tag in ("pilot", "pilot/strict", "later"):
            lab.lab.experiments.cleanup(tag, forget=True)
        read = text(page(lab, "/"))
        empty = lab.lab.create_window("2026-09-01", "2026-09-30", "Norvessa")
        lab.lab.create_experiment("waiting", empty, "sim:balanced", "ecc", "fascism", {})
        draft, listed = text(page(lab, "/experiments/waiting")), text(page(lab, "/experiments"))
    assert "No experiments yet" in read and "judge-gym demo" in read and "New study" in read
    assert "none yet" in draft and "judge-gym evidence make waiting" in draft
    assert "draft" in listed and "waiting" in listed


# --- hostile text --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with hostile_lab(tmp_path_factory.mktemp("hostile")) as opened:
        yield opened


@pytest.mark.parametrize("path", [path for path in PATHS if "report" not in path])
def test_hostile_text_is_escaped(hostile: ServedLab, path: str) -> None:
    answer = hostile.ask("GET", path, headers=HTML)
    assert answer.status_code == 200
    refuse_harm(answer.text)


@pytest.mark.parametrize("place", ["/studies/hostile", "/experiments/"])
def test_downloads_that_a_page_offers_exist(hostile: ServedLab, place: str) -> None:
    path = next(path for path in PATHS if path.startswith(place))
    links = [str(link.get("href")) for link in page(hostile, path).iter("a")]
    downloads = [link for link in links if link.startswith("/api/")]
    assert any("samples" in link for link in downloads), links
    for link in downloads:
        assert hostile.ask("GET", link).status_code == 200, link


def test_hostile_text_is_escaped_in_parts_of_pages(hostile: ServedLab) -> None:
    for path, query in (
        ("/parts/experiment", {"tag": TAG}),
        ("/parts/experiment/usage", {"tag": TAG}),
        ("/usage", {"study": "hostile"}),
    ):
        answer = hostile.ask("GET", path, params=query, headers=HTML)
        assert answer.status_code == 200
        refuse_harm(answer.text)
        for image in [image.get("src") for image in parse(answer.text).iter("img")][:2]:
            figure = hostile.ask("GET", str(image))
            assert figure.status_code == 200
            assert "<script" not in figure.text and "<img" not in figure.text


def refuse_harm(html: str) -> None:
    """Fails if text of a user or a model became an element, a link or a script."""
    tree = parse(html)
    assert HOSTILE not in html and SHORT not in html
    for element in tree.iter():
        assert element.get("id") != "evil" and element.tag not in ("base", "iframe", "math")
        assert not str(element.get("href", "")).lower().startswith("javascript:")
        assert not [name for name in element.attrib if name.startswith("on")]
        if element.tag == "script":
            assert str(element.get("src")).startswith("/static/")
