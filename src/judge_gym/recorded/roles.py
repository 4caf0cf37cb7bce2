"""Finds what each column of a table is: by its values first, by its name second."""

import itertools
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd

from judge_gym.axes import FOREIGN, Design
from judge_gym.errors import nearest, unknown
from judge_gym.recorded.options import WHO_REASON, FileOptions, Role, RoleName
from judge_gym.recorded.scales import (
    LONGEST_LABEL,
    MISSING_WORDS,
    MOST_LABELS,
    POSITIVE_WORDS,
    as_number,
    number_word,
    positive_of,
    read_comparisons,
)
from judge_gym.recorded.tables import Table
from judge_gym.records.evidence import FIELD_NAMES

NEARLY_FULL = 0.9
"""The share of rows from which a column of labels looks like a judge's."""
MOST_NAMES = 200
CONTRADICTIONS = 0.2
"""The share of items on which a person may say two things in a long table."""
LONG_TEXT = 20
"""The mean number of characters from which cells are texts."""
NAMES: Mapping[str, frozenset[str]] = {
    role: frozenset(words.split())
    for role, words in {
        "item": "id item items uid uuid key case example sample ticket row question instance index "
        "title name",
        "judge": "judge judges llm model models evaluator grader autorater autograder verdict "
        "verdicts prediction predictions pred predicted gpt chatgpt claude haiku sonnet opus "
        "gemini gemma llama mistral mixtral qwen deepseek grok phi command nova o1 o3 o4 ai bot",
        "person": "human humans person people label labels labeled labelled labeler labeller gold "
        "annotator annotators annotation annotations rater raters expert experts reviewer "
        "reviewers crowd worker coder manual",
        "truth": "truth groundtruth",
        "repeat": "repeat repeats repetition replicate run trial iteration attempt epoch draw pass",
        "cluster": "cluster conversation conv thread session dialogue dialog document doc group "
        "outlet event topic user customer author",
        "length": "length len chars characters tokens words",
        "usd": "usd cost price dollars",
        "seconds": "seconds secs latency duration elapsed",
        "system": "system systems version variant arm candidate release",
        "rationale": "rationale reason reasons reasoning explanation justification critique",
        "knob": "prompt temperature template setting strategy rubric config",
        "verdict": "verdict score rating label grade decision vote choice answer result judgment "
        "judgement preference winner",
    }.items()
}
"""Words in names of columns, by the role that they suggest."""
WHO_WORDS = frozenset(
    "judge judges llm model evaluator grader autorater autograder annotator rater labeler labeller "
    "reviewer expert worker coder person who by".split()
)
"""Words in the name of a column that names who judged or labelled."""
TEXT_NAMES = (
    *("text", "output", "response", "answer", "completion", "reply", "generation", "content"),
    *("message", "summary", "translation", "body", "input", "question", "prompt", "instruction"),
)
"""Names of columns with what is judged, the likeliest first."""
QUESTION_NAMES = ("question", "prompt", "input", "instruction", "query", "text", "context")
PAIR_MARKS = (("a", "b"), ("1", "2"), ("first", "second"), ("left", "right"), ("one", "two"))
GENERIC = NAMES["verdict"] | {"judge", "llm", "model", "prediction", "pred", "ai"}
"""Words that name no judge."""
NUMBERED = re.compile(r"(?P<stem>.*?[^\d._\s-])[._\s-]*(?P<number>\d+)")
TRUTH_NAMES = ({"correct", "label"}, {"true", "label"}, {"expected", "label"})
"""The words of names of known answers, if the values are labels."""
TRUTH_OR_TEXT_NAMES = (
    *({"expected"}, {"target"}, {"reference"}, {"ideal"}, {"y", "true"}, {"y", "test"}),
)
"""The words of names of known answers, if other columns have the same labels."""
LABEL_NOUNS = frozenset("label labels labeled labelled annotation annotations".split())
"""Words for labels, whoever gave them."""
TRUTH_VALUES = frozenset("true false t f yes no y n 0 1".split())
WRITER_WORDS = frozenset({"model", "llm"})
"""Words in the name of a column that names who judged, or who wrote what is judged."""
MODEL_NAME = re.compile(
    r"gpt|claude|haiku|sonnet|opus|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|grok|\bo[134]\b|sim:",
    re.IGNORECASE,
)
HUMAN_KINDS = frozenset(
    "human humans person people annotator annotation rater reviewer expert manual crowd".split()
)
"""Values of a column of kinds that say that a person gave the label of the row."""
MACHINE_KINDS = frozenset(
    "llm model ai judge machine auto automatic automated code bot autorater api eval".split()
)
PERSON_PREFIX = "label."
"""What stands before a rater in an export of people's labels."""


@dataclass(frozen=True)
class Column:
    """A column with what its values say about it."""

    name: str
    values: pd.Series

    @cached_property
    def counts(self) -> pd.Series:
        """The values that are not empty, the most frequent first."""
        return self.values[self.values != ""].value_counts()

    @cached_property
    def filled(self) -> int:
        """The number of cells that are not empty."""
        return int(self.counts.sum())

    @cached_property
    def full(self) -> float:
        """The share of cells that hold a value, no word for a missing one."""
        values = self.counts.head(MOST_NAMES).items()
        missing = sum(int(n) for value, n in values if str(value).casefold() in MISSING_WORDS)
        return float(self.filled - missing) / max(len(self.values), 1)

    @cached_property
    def length(self) -> float:
        """The mean number of characters of its values."""
        total = sum(len(str(value)) * int(number) for value, number in self.counts.items())
        return total / max(self.filled, 1)

    @cached_property
    def numeric(self) -> bool:
        """Whether all values are numbers, apart from words for a missing one."""
        values = [str(value) for value in self.counts.index]
        given = [value for value in values if value.casefold() not in MISSING_WORDS]
        return bool(given) and all(as_number(value) is not None for value in given)

    @cached_property
    def labels(self) -> frozenset[str]:
        """Its values as labels are compared: in small letters, 2.0 as 2; empty if it has none."""
        values = [str(value) for value in self.counts.index[: 2 * MOST_LABELS]]
        if len(self.counts) > 2 * MOST_LABELS or any(len(v) > LONGEST_LABEL for v in values):
            return frozenset()
        if self.length >= LONG_TEXT and len(values) > self.filled / 2:
            return frozenset()  # texts, of which some stand twice
        folded = {fold(value) for value in values} - MISSING_WORDS
        repeated = len(self.counts) < self.filled or len(self.values) < 8
        return frozenset(folded) if repeated and len(folded) <= MOST_LABELS else frozenset()

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        words = name_words(self.name)
        return frozenset(words) | {word.rstrip("0123456789") for word in words} - {""}

    def named(self, role: str) -> bool:
        """Whether its name suggests a role; labels are a person's, but gpt_label is a judge's."""
        words = self.words & NAMES[role]
        if role == "person" and (self.words & NAMES["judge"] or MODEL_NAME.search(self.name)):
            words -= LABEL_NOUNS
        return bool(words)

    @property
    def generic(self) -> bool:
        """Whether its labels are numbers or truth values, which columns of any kind may hold."""
        return self.numeric or self.labels <= TRUTH_VALUES


def fold(value: str) -> str:
    """Returns a value as labels are compared."""
    number = as_number(value)
    return number_word(number) if number is not None else " ".join(value.casefold().split())


def name_words(name: str) -> list[str]:
    """Splits the name of a column into its words.

    >>> name_words("modelName_2"), name_words("ground-truth")
    (['model', 'name', '2'], ['ground', 'truth'])
    """
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+\d*(?=[^a-z\d]|$)|[a-z]+|\d+", spaced.lower())


@dataclass
class Layout:
    """Which column has which role."""

    item: str | None = None
    text: str | None = None
    parts: dict[str, str] = field(default_factory=dict)
    """The column of each named part of the items, beside the text, which may be one."""
    responses: tuple[str, str] | None = None
    judges: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Of a wide table: the judge and the repeat of each column of verdicts."""
    raters: dict[str, str] = field(default_factory=dict)
    """The rater of each column of a person's labels."""
    who: str | None = None
    """Of a long table: the column that names who gave the verdict or label of the row."""
    people: frozenset[str] = frozenset()
    """Who of them are people."""
    ignored: frozenset[str] = frozenset()
    """Who of them is neither, as the user has named the judges."""
    verdict: str | None = None
    """Of a long table: the column of verdicts or labels."""
    truth: str | None = None
    repeat: str | None = None
    cluster: str | None = None
    length: str | None = None
    usd: str | None = None
    seconds: str | None = None
    system: str | None = None
    rationale: str | None = None
    knobs: dict[str, str] = field(default_factory=dict)
    """The name of the knob that each column sets."""
    roles: list[Role] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unused: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    """What columns without a role may be, where no column has verdicts."""


SINGLE: tuple[RoleName, ...] = (
    *("item", "text", "truth", "repeat", "cluster", "length", "usd", "seconds", "system"),
    "rationale",
)


def find_layout(
    table: Table, options: FileOptions, *, labels_only: bool = False, judged: bool = True
) -> Layout:
    """Finds the role of each column.

    Args:
        table: the table.
        options: what the user says; other roles are proposed.
        labels_only: whether the table has people's labels alone.
        judged: whether it has verdicts; otherwise labels without a judge's name are people's.
    """
    return _Finder(table, options, labels_only, judged).find()


class _Finder:
    """Finds roles one after the other; a column has one role."""

    def __init__(self, table: Table, options: FileOptions, labels_only: bool, judged: bool) -> None:
        self.table, self.options = table, options
        self.labels_only, self.judged = labels_only, judged
        self.columns = {str(name): Column(str(name), table.frame[name]) for name in table.frame}
        self.rows = len(table.frame)
        self.layout = Layout()
        self.taken: set[str] = set()

    def find(self) -> Layout:
        """Finds all roles."""
        self._take_options()
        self._find_by_name()
        self._find_texts()
        self._find_who()
        self._find_item()
        self._find_repeated_items()
        if self.layout.who:
            self._find_long_verdict()
        self._find_labels()
        self.layout.unused = tuple(name for name in self.columns if name not in self.taken)
        if not self.layout.judges and self.layout.who is None:
            self.layout.hints = _hints([self.columns[name] for name in self.layout.unused])
        return self.layout

    # --- what the user says ----------------------------------------------------------------------

    def _take_options(self) -> None:
        options = self.options
        for role in SINGLE:
            column = getattr(options, role)
            if column is not None and self._exists(column, f"--{role}"):
                setattr(self.layout, role, column)
                self._take(column, role, "as you say", f"--{role} {shlex.quote(column)}")
        if options.responses and all(self._exists(c, "--responses") for c in options.responses):
            self._take_pair(options.responses, "as you say", certain=True)
        for column in options.knobs:
            if self._exists(column, "--knob"):
                self._take_knob(column, "as you say", certain=True)

    def _exists(self, column: str, option: str) -> bool:
        if column in self.columns:
            return True
        names = list(self.columns)
        near = nearest(column, names, 8) if len(names) > 8 else names
        self.layout.problems.append(f"{option}: {unknown('column', column, near)}")
        return False

    def _take(
        self, column: str, role: RoleName, reason: str, option: str, *, certain: bool = True
    ) -> None:
        self.taken.add(column)
        self.layout.roles.append(Role(column, role, reason, certain, option))

    def _take_single(
        self, column: str, role: RoleName, reason: str, *, certain: bool = True
    ) -> None:
        setattr(self.layout, role, column)
        self._take(column, role, reason, f"--{role} {shlex.quote(column)}", certain=certain)

    def _take_knob(self, column: str, reason: str, *, certain: bool) -> None:
        name = (
            column if column in Design.knobs() or column.startswith(FOREIGN) else FOREIGN + column
        )
        self.layout.knobs[column] = name
        self._take(column, "knob", reason, f"--knob {shlex.quote(column)}", certain=certain)

    def _take_pair(self, pair: tuple[str, str], reason: str, *, certain: bool) -> None:
        self.layout.responses = pair
        option = f"--responses {shlex.quote(','.join(pair))}"
        self._take(pair[0], "response_a", reason, option, certain=certain)
        self._take(pair[1], "response_b", reason, option, certain=certain)

    def _free(self, fits: Callable[[Column], bool]) -> list[Column]:
        """Returns the columns without a role that fit, in the order of the table."""
        declared = {*self.options.judges, *self.options.people}
        return [
            column
            for name, column in self.columns.items()
            if name not in self.taken and name not in declared and column.filled and fits(column)
        ]

    # --- names and values ------------------------------------------------------------------------

    def _find_by_name(self) -> None:
        """Finds columns that their name tells, if their values agree."""
        rules: tuple[tuple[RoleName, str, Callable[[Column], bool]], ...] = (
            ("usd", "numbers, by its name", lambda c: c.numeric),
            ("seconds", "numbers, by its name", lambda c: c.numeric and "ms" not in c.words),
            ("length", "numbers, by its name", lambda c: c.numeric and len(c.counts) > 2),
            ("rationale", "texts, by its name", lambda c: c.length > LONG_TEXT),
        )
        for role, reason, fits in rules:
            if getattr(self.layout, role) is None:
                candidates = self._free(lambda c, role=role, fits=fits: c.named(role) and fits(c))  # type: ignore[misc]
                if candidates:
                    self._take_single(
                        candidates[0].name, role, reason, certain=len(candidates) == 1
                    )
        if self.layout.truth is None:
            candidates = self._free(
                lambda c: (
                    (
                        bool(c.words & NAMES["truth"] or {"known", "answer"} <= c.words)
                        or (bool(c.labels) and c.words in TRUTH_NAMES)
                        or (c.words in TRUTH_OR_TEXT_NAMES and self._shares_labels(c))
                    )
                    and c.length <= LONGEST_LABEL
                )
            )
            if candidates:
                self._take_single(candidates[0].name, "truth", "known answers, by its name")

    # --- texts -----------------------------------------------------------------------------------

    def _find_texts(self) -> None:
        texts = self._free(self._is_text)
        if self.layout.responses is None:
            named = self._free(lambda c: not c.numeric and bool(c.words & {*TEXT_NAMES}))
            candidates = [
                *texts,
                *(c for c in named if c not in texts and not self._many_labels(c)),
            ]
            pair = next((pair for pair in _pairs(candidates)), None)
            reason = "texts whose names are a pair"
            if pair is None:
                pair = next(self._pairs_by_labels(texts), None)
                reason = "texts whose names differ by words that are labels"
            if pair:
                self._take_pair((pair[0].name, pair[1].name), reason, certain=True)
                texts = [column for column in texts if column not in pair]
        if self.layout.text is not None or not texts:
            return
        if any(column.name.lower() in FIELD_NAMES for column in texts):
            texts += self._free(
                lambda c: (
                    c.name.lower() == "output" and c not in texts and not self._shares_labels(c)
                )
            )
        order = QUESTION_NAMES if self.layout.responses else TEXT_NAMES
        ranked = sorted(texts, key=lambda c: (_rank(c, order), -c.length))
        best = ranked[0]
        alone = len(texts) == 1 or _rank(best, order) < _rank(ranked[1], order)
        parts = {} if self.layout.responses else self._parts_beside(best)
        unused = [column.name for column in ranked[1:] if column.name not in parts.values()]
        reason = f"long texts; not {', '.join(unused)}" if unused else "long texts"
        self._take_single(best.name, "text", reason, certain=alone)
        self.layout.parts = parts
        for column in parts.values():
            if column != best.name:
                self._take(column, "part", "by its name", f"--text {shlex.quote(best.name)}")

    def _pairs_by_labels(self, texts: Sequence[Column]) -> Iterator[tuple[Column, Column]]:
        """Yields texts whose names differ by words that another column has as labels."""
        for first, second in itertools.combinations(texts[:MOST_LABELS], 2):
            words, second_words = set(name_words(first.name)), set(name_words(second.name))
            marks = words ^ second_words
            if len(words - second_words) == len(second_words - words) == 1 and any(
                marks <= column.labels for column in self.columns.values()
            ):
                yield first, second

    def _parts_beside(self, text: Column) -> dict[str, str]:
        """Returns columns such as input and reference beside an output, by the part's name."""
        if text.name.lower() not in FIELD_NAMES:
            return {}
        columns = {c.name.lower(): c for c in self._free(lambda c: not self._shares_labels(c))}
        columns[text.name.lower()] = text
        parts = {name: columns[name].name for name in FIELD_NAMES if name in columns}
        return parts if len(parts) > 1 else {}

    def _shares_labels(self, column: Column) -> bool:
        """Whether a column holds labels: usual ones, or those of another column."""
        if not column.labels:
            return False
        others = (other for other in self.columns.values() if other is not column)
        return column.labels <= LABEL_WORDS or any(_alike(column, other) for other in others)

    def _many_labels(self, column: Column) -> bool:
        """Whether a column repeats few values, in a table long enough to say so."""
        return bool(column.labels) and self.rows >= 8

    def _is_text(self, column: Column) -> bool:
        if column.numeric or self._many_labels(column):
            return False
        if column.words == {"text"}:
            return True
        named = bool(column.words & {*TEXT_NAMES, *QUESTION_NAMES})
        if column.named("item") and "id" in column.words:
            return False
        spaces = column.values[column.values != ""].head(200).str.contains(" ").mean()
        long = column.length >= LONG_TEXT and spaces > 0.5
        if long or (named and spaces > 0.3 and len(column.counts) > 2):
            return True
        plain = "text" in column.words or (named and len(column.counts) > self.rows / 2)
        return plain and not column.labels & LABEL_WORDS and len(column.counts) > 1

    # --- long tables -----------------------------------------------------------------------------

    def _find_who(self) -> None:
        """Finds the column that names who gave the verdict of its row."""
        options = self.options
        if self.labels_only:
            declared: tuple[str, ...] = options.people
        else:
            declared = (*options.judges, *options.people)
        named = [
            name
            for name in dict.fromkeys(declared)
            if name in self.columns
            and self._names_raters(self.columns[name])
            and (self._says_who(self.columns[name]) or self._tells_apart_with(name))
        ]
        if len(named) == 1:
            names = {*map(str, self.columns[named[0]].counts.index)}
            if all(name in self.columns or name in names for name in declared):
                people = named[0] in options.people
                self._take_who(named[0], certain=True, everybody=people)
                return
        candidates = self._free(lambda c: self._names_raters(c) and self._says_who(c))
        if not candidates and self.labels_only:
            candidates = self._free(
                lambda c: self._names_raters(c) and self._tells_apart_with(c.name)
            )
        scores = {part.column for part in read_comparisons(self.options.score)}
        verdicts = self._free(
            lambda c: (
                c not in candidates
                and (bool(c.labels) or c.name in scores or (c.numeric and c.named("verdict")))
            )
        )
        if candidates and verdicts:
            who = max(candidates, key=lambda c: len(c.counts))
            everybody = who.named("person") and not who.named("judge")
            self._take_who(who.name, certain=len(candidates) == 1, everybody=everybody)

    def _tells_apart_with(self, name: str) -> bool:
        """Whether a column tells apart the rows of what another column names several times."""
        item = self.layout.item
        names = [item] if item else [other for other in self.columns if other != name]
        return any(
            len(self.columns[other].counts) < self.rows and self._unique([other, name])
            for other in names
            if other is not None and other != name
        )

    def _says_who(self, column: Column) -> bool:
        """Whether a name is that of who judged, not of the model that wrote a response."""
        who = bool(column.words & WHO_WORDS) and not column.words & {*TEXT_NAMES, "system"}
        return who and not self._names_writers(column)

    def _names_writers(self, column: Column) -> bool:
        """Whether a column of models names who wrote the texts: no two judged the same text."""
        if not column.words & WRITER_WORDS or column.words & (WHO_WORDS - WRITER_WORDS):
            return False
        text = self.layout.text
        if text is None or len(column.counts) < 2 or not self._names_raters(column):
            return False
        return len(self.columns[text].counts) > NEARLY_FULL * self.rows

    def _names_raters(self, column: Column) -> bool:
        """Whether values are names rather than labels, numbers or texts."""
        values = [str(value) for value in column.counts.index]
        if (
            not values
            or len(values) > MOST_NAMES
            or column.numeric
            or column.length > LONGEST_LABEL
        ):
            return False
        if column.full < 1 or any(fold(value) in LABEL_WORDS for value in values):
            return False
        shared = [
            other
            for name, other in self.columns.items()
            if name != column.name and other.labels and other.labels & column.labels
        ]
        return not shared and (len(values) < self.rows or self.rows < 3)

    def _take_who(self, column: str, *, certain: bool, everybody: bool) -> None:
        names = [str(name) for name in self.columns[column].counts.index]
        declared = {*self.options.people} & {*names}
        judges = {*self.options.judges} & {*names}
        reason = ""
        if self.labels_only:
            people = set(names)
        elif declared:
            people = declared
        else:
            people, reason, evident = self._people_among(column, names, everybody=everybody)
            certain = certain and (evident or bool(judges))
        people -= judges
        self.layout.who, self.layout.people = column, frozenset(people)
        if judges:
            self.layout.ignored = frozenset({*names} - judges - people)
        judging = [name for name in names if name not in people | self.layout.ignored]
        if judging:
            option = f"--judge {shlex.quote(column)}"
            sure = certain or bool(reason)  # the question about people says it all
            self._take(column, "judge", f"{WHO_REASON}{_few(judging)}", option, certain=sure)
        if people:
            option = f"--human {shlex.quote(column)}"
            if len(people) < len(names):
                option = " ".join(f"--human {shlex.quote(name)}" for name in sorted(people))
            labelling = f"{WHO_REASON}{_few(name for name in names if name in people)}{reason}"
            self._take(column, "person", labelling, option, certain=certain)

    def _people_among(
        self, column: str, names: Sequence[str], *, everybody: bool
    ) -> tuple[set[str], str, bool]:
        """Returns who of the names of a long table are people, why, and whether that is certain."""
        models = {name for name in names if MODEL_NAME.search(name)}
        for kind in self._free(lambda c: c.name != column and self._names_kinds(c)):
            pairs = self.table.frame[[column, kind.name]].drop_duplicates()
            if not pairs[column].is_unique:
                continue
            human = pairs[kind.name].map(fold).isin(HUMAN_KINDS)
            self.taken.add(kind.name)
            return {*pairs.loc[human, column]}, f", by {kind.name}", True
        if everybody:
            return {*names} - models, "", not models
        people = {name for name in names if {*name_words(name)} & NAMES["person"]} - models
        if people:
            return people, ", by their names", True
        people = {*names} - models
        if models and people and self._rate_fewer(column, people):
            return people, ", who rate fewer items than the others", False
        return set(), "", True

    def _names_kinds(self, column: Column) -> bool:
        """Whether a column says of each row whether a person or a machine gave its label."""
        kinds = {fold(str(value)) for value in column.counts.index[:MOST_LABELS]}
        known = kinds <= HUMAN_KINDS | MACHINE_KINDS
        return known and column.full == 1 and 2 <= len(column.counts) and bool(kinds & HUMAN_KINDS)

    def _rate_fewer(self, column: str, names: set[str]) -> bool:
        """Whether each of some names has far fewer rows than the busiest name."""
        counts = self.columns[column].counts
        return bool((counts[[*names]] < NEARLY_FULL * counts.iloc[0]).all())

    def _find_long_verdict(self) -> None:
        """Finds the column of a long table that has the verdict of each row."""
        constant = self._constant_by_item
        candidates = self._free(lambda c: bool(c.labels) and len(c.labels) > 1) or self._free(
            lambda c: bool(c.labels)
        )
        scores = {part.column for part in read_comparisons(self.options.score)}
        who = {*map(str, self.columns[str(self.layout.who)].counts.index)}
        people = who <= self.layout.people
        candidates += self._free(
            lambda c: c not in candidates and c.numeric and (c.name in scores or c.named("verdict"))
        )
        if not candidates:
            self.layout.problems.append(
                f"no column has verdicts of {self.layout.who!r}; columns are "
                f"{', '.join(self.columns)}"
            )
            return
        ranked = sorted(
            candidates,
            key=lambda c: (
                c.name not in scores,
                _names_judge(c) if people else c.named("person") and not c.named("judge"),
                not c.words & (NAMES["verdict"] | NAMES["judge"]),
                not self._known_labels(c),
                constant(c) and self._items_repeat(),
            ),
        )
        best = ranked[0]
        rivals = [
            other
            for other in ranked[1:]
            if other.labels & best.labels and not constant(other) and not other.named("person")
        ]
        role: RoleName = "label" if people else "verdict"
        self.layout.verdict = best.name
        reason = f"{_few(best.counts.index)} of each {self.layout.who}"
        option = f"--judge {shlex.quote(str(self.layout.who))}"
        # One label for all judges of an item may be a person's.
        judges = not self.columns[str(self.layout.who)].named("person")
        rated = judges and best.named("person") and constant(best)
        self._take(best.name, role, reason, option, certain=not rivals and not rated)

    def _known_labels(self, column: Column) -> bool:
        return bool(column.labels & LABEL_WORDS) or column.numeric

    # --- items -----------------------------------------------------------------------------------

    def _find_item(self) -> None:
        if self.layout.item is not None:
            return
        candidates = self._free(self._is_item)
        named = [column for column in candidates if column.named("item")]
        ranked = sorted(
            named or candidates,
            key=lambda c: (
                not c.words <= {"id", "item"},
                "id" not in c.words,
                len(c.counts) < self.rows,
                -len(c.counts),
            ),
        )
        if not ranked:
            return
        best = ranked[0]
        unique = len(best.counts) == best.filled
        reason = "each value once" if unique else f"{len(best.counts):,} items"
        self._take_single(best.name, "item", reason, certain=bool(named) or len(candidates) == 1)

    def _is_item(self, column: Column) -> bool:
        """Whether values name items: each once, or once for each judge, system or setting."""
        full = column.full >= NEARLY_FULL if column.named("item") else column.full == 1
        if not full or column.length > LONGEST_LABEL or column.named("repeat"):
            return False
        if column.numeric and any("." in str(value) for value in column.counts.index[:50]):
            return False
        distinct = len(column.counts)
        if distinct < self.rows and column.named("cluster") and not self._is_one_text(column):
            return False  # a conversation of several items
        if distinct == self.rows:
            rated = any(column.named(role) for role in ("verdict", "person", "judge"))
            return column.named("item") or not rated
        if distinct <= 2 or column.labels & LABEL_WORDS:
            return False
        if column.named("item") and not column.labels:
            return True
        roles = [self.layout.who, self.layout.repeat]
        roles += [
            c.name
            for c in self._free(
                lambda c: c.named("system") or c.named("knob") or self._names_writers(c)
            )
        ]
        names = [name for name in roles if name is not None and name != column.name]
        if not column.labels and self._unique([column.name, *names]):
            return True
        if not column.labels and any(
            self._unique([column.name, other.name]) for other in self._free(self._may_tell_apart)
        ):
            return True
        return distinct > 0.8 * self.rows

    def _is_one_text(self, column: Column) -> bool:
        """Whether each value names a single text, or with who judged and how a single row."""
        layout = self.layout
        if layout.text is not None:
            pairs = self.table.frame[[column.name, layout.text]].drop_duplicates()
            return bool(pairs[column.name].is_unique)
        names = [name for name in (layout.who, layout.repeat, layout.system) if name is not None]
        return self._unique([column.name, *names])

    def _unique(self, names: list[str]) -> bool:
        """Whether columns together tell all rows apart, where one alone does not."""
        return len(names) > 1 and not self.table.frame[names].duplicated().any()

    def _may_tell_apart(self, column: Column) -> bool:
        """Whether a column holds few names, such as criteria, and no labels or numbers."""
        rated = any(column.named(role) for role in ("verdict", "person", "judge", "cluster"))
        few = column.full == 1 and 2 <= len(column.counts) <= MOST_LABELS
        return few and not rated and not column.numeric and not column.labels & LABEL_WORDS

    @property
    def _item_key(self) -> str | None:
        return self.layout.item or self.layout.text

    def _items_repeat(self) -> bool:
        key = self._item_key
        return key is not None and len(self.columns[key].counts) < self.rows

    def _constant_by_item(self, column: Column, exceptions: float = 0) -> bool:
        """Whether a column has one value for each item, up to a share of exceptions."""
        key = self._item_key
        if key is None or not self._items_repeat():
            return True
        filled = self.table.frame.loc[column.values != "", [key, column.name]]
        distinct = filled.drop_duplicates()[key]
        return bool(distinct.duplicated().sum() <= exceptions * distinct.nunique())

    # --- repeats, systems, settings and clusters --------------------------------------------------

    def _find_repeated_items(self) -> None:
        """Finds the columns that tell rows of one item apart, and those that join items."""
        if self._items_repeat():
            for column in self._free(lambda c: self._is_repeat(c)):
                if self.layout.repeat is None:
                    self._take_single(column.name, "repeat", "numbers the repeats of an item")
            for column in self._free(
                lambda c: c.named("system") or c.named("knob") or self._names_writers(c)
            ):
                if self._tells_apart(column):
                    self._take_varying(column)
            for column in self._free(self._explains_rows):
                if self._rows_repeat():
                    reason = f"tells the rows of an item apart: {_few(column.counts.index)}"
                    self._take_knob(column.name, reason, certain=False)
        if self.layout.system is None:
            candidates = self._free(
                lambda c: (
                    (c.named("system") or self._names_writers(c))
                    and 2 <= len(c.counts) <= MOST_LABELS
                )
            )
            if candidates and candidates[0].full == 1:
                certain = candidates[0].named("system") and not candidates[0].labels & LABEL_WORDS
                self._take_single(
                    candidates[0].name, "system", _few(candidates[0].counts.index), certain=certain
                )
        if self.layout.cluster is None:
            candidates = self._free(
                lambda c: (
                    c.named("cluster")
                    and 2 < len(c.counts) < self._item_count()
                    and c.length <= LONGEST_LABEL
                    and self._constant_by_item(c)
                )
            )
            if candidates:
                reason = f"{len(candidates[0].counts):,} groups of items, by its name"
                self._take_single(
                    candidates[0].name, "cluster", reason, certain=len(candidates) == 1
                )

    def _item_count(self) -> int:
        key = self._item_key
        return len(self.columns[key].counts) if key else self.rows

    def _is_repeat(self, column: Column) -> bool:
        """Whether values number the rows of an item: 0, 1, 2 or 1, 2, 3."""
        if not column.named("repeat") or column.full < 1 or self._constant_by_item(column):
            return False
        numbers = sorted(
            number for value in column.counts.index if (number := as_number(str(value))) is not None
        )
        if len(numbers) < len(column.counts):
            return 2 <= len(column.counts) <= MOST_LABELS and not column.labels & LABEL_WORDS
        return len(numbers) >= 2

    def _key_of_rows(self) -> list[str]:
        """The columns that tell rows apart, as far as they are known."""
        layout = self.layout
        names = [self._item_key, layout.who, layout.repeat, layout.system, *layout.knobs]
        return [name for name in names if name is not None]

    def _rows_repeat(self) -> bool:
        return bool(self.table.frame[self._key_of_rows()].duplicated().any())

    def _explains_rows(self, column: Column) -> bool:
        """Whether rows that seem to repeat each other differ by a column of names."""
        if not self._may_tell_apart(column) or self._constant_by_item(column):
            return False
        return self._unique([*self._key_of_rows(), column.name])

    def _tells_apart(self, column: Column) -> bool:
        return (
            column.full == 1
            and 2 <= len(column.counts) <= MOST_NAMES
            and not self._constant_by_item(column)
        )

    def _take_varying(self, column: Column) -> None:
        """Takes a column that varies within items: the text differs by system, or a setting."""
        text = self.layout.text
        item = self.layout.item
        if text is not None and item is not None and text not in (item, column.name):
            pairs = self.table.frame[[item, text]].drop_duplicates()
            if not pairs[item].is_unique:
                self._take_single(
                    column.name,
                    "system",
                    f"texts of an item differ by it: {_few(column.counts.index)}",
                )
                return
            self._take_knob(column.name, _few(column.counts.index), certain=True)
        elif column.named("system"):
            self._take_single(column.name, "system", _few(column.counts.index), certain=True)
        else:
            self._take_knob(column.name, _few(column.counts.index), certain=True)

    # --- verdicts and labels ---------------------------------------------------------------------

    def _find_labels(self) -> None:
        """Finds the columns of judges and people: those whose values are the same labels."""
        for column, role in self._declared_labels():
            self._take_labels(column, role, "as you say", certain=True)
        for column in self._free(lambda c: c.name.startswith(PERSON_PREFIX) and bool(c.labels)):
            self._take_labels(column, "person", "people's labels in an export", certain=True)
        group, people = self._label_group(), bool(self.layout.raters)
        for column in group:
            self._take_by_values(column, group, people=people)
        self._number_repeats()

    def _take_by_values(self, column: Column, group: Sequence[Column], *, people: bool) -> None:
        """Takes a column as a judge's or a person's: people label fewer rows than judges.

        `people` says whether other columns are known to be people's.
        """
        share = _share(column)
        person = column.named("person")
        judge = bool(MODEL_NAME.search(column.name)) or column.named("judge")
        sparse = column.full < NEARLY_FULL
        if self.labels_only:
            self._propose_labels(column, "person", share, certain=True)
        elif self.layout.who is not None:
            if self._constant_by_item(column, CONTRADICTIONS):
                reason = f"{share}, the same for an item"
                names = {*map(str, self.columns[self.layout.who].counts.index)}
                judging = names <= self.layout.people and not person
                role: RoleName = "judge" if judging else "person"
                certain = judge if judging else person or sparse
                self._propose_labels(column, role, reason, certain=certain)
        elif person != judge:
            role = "person" if person else "judge"
            self._propose_labels(
                column, role, f"{share}, by its name", certain=person or not sparse
            )
        elif sparse:
            self._propose_labels(
                column, "person", f"{share}, fewer than a judge's", certain=not judge
            )
        else:
            rest = [other for other in group if other is not column]
            people = people or any(
                other.named("person") or other.full < NEARLY_FULL for other in rest
            )
            judges = any(_names_judge(other) for other in rest)
            known = people or (self.layout.truth is not None and not rest)
            if column.generic and any(
                other.generic and not other.named("person") and other.full >= NEARLY_FULL
                for other in rest
            ):
                known = False  # one of them may be neither
            role = "person" if not self.judged or (judges and not known) else "judge"
            self._propose_labels(column, role, share, certain=known and self.judged)

    def _declared_labels(self) -> Iterable[tuple[Column, RoleName]]:
        """Yields the columns that the user names as judges' or people's."""
        who = self.layout.who
        names = set(map(str, self.columns[who].counts.index)) if who else set()
        stems = {match["stem"] for name in self.columns if (match := NUMBERED.fullmatch(name))}
        declared: list[tuple[str, RoleName]] = [(name, "person") for name in self.options.people]
        if not self.labels_only:
            declared += [(name, "judge") for name in self.options.judges]
        for name, role in declared:
            if name == who or name in names:
                continue
            if name in stems and name not in self.columns:
                for other in self.columns:
                    match = NUMBERED.fullmatch(other)
                    if match and match["stem"] == name:
                        yield self.columns[other], role
            elif self._exists(name, "--human" if role == "person" else "--judge"):
                yield self.columns[name], role

    def _label_group(self) -> list[Column]:
        """Returns the columns without a role that share the labels of verdicts."""
        candidates = self._free(
            lambda c: bool(c.labels) and not _numbers_rows(c) and not c.words & {"id", "name"}
        )
        scores = {part.column for part in read_comparisons(self.options.score)}
        candidates += self._free(lambda c: c not in candidates and c.name in scores)
        fixed = [self.columns[name] for name in (*self.layout.judges, *self.layout.raters)]
        fixed += [self.columns[name] for name in (self.layout.verdict, self.layout.truth) if name]
        group = [column for column in fixed if column.labels] or self._likeliest_group(candidates)
        group = self._with_alike(group, candidates)
        group += [
            column
            for column in candidates
            if column not in group
            and (column.name in scores or (self.layout.who is None and self._rated(column)))
        ]
        group = self._with_alike(group, candidates)
        full = self.layout.verdict or any(
            column.full >= NEARLY_FULL and not column.named("person") for column in group
        )
        sparse = any(column.full < NEARLY_FULL or column.named("person") for column in group)
        if not (full and sparse):  # a judge's numbers and people's words are one group
            group += [
                column
                for column in candidates
                if column not in group
                and (
                    any(_same_polarity(column, other) for other in group)
                    or bool(column.labels and column.labels <= LABEL_WORDS)
                )
            ]
            group = self._with_alike(group, candidates)
        return [
            column
            for column in candidates
            if column in group and not self._is_metadata(column, group)
        ]

    def _is_metadata(self, column: Column, group: Sequence[Column]) -> bool:
        """Whether a column shares mere numbers or truth values with those that names tell.

        Where judges and people are named, a full column such as is_vip or priority is neither.
        """
        if not column.generic or column.full < NEARLY_FULL:
            return False
        if any(column.named(role) for role in ("judge", "person", "verdict")):
            return False
        judges = self.layout.who is not None or any(map(_names_judge, group))
        people = self.layout.truth is not None or any(other.named("person") for other in group)
        return judges and people and not MODEL_NAME.search(column.name)

    def _with_alike(self, group: Sequence[Column], columns: Sequence[Column]) -> list[Column]:
        """Adds the columns that hold the same labels as one of a group."""
        similar = [*group]
        while more := [
            column
            for column in columns
            if column not in similar and any(_alike(column, other) for other in similar)
        ]:
            similar += more
        return similar

    def _rated(self, column: Column) -> bool:
        """Whether its name says that a judge or person gave its labels."""
        named = column.named("person") or column.named("judge")
        return named and self._known_labels(column)

    def _likeliest_group(self, columns: Sequence[Column]) -> list[Column]:
        """Returns the columns of which most says that they are verdicts and labels."""
        groups: list[list[Column]] = []
        for column in columns:
            group = next((g for g in groups if any(_alike(column, other) for other in g)), None)
            if group is None:
                groups.append([column])
            else:
                group.append(column)

        def evidence(group: list[Column]) -> tuple[bool, bool, int]:
            named = any(c.named("person") or c.named("judge") or c.named("verdict") for c in group)
            return any(c.labels & LABEL_WORDS for c in group), named, len(group)

        likely = [
            group
            for group in groups
            if self.labels_only or any(evidence(group)[:2]) or len(group) > 1
        ]
        return max(likely, key=evidence, default=[])

    def _propose_labels(
        self, column: Column, role: RoleName, reason: str, *, certain: bool
    ) -> None:
        """Takes a column, unless the user has named all columns of its role."""
        if not (self.options.people if role == "person" else self.options.judges):
            self._take_labels(column, role, reason, certain=certain)

    def _take_labels(self, column: Column, role: RoleName, reason: str, *, certain: bool) -> None:
        if role == "person":
            rater = column.name.removeprefix(PERSON_PREFIX)
            self.layout.raters[column.name] = rater
            option = f"--human {shlex.quote(column.name)}"
        else:
            self.layout.judges[column.name] = (column.name, 0)
            option = f"--judge {shlex.quote(column.name)}"
        self._take(column.name, role, reason, option, certain=certain)

    def _number_repeats(self) -> None:
        """Makes repeats of one judge of columns such as gpt_1 and gpt_2."""
        stems: dict[str, dict[int, str]] = {}
        for name in self.layout.judges:
            if name not in self.options.judges and (match := NUMBERED.fullmatch(name)):
                stems.setdefault(match["stem"], {})[int(match["number"])] = name
        for stem, columns in stems.items():
            numbers = sorted(columns)
            if (
                len(numbers) < 2
                or numbers[0] > 1
                or numbers != list(range(numbers[0], numbers[-1] + 1))
            ):
                continue
            generic = set(name_words(stem)) <= GENERIC and stem not in self.options.judges
            if generic and set(name_words(stem)) <= {"judge", "llm", "model", "ai"}:
                self._mark(
                    columns.values(),
                    f"a judge of its own; repeats of one judge are --judge {shlex.quote(stem)}",
                    certain=False,
                )
                continue
            judge, says_repeat = self._without_repeat_word(stem)
            certain = says_repeat or bool(MODEL_NAME.search(stem)) or stem in self.options.judges
            for repeat, number in enumerate(numbers):
                self.layout.judges[columns[number]] = (judge, repeat)
            for repeat, number in enumerate(numbers, 1):
                self._mark(
                    [columns[number]],
                    f"repeat {repeat} of {judge}",
                    certain=certain,
                    option=f"--judge {shlex.quote(stem)}",
                )

    def _without_repeat_word(self, stem: str) -> tuple[str, bool]:
        """Returns the judge of numbered columns such as gpt_run1, and whether they are repeats."""
        words = name_words(stem)
        if not words or words[-1] not in NAMES["repeat"]:
            return stem, False
        judge = stem[: -len(words[-1])].rstrip(" ._-")
        return (judge or "judge") if judge not in self.columns else stem, True

    def _mark(
        self,
        columns: Iterable[str],
        reason: str,
        *,
        certain: bool | None = None,
        option: str | None = None,
    ) -> None:
        names = set(columns)
        self.layout.roles = [
            replace(
                role,
                reason=reason,
                certain=role.certain if certain is None else certain,
                option=option or role.option,
            )
            if role.column in names
            else role
            for role in self.layout.roles
        ]


LABEL_WORDS = frozenset(
    {
        *POSITIVE_WORDS,
        *("fail", "failed", "no", "n", "false", "f", "0", "bad", "incorrect", "wrong", "reject"),
        *("rejected", "unacceptable", "negative", "neg", "unhelpful", "irrelevant", "loss", "tie"),
        *("partial", "neutral", "poor", "fair", "excellent", "ok", "harmless", "benign", "a", "b"),
    }
)
"""Words that usually are labels."""


def _alike(column: Column, other: Column) -> bool:
    """Whether two columns hold the same labels."""
    if not column.labels or not other.labels:
        return False
    shared = len(column.labels & other.labels)
    return shared > 0 and shared >= min(len(column.labels), len(other.labels)) / 2


def _names_judge(column: Column) -> bool:
    """Whether a name is a judge's."""
    judge = column.named("judge") or bool(MODEL_NAME.search(column.name))
    return judge and not column.named("person")


def _numbers_rows(column: Column) -> bool:
    """Whether a column numbers repeats, rather than holding the verdicts of one: run, not run1."""
    if not column.numeric or not set(name_words(column.name)) & NAMES["repeat"]:
        return False
    return "pass" not in column.words and not NUMBERED.fullmatch(column.name)


def _hints(columns: Sequence[Column]) -> tuple[str, ...]:
    """Says what columns without a role may be, where no column has verdicts."""
    hints, scores = [], []
    for column in columns:
        values = [str(value) for value in column.counts.index[:MOST_NAMES]]
        rated = column.named("verdict") or column.named("person") or _names_judge(column)
        long = column.length > LONGEST_LABEL / 2 or any("\n" in value for value in values)
        if sum(value.startswith(("[", "{")) for value in values) > len(values) / 2:
            hints.append(
                f"{column.name} holds lists or objects: write a row, or a column, for each verdict"
            )
        elif rated and long:
            start = " ".join(values[0].split())[:LONG_TEXT]
            hints.append(
                f"{column.name} holds whole answers ({start!r}...): write the verdict alone into a "
                "column"
            )
        elif column.labels:
            option = f"--judge {shlex.quote(column.name)}"
            hints.append(
                f"{column.name} holds {_few(column.counts.index)}: {option}, if these are verdicts"
            )
        elif column.numeric and rated:
            scores.append(column)
    if scores:
        comparisons = ",".join(f"{column.name}>=NUMBER" for column in scores)
        hints.append(
            f"{' and '.join(map(_span, scores))}: --score {shlex.quote(comparisons)} makes two "
            "labels of the numbers"
        )
    return tuple(hints)


def _span(column: Column) -> str:
    """Names a column of numbers: `score holds 93 different numbers, from 0.1 to 1`."""
    numbers = [n for value in column.counts.index if (n := as_number(str(value))) is not None]
    return (
        f"{column.name} holds {len(column.counts):,} different numbers, from {min(numbers):g} to "
        f"{max(numbers):g}"
    )


def _same_polarity(column: Column, other: Column) -> bool:
    """Whether two columns hold two labels each, one of which is known to be positive."""
    both = [positive_of(sorted(c.labels)) if len(c.labels) == 2 else None for c in (column, other)]
    return None not in both  # 0 and 1 beside fail and pass


def _rank(column: Column, names: Sequence[str]) -> int:
    places = [index for index, name in enumerate(names) if name in column.words]
    return min(places, default=len(names))


def _pairs(columns: Sequence[Column]) -> Iterable[tuple[Column, Column]]:
    """Yields columns whose names differ in a mark of a pair: response_a, response_b."""
    for first in columns:
        for mark, other in PAIR_MARKS:
            words = _letters_and_numbers(first.name)
            if words.count(mark) + words.count("a") < 1 or mark not in words:
                continue
            index = len(words) - 1 - words[::-1].index(mark)
            mate = [*words[:index], other, *words[index + 1 :]]
            yield from (
                (first, second) for second in columns if _letters_and_numbers(second.name) == mate
            )


def _letters_and_numbers(name: str) -> list[str]:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+|\d+", spaced.lower())


def _share(column: Column) -> str:
    return f"{_few(column.counts.index)} in {100 * column.full:.0f} % of rows"


def _few(values: Iterable[object]) -> str:
    names = list(map(str, values))
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
