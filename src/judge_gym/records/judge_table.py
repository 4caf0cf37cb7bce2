"""The judge table: which setup to use, how good it is, and at what price."""

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from judge_gym.records.responses import UNTRUSTED, AnyRow, UntrustedText

MIN_CLUSTERS = 20
"""The number of clusters of items below which setups are not compared."""
Standing = Literal["best", "tied", "worse", "unknown"]
TruthKind = Literal["accuracy", "agreement"]
MeasureName = Literal["exact", "balanced", "weighted", "rank", "error"]
"""The measures that can decide standings; a declared loss is another."""
Decider = Literal["exact", "balanced", "weighted", "rank", "error", "loss"]
OTHER_RUBRIC = (
    "people labelled under another rubric than the judges, which wrote their own: the same stage "
    "number may mean something else"
)
"""What readers must know of agreement with people where a task gives no rubric."""
Unit = Literal["share", "points", "dollars", "seconds", "coefficient", "stages", "loss"]
"""How the values of a measure are written."""


class Quantity(TypedDict):
    """An estimate, whose interval is null where it is withheld."""

    value: float
    low: float | None
    high: float | None
    n: int
    """The number of items it is based on."""
    withheld: NotRequired[str]
    """Why there is no interval."""
    note: NotRequired[str]
    """What speaks against the number as it stands."""


class Quality(Quantity):
    """How often a setup is right, or agrees with people."""

    kind: TruthKind


class LabelScale(TypedDict):
    """What the labels are that verdicts are compared with."""

    kind: Literal["binary", "ordinal", "nominal"]
    labels: Annotated[list[str], UNTRUSTED]
    """Their names, of ordered ones from the lowest; numbers where they have no names."""
    positive: Annotated[str | None, UNTRUSTED]
    """The positive one of two, whose rate people care about; null if it is not known."""


class Confusion(TypedDict):
    """The verdicts of a setup crossed with labels, as shares of all items."""

    setup: UntrustedText
    verdicts: Annotated[list[str], UNTRUSTED]
    """The labels, then the statuses of answers without a score that occur."""
    labels: Annotated[list[str], UNTRUSTED]
    shares: list[list[float]]
    """A row per verdict, a column per label; all together sum to 1."""
    n: int
    """The number of items."""


class ColumnHead(TypedDict):
    """A column of the table."""

    name: str
    """A key of a row or of its `measures`."""
    title: str
    about: str
    """What it is, and which question it answers."""
    unit: Unit
    main: bool
    """Whether it is shown; the others are details."""


class PeopleRate(TypedDict):
    """What people would say of all items, estimated by labels of some and a setup's verdicts."""

    setup: UntrustedText
    quantity: UntrustedText
    """What is estimated, in words: `pass rate`; of ordered labels `mean (from 1 to 5)` where they
    are numbers in equal steps, else `mean stage`, from 0 to 1."""
    raw: Quantity
    """By the setup alone."""
    corrected: Quantity
    """By the labels and all verdicts of the setup."""
    method: Literal["prediction-powered"]
    labels: Quantity
    """By the labels alone."""
    rogan_gladen: Quantity | None
    labelled: int
    """The number of items with labels."""
    items: int
    warning: str
    """Why the corrected rate may not hold; empty if nothing speaks against it."""
    sentence: UntrustedText


class LengthEffect(TypedDict):
    """How verdicts of a setup depend on the length of the text at equal label."""

    setup: UntrustedText
    unit: Literal["doubling", "standard deviation"]
    effect: Quantity | None
    """The change in the share of positive verdicts, or in the mean stage from 0 to 1, per unit;
    null where too little is known."""
    failed: Quantity | None
    """On items with the negative label alone."""
    passed: Quantity | None
    sentence: UntrustedText


class ReplacementTest(TypedDict):
    """The alternative annotator test: whether a setup could replace one of the raters."""

    setup: UntrustedText
    epsilon: float
    """How far it may be behind the rater."""
    raters: int
    omega: float | None
    """The share of raters that it beats; null where something is missing."""
    advantage: float | None
    passed: bool | None
    published_omega: float | None
    """The same by the published procedure, which takes items as independent."""
    published_passed: bool | None
    missing: str
    sentence: UntrustedText


class PeopleMeasures(TypedDict):
    """People compared with each other, by the measures that setups have."""

    measures: dict[str, Quantity]


class ChosenQuality(Quantity):
    """The deciding measure of the recommended setup, corrected for its having been chosen."""

    kind: TruthKind
    method: Literal["test split", "cross-fitted", "single setup"]


class JudgeRow(TypedDict):
    """A setup: a model with a design and a source of its rubric.

    Shares lie between 0 and 1. Every quantity after `standing` may be null.
    """

    setup: UntrustedText
    """The model and what differs from the usual design: `gpt-4o, method subset`."""
    judge: str
    knobs: AnyRow
    """The level of each knob that varies between setups."""
    rubric: str
    """The source of its rubric: `own`, `provided` or a model."""
    tags: list[str]
    items: int
    verdicts: int
    """The number of verdicts that were asked, without failed calls."""
    failed_calls: int
    """The number of verdicts without an answer of the provider, which no share counts."""
    on_frontier: bool | None
    """Whether no setup is both at least as good and cheaper; null if either is unknown."""
    difference: Quantity | None
    """Its deciding measure minus that of the compared setup with the best estimate, on the items
    that all compared setups judged; null for that one."""
    at_most_worse: float | None
    """By how much the best setup is at most better; null if the standing is unknown."""
    truth: Quality | None
    """The share of known answers, or of people's labels, whichever more items have."""
    standing: Standing
    other_truth: Quality | None
    """The same for the other kind, where items have both."""
    measures: dict[str, Quantity]
    """The measures that fit the scale of the labels, and those that have no key of their own."""
    consistency: Quantity | None
    """The share of equal verdicts among pairs of repeats."""
    position_bias: Quantity | None
    """Among decided verdicts on pairs, the share for the response shown first minus the other."""
    abstained: Quantity | None
    unreadable: Quantity | None
    """The share of refused, truncated and unreadable answers."""
    usd_per_1000: Quantity | None
    """The median price of 1,000 verdicts, both orders of a pair being one."""
    seconds: Quantity | None
    """The median time of a verdict."""
    answered: Quantity | None
    """Among verdicts on items with a known answer or labels, the share with a score."""
    right_of_answered: Quantity | None
    """The quality among these."""
    majority: Quantity | None
    """The accuracy against the label that most raters gave; items on which raters tie are out."""
    disagreement: Quantity | None
    """The share of pairs of verdicts with another setup, on the same item, that differ."""


class KnobEffect(Quantity):
    """What a level of a knob does to the deciding measure, against the level that names leave out.

    It is the mean over items of the difference between setups that differ in this knob alone; its
    interval holds for all effects of the table together.
    """

    knob: str
    level: Annotated[Any, UNTRUSTED]
    base: Annotated[Any, UNTRUSTED]
    setups: int
    """The number of pairs of setups."""


class SplitUse(TypedDict):
    """The split that a table used: estimates are of test."""

    chosen_on: Literal["train", "dev", "test"]
    """The part on which the setup was chosen."""
    choice: int
    """The number of items with a known answer or labels in that part."""
    test: int
    uses: int
    """How many different estimates were read from test so far, this one among them."""


class JudgeTable(TypedDict):
    """The setups of studies or experiments, the best first, with a sentence on top."""

    sentence: UntrustedText
    chosen: Annotated[str | None, UNTRUSTED]
    """The setup that the sentence recommends."""
    chosen_quality: ChosenQuality | None
    kind: TruthKind | None
    """What `truth` of the rows is; null if accuracy is unknown."""
    measure: Decider
    """The measure that decides standings, the choice and its quality."""
    decides: UntrustedText
    """Which measure decides and why, and which label is positive; empty if accuracy is unknown."""
    scale: LabelScale | None
    """What the labels are; null without any, or where tasks have different ones."""
    people_with_each_other: Quantity | None
    """The share of equal labels among pairs of raters on the same items."""
    people: PeopleMeasures | None
    """Every measure for people with each other; null where no two rated an item."""
    constant: float | None
    """The deciding measure of always giving one answer, which needs no look at the items."""
    confusion: Confusion | None
    """Verdicts and labels of the chosen setup."""
    rate: PeopleRate | None
    """What people would say of all items, by the chosen setup."""
    length: LengthEffect | None
    """Whether the chosen setup prefers long texts."""
    alt_test: list[ReplacementTest]
    """Whether each setup could replace a rater; empty with fewer than three raters."""
    raters: int
    known_items: int
    """The number of items with a known answer or labels."""
    compared_items: int
    """The number of items on which setups were compared: all compared ones judged them."""
    clusters: int
    """The number of clusters among these; each item is its own where none is given."""
    margin: float | None
    """The size below which the study calls a difference negligible."""
    split: SplitUse | None
    simulated: str
    """A warning that judges were simulated; empty if none was."""
    notes: Annotated[list[str], UNTRUSTED]
    columns: list[ColumnHead]
    """The columns that any row has, in order: the deciding measure first."""
    effects: list[KnobEffect]
    """What each level of each varied knob does to quality."""
    rows: list[JudgeRow]


CORRECTED = (
    "The number in the sentence is corrected for having been chosen among several, so it may be "
    "worse than that of its row."
)
"""What readers must know where the sentence and a row give two numbers of one setup."""


def deciding_column(table: JudgeTable) -> ColumnHead | None:
    """Finds the column of the measure that decides standings, if accuracy is known."""
    return table["columns"][0] if table["kind"] is not None and table["columns"] else None


def people_deciding(table: JudgeTable) -> Quantity | None:
    """The deciding measure of people with each other, if two rated an item."""
    column, people = deciding_column(table), table["people"]
    return None if column is None or people is None else people["measures"].get(column["name"])


def differing_counts(table: JudgeTable) -> str:
    """Says on how many items columns rest, if these numbers differ."""
    counts: dict[str, set[int]] = {}
    for head in table["columns"]:
        values = [column_value(row, head["name"]) for row in table["rows"]]
        numbers = {quantity["n"] for quantity in values if quantity is not None}
        if head["main"] and numbers:
            counts[head["title"]] = numbers
    if len({number for numbers in counts.values() for number in numbers}) < 2:
        return ""
    by_count: dict[str, list[str]] = {}
    for title, numbers in counts.items():
        ends = dict.fromkeys(f"{end:,}" for end in (min(numbers), max(numbers)))
        by_count.setdefault(" to ".join(ends), []).append(title)
    listed = "; ".join(f"{', '.join(titles)}: {count}" for count, titles in by_count.items())
    return f"Items that each column rests on: {listed}."


def interval_units(table: JudgeTable) -> str:
    """Says what intervals are over: `60 items`, or `12 clusters of items`."""
    items, clusters = table["compared_items"], table["clusters"]
    if not items:
        return "items, by cluster where they have any"
    if clusters < items:
        return f"{clusters:,} clusters of items"
    return f"{items:,} item{'' if items == 1 else 's'}"


def sentences_on_chosen(table: JudgeTable) -> list[str]:
    """Lists what labels say of the chosen setup: people's rate, length, and replacing a rater."""
    tests = [test for test in table["alt_test"] if test["setup"] == table["chosen"]]
    entries = [table["rate"], table["length"], *tests]
    return [entry["sentence"] for entry in entries if entry is not None]


def is_corrected(table: JudgeTable) -> bool:
    """Whether the sentence's number is corrected for the choice among several setups."""
    quality = table["chosen_quality"]
    return quality is not None and quality["method"] == "cross-fitted"


def answer(table: JudgeTable) -> tuple[str, str]:
    """Splits the sentence of a table in what it recommends and what supports that.

    >>> row = {"setup": "gpt-4o, labels fixed"}
    >>> answer({"sentence": "Use gpt-4o, labels fixed: 82 %. Worse: a.", "rows": [row]})
    ('Use gpt-4o, labels fixed', '82 %. Worse: a.')
    >>> answer({"sentence": "Use “gpt-4o, labels fixed”: 82 %.", "rows": [row]})
    ('Use gpt-4o, labels fixed', '82 %.')
    >>> answer({"sentence": "Accuracy unknown: no labels.", "rows": [row]})
    ('Accuracy unknown', 'no labels.')
    """
    sentence = table["sentence"]
    for row in sorted(table["rows"], key=lambda row: -len(row["setup"])):
        for start in ("Use ", "Highest estimate: "):
            for name in (row["setup"], f"“{row['setup']}”"):
                if sentence.startswith((f"{start}{name}: ", f"{start}{name}, ")):
                    return start + row["setup"], sentence[len(start + name) + 2 :]
    head, _, details = sentence.partition(": ")
    return (head, details) if ". " not in head else (sentence, "")


def verdicts_by_label(confusion: Confusion) -> list[list[float] | None]:
    """Returns, for each label, the share of each verdict on the items that have it.

    A label that no item has is None.
    """
    columns = list(zip(*confusion["shares"], strict=True))
    return [
        [share / sum(column) for share in column] if sum(column) > 0 else None for column in columns
    ]


def column_value(row: JudgeRow, name: str) -> Quantity | None:
    """Finds the value of a column of `JudgeTable.columns`, if the row has one."""
    if name in row["measures"]:
        return row["measures"][name]
    value: Quantity | None = row.get(name)  # type: ignore[assignment]  # a key of Quantity
    return value
