"""Reads verdicts and people's labels from a table of any shape: `read_file` is the one door."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import knob_columns
from judge_gym.errors import DesignError, unknown
from judge_gym.recorded.exports import is_export, read_export
from judge_gym.recorded.options import FileOptions, FileReading, Question, Role, ValueCount
from judge_gym.recorded.recording import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    Recording,
    complete_columns,
    transcript_text,
)
from judge_gym.recorded.roles import GENERIC, NEARLY_FULL, Layout, find_layout, fold, name_words
from judge_gym.recorded.scales import (
    MISSING_WORDS,
    Comparison,
    ScaleReading,
    as_number,
    positive_of,
    read_comparisons,
    read_scale,
)
from judge_gym.recorded.tables import Table, read_table, refuse_rows
from judge_gym.records.evidence import FIELD_NAMES

DEFAULTS = FileOptions()
LISTED = 8
"""The problems, and the conflicts, that a message lists."""
STATUS_WORDS = {
    **dict.fromkeys(("abstained", "abstain", "abstention"), "abstained"),
    **dict.fromkeys(("refused", "refusal", "declined"), "refused"),
    **dict.fromkeys(("truncated", "cut off"), "truncated"),
    **dict.fromkeys(
        ("parse_failed", "parse error", "parse_error", "unparseable", "unparsed", "unreadable"),
        "parse_failed",
    ),
    **dict.fromkeys(("provider_error", "error", "api_error", "timeout"), "provider_error"),
}
"""Words in place of a verdict, and the status that they mean."""
ABSTAINING = frozenset(
    (
        *("unsure", "uncertain", "unclear", "undecided", "not sure", "unknown", "idk"),
        *("don't know", "dont know", "do not know", "can't tell", "cannot tell"),
        *("cannot determine", "can't determine", "cannot judge", "can't judge"),
    )
)
"""Words with which a judge may abstain, where nobody else uses them as a label."""
OFTEN = 0.3
"""The share of rows with the text of another one from which texts, not rows, are the items."""
FEW_STATUSES = 0.2
"""The share of verdicts up to which a word for a status is none of the labels."""


@dataclass
class _Gathered:
    """What is gathered while a file is read."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def read_file(
    source: Path | pd.DataFrame | Table,
    options: FileOptions = DEFAULTS,
    *,
    judged: bool = True,
) -> FileReading:
    """Reads a file of verdicts and labels, or a frame, and says what was taken for granted.

    Nothing is asked: what is uncertain is read as proposed, and stands under `questions`.

    Args:
        source: the file, the frame, or a table that was read.
        options: what the user says about it.
        judged: whether it has verdicts; of items that are still to be judged, labels without a
            judge's name are people's.

    Raises:
        DesignError: with all problems of the file, each with its line and item.
    """
    table = source if isinstance(source, Table) else read_table(source)
    if is_export(table):
        reading = read_export(table, options)
        return reading if options.labels is None else with_labels(reading, options)
    labels_table = read_table(options.labels) if options.labels else None
    layout = find_layout(table, _options_of_verdicts(options, table, labels_table), judged=judged)
    gathered = _Gathered(problems=[*layout.problems], notes=[*table.notes])
    refuse_rows(table.name, len(table.frame) * len(layout.judges), "verdicts")
    refuse_rows(table.name, len(table.frame) * len(layout.raters), "cells for labels")
    items, ids = _items(table, layout, gathered)
    verdicts, labels = _verdicts(table, layout, ids, gathered), _labels(table, layout, ids)
    if not judged:
        verdicts = _without_other_labels(verdicts, labels, gathered)
    roles = [*layout.roles]
    if labels_table is not None:
        further = _join_labels(labels_table, options, items, layout, gathered)
        labels = pd.concat([labels, further.rows], ignore_index=True)
        roles += further.roles
    _refuse(table.name, gathered.problems)
    options = _read_statuses(verdicts, labels, items, options, gathered)
    options = _compare_scores(verdicts, labels, items, options, gathered)
    _refuse(table.name, gathered.problems)
    scale = read_scale(
        Counter(verdicts.loc[verdicts["status"] == "scored", "raw"]),
        Counter(labels["raw"]),
        Counter(items.loc[items["truth"] != "", "truth"]),
        options,
        paired=layout.responses is not None,
        scores=_columns_of_numbers(verdicts, labels),
    )
    gathered.problems += _value_problems(scale, verdicts, labels, items)
    _refuse(table.name, gathered.problems)
    values = _value_counts(scale, verdicts, labels, items)
    items["truth"] = _meanings(items["truth"], scale.meanings)
    verdicts = _read_verdicts(verdicts, scale, gathered)
    labels = _read_labels(labels, scale, gathered)
    _find_equal_texts(items, labels, gathered)
    _say_unused(layout, gathered)
    recording = Recording(
        source=table.name,
        format="file",
        question=_question(layout),
        scale=scale.scale,
        items=complete_columns(items.drop(columns=["place", "id"]), ITEM_COLUMNS),
        verdicts=complete_columns(verdicts, VERDICT_COLUMNS),
        labels=complete_columns(labels, LABEL_COLUMNS),
        notes=(*gathered.notes, *scale.notes),
    )
    questions = [*_role_questions(roles), *gathered.questions, *scale.questions]
    return FileReading(
        recording,
        roles=tuple(roles),
        values=values,
        conflicts=tuple(gathered.conflicts),
        questions=() if options.accept else tuple(questions),
        hints=layout.hints if verdicts.empty else (),
    )


def with_labels(reading: FileReading, options: FileOptions) -> FileReading:
    """Adds people's labels in a second file to an export or a log.

    They name the labels of its scale, or count them.
    """
    recording, gathered = reading.recording, _Gathered()
    table = read_table(Path(options.labels or ""))
    items = recording.items.assign(id=recording.items["item"])
    joined = _join_labels(table, options, items, Layout(), gathered)
    scale = recording.scale.labels
    meanings = {str(number): label for number, label in enumerate(scale, 1)}
    meanings |= {label: label for label in scale} | dict(options.same)
    meanings |= dict.fromkeys((*options.missing, *MISSING_WORDS), "")
    rows = joined.rows
    for place, value in rows.loc[~rows["raw"].isin(meanings), ["place", "raw"]].to_numpy():
        gathered.problems.append(f"{place}: the label {value!r} is none of {', '.join(scale)}")
    _refuse(recording.source, gathered.problems)
    read = _read_labels(rows, ScaleReading(recording.scale, meanings), gathered)
    labels = complete_columns(read, LABEL_COLUMNS)
    labels = pd.concat([recording.labels, labels], ignore_index=True)
    labels = labels.drop_duplicates(["item", "rater"])
    notes = (*recording.notes, *gathered.notes)
    return replace(
        reading,
        recording=replace(recording, labels=labels, notes=notes),
        roles=(*reading.roles, *joined.roles),
        conflicts=(*reading.conflicts, *gathered.conflicts),
        questions=() if options.accept else tuple(_role_questions(joined.roles)),
    )


def _options_of_verdicts(options: FileOptions, table: Table, labels: Table | None) -> FileOptions:
    """Leaves out the people whose column only the second file has."""
    if labels is None:
        return options
    here = [name for name in options.people if name in table.frame or name not in labels.frame]
    return replace(options, people=tuple(here))


def _question(layout: Layout) -> str:
    """Returns what is judged, as far as the file says it."""
    column = layout.verdict
    return column if column and not set(name_words(column)) <= GENERIC else "quality"


# --- items ---------------------------------------------------------------------------------------


def _items(table: Table, layout: Layout, gathered: _Gathered) -> tuple[pd.DataFrame, pd.Series]:
    """Returns an item a row, and the item of each row of the table."""
    frame = table.frame
    if layout.item is not None:
        own = frame[layout.item]
        empty = np.flatnonzero(own == "")
        for row in empty[:LISTED]:
            gathered.problems.append(f"{table.place(row)}: {layout.item} is empty")
        if len(empty) > LISTED:
            gathered.problems.append(f"{layout.item} is empty in {len(empty)} rows")
    elif layout.text is not None and (layout.who or _texts_repeat(frame, layout)):
        own = _number_texts(frame, layout).map("text {}".format)
        gathered.notes.append(f"No column names the items: each different {layout.text} is one.")
    else:
        own = pd.Series([table.place(row) for row in range(len(frame))])
        gathered.notes.append(f"No column names the items: each {table.unit} is one.")
        if layout.who is not None:
            gathered.problems.append(
                f"the rows of one item cannot be told: name its column with --item; columns are "
                f"{', '.join(map(str, frame))}"
            )
    ids = own
    if layout.system is not None:
        ids = own + " (" + frame[layout.system] + ")"
    columns = {
        "text": layout.text,
        "response_a": layout.responses[0] if layout.responses else None,
        "response_b": layout.responses[1] if layout.responses else None,
        "truth": layout.truth,
        "cluster": layout.cluster,
        "length": layout.length,
        "system": layout.system,
        **layout.parts,
    }
    rows = pd.DataFrame(
        {
            "item": ids,
            "id": own,
            **{name: frame[column] for name, column in columns.items() if column is not None},
            "place": np.arange(len(frame)),
        }
    )
    for name, column in columns.items():
        if column is not None:
            _check_constant(table, rows, name, column, layout, gathered)
    # The first value of an item that is not empty.
    items = rows.drop_duplicates("item").reset_index(drop=True)
    if len(items) < len(rows):
        for name in items.columns.difference(["item", "id", "place"]):
            filled = rows[rows[name] != ""].drop_duplicates("item").set_index("item")[name]
            items[name] = _meanings(items["item"], dict(zip(filled.index, filled, strict=True)))
    items["place"] = [table.place(row) for row in items["place"]]
    if "truth" not in items:
        items["truth"] = ""
    items["truth"] = items["truth"].astype(object)
    if "text" in items:
        items = _with_transcripts(items)
    if layout.system is not None and layout.cluster is None:
        items["cluster"] = items["id"]
    items["length"] = _lengths(table, layout, items, gathered)
    return items, ids


def _texts_repeat(frame: pd.DataFrame, layout: Layout) -> bool:
    return bool(_number_texts(frame, layout).duplicated().mean() > OFTEN)


def _number_texts(frame: pd.DataFrame, layout: Layout) -> pd.Series:
    """Returns the number of each row's text, with its further parts, from 1."""
    columns = list(dict.fromkeys([layout.text, *layout.parts.values()]))
    return frame.groupby(columns, sort=False).ngroup() + 1


def _with_transcripts(items: pd.DataFrame) -> pd.DataFrame:
    """Makes readable text of transcripts, whose messages are then a named part of the items."""
    written = items["text"]
    if not written.str.startswith("[").any():
        return items
    texts = written.map({cell: transcript_text(cell) for cell in written.unique()})
    if (texts == "").any():
        return items
    return items.assign(text=texts, messages=written)


def _lengths(table: Table, layout: Layout, items: pd.DataFrame, gathered: _Gathered) -> pd.Series:
    if layout.length is not None:
        return _numbers(items["length"], layout.length, list(items["place"]), gathered)
    if layout.text is None or layout.responses is not None:
        return pd.Series(np.nan, items.index)
    layout.roles.append(
        Role(layout.text, "length", "its number of characters", True, "--length COLUMN")
    )
    return items["text"].str.len().astype(float)


def _check_constant(
    table: Table,
    rows: pd.DataFrame,
    name: str,
    column: str,
    layout: Layout,
    gathered: _Gathered,
) -> None:
    """Notes items that have two texts, known answers or clusters."""
    different = rows.loc[rows[name] != "", ["item", "id", name, "place"]]
    different = different.drop_duplicates(["item", name])
    several = different[different["item"].duplicated(keep=False)]
    if several.empty:
        return
    examples = []
    for _, part in several.groupby("item", sort=False):
        places = " and ".join(table.place(row) for row in part["place"][:2])
        examples.append(f"{part['id'].iloc[0]} ({places})")
    apart = "name the column that tells them apart with --system, or that names items, --item"
    advice = {
        **dict.fromkeys(("text", *FIELD_NAMES), apart),
        "cluster": "an item belongs to one cluster: name another column with --cluster",
    }.get(name, f"correct the file, or name another column with --{name.replace('_', '-')}")
    many = "item has" if len(examples) == 1 else "items have"
    gathered.problems.append(
        f"{len(examples)} {many} different values of {column}: {_listed(examples)}; {advice}"
    )


def _numbers(
    values: pd.Series, column: str, places: Sequence[str], gathered: _Gathered
) -> pd.Series:
    """Returns a column as numbers; what is none is a problem."""
    numbers = pd.to_numeric(values.where(values != ""), errors="coerce").astype(float)
    unread = np.flatnonzero((values != "") & numbers.isna())
    wrong = [int(row) for row in unread if str(values.iloc[row]).casefold() not in MISSING_WORDS]
    gathered.problems += [
        f"{places[row]}: {column} {values.iloc[row]!r} is not a number" for row in wrong[:LISTED]
    ]
    return numbers


# --- verdicts and labels, as written -------------------------------------------------------------


def _verdicts(table: Table, layout: Layout, ids: pd.Series, gathered: _Gathered) -> pd.DataFrame:
    """Returns a row per verdict, with its value as written."""
    frame = table.frame
    shared = pd.DataFrame({"item": ids, "row": np.arange(len(frame))})
    places = [table.place(row) for row in range(len(frame))] if layout.usd or layout.seconds else []
    for field_name, source in (("usd", layout.usd), ("seconds", layout.seconds)):
        if source is not None:
            shared[field_name] = _numbers(frame[source], source, places, gathered)
    if layout.rationale is not None:
        shared["rationale"] = frame[layout.rationale]
    for column, knob in layout.knobs.items():
        shared[knob] = frame[column]
    shared["repeat"] = _repeats(frame, layout)
    parts = []
    if layout.who is not None and layout.verdict is not None:
        judged = ~frame[layout.who].isin(layout.people | layout.ignored)
        part = shared.assign(judge=frame[layout.who], raw=frame[layout.verdict])
        parts.append(part.assign(asked=True, column=layout.verdict)[judged])
    for column, (judge, repeat) in layout.judges.items():
        part = shared.assign(
            judge="judge" if set(name_words(judge)) <= {"verdict", "score", "rating"} else judge,
            raw=frame[column],
            column=column,
            asked=(frame[column] != "").mean() >= NEARLY_FULL,
        )
        if len(layout.judges) > 1 and repeat:
            part["repeat"] = part["repeat"] + repeat
        parts.append(part)
    empty = shared.assign(judge="", raw="", column="", asked=True).iloc[:0]
    verdicts = pd.concat(parts or [empty], ignore_index=True)
    verdicts = verdicts[verdicts["asked"] | (verdicts["raw"] != "")]
    unread = verdicts["raw"] == ""
    verdicts["status"] = np.where(unread, "parse_failed", "scored").astype(object)
    for name, number in Counter(verdicts.loc[unread, "judge"]).items():
        gathered.notes.append(f"Empty verdicts of {name}, which count as unreadable: {number:,}.")
    return verdicts.drop(columns="asked").reset_index(drop=True)


def _read_statuses(
    verdicts: pd.DataFrame,
    labels: pd.DataFrame,
    items: pd.DataFrame,
    options: FileOptions,
    gathered: _Gathered,
) -> FileOptions:
    """Finds words in place of a verdict, and returns what the user says about other values.

    A word that people or known answers use is a label, whatever it usually means.
    """
    said = {
        value.casefold(): STATUS_WORDS[label.casefold()]
        for value, label in options.same.items()
        if label.casefold() in STATUS_WORDS and label not in set(labels["raw"])
    }
    others = {value: label for value, label in options.same.items() if value.casefold() not in said}
    used = [*labels["raw"].unique(), *items["truth"].unique(), *options.order, *options.missing]
    used += [*others, *others.values(), *([options.positive] if options.positive else [])]
    known = {str(word).casefold() for word in used}
    counts = Counter(verdicts["raw"])
    for value, number in counts.items():
        word = str(value).casefold()
        status = said.get(word) or ("" if word in known else STATUS_WORDS.get(word, ""))
        option = f"--same {shlex.quote(f'{value}={status}')}"
        if not status and word in ABSTAINING and word not in known:
            status, option = "abstained", f"--same {shlex.quote(f'{value}=abstained')}"
            text = f"{value!r} ({_rows(number)}), which only judges say, is no label: they abstain?"
            gathered.questions.append(Question(text, option))
        elif status and word not in said and number > FEW_STATUSES * len(verdicts):
            text = f"{value!r} ({_rows(number)}) is no verdict but the status {status}?"
            gathered.questions.append(Question(text, option))
        if status:
            verdicts.loc[verdicts["raw"] == value, "status"] = status
            gathered.notes.append(f"{value!r} ({_rows(number)}) is read as the status {status}.")
    return replace(options, same=others)


def _repeats(frame: pd.DataFrame, layout: Layout) -> pd.Series:
    """Returns the repeat of each row, from 0."""
    if layout.repeat is None:
        return pd.Series(0, frame.index)
    values = frame[layout.repeat]
    ordered = sorted(values.unique(), key=lambda value: (as_number(value) or 0.0, value))
    return values.map({value: place for place, value in enumerate(ordered)}).astype("int64")


def _without_other_labels(
    verdicts: pd.DataFrame, labels: pd.DataFrame, gathered: _Gathered
) -> pd.DataFrame:
    """Leaves out judges that give none of people's labels, such as scores beside pass and fail."""
    words = {fold(value) for value in labels["raw"].unique()}
    judges = [
        str(judge)
        for judge, values in verdicts.groupby("judge", sort=False)["raw"]
        if words and not words & {fold(value) for value in values.unique()}
    ]
    if judges:
        gathered.notes.append(f"Not used: verdicts of {_listed(judges)}, who use other labels.")
    return verdicts[~verdicts["judge"].isin(judges)]


def _labels(table: Table, layout: Layout, ids: pd.Series) -> pd.DataFrame:
    """Returns a row per label by a person, with its value as written."""
    frame = table.frame
    rows = pd.Series(np.arange(len(frame)))
    parts = []
    if layout.who is not None and layout.verdict is not None and layout.people:
        by_people = frame[layout.who].isin(layout.people)
        parts.append(
            pd.DataFrame(
                {
                    "item": ids,
                    "rater": frame[layout.who],
                    "raw": frame[layout.verdict],
                    "row": rows,
                    "column": layout.verdict,
                }
            )[by_people]
        )
    for column, rater in layout.raters.items():
        part = {"item": ids, "rater": rater, "raw": frame[column], "row": rows, "column": column}
        parts.append(pd.DataFrame(part))
    empty = pd.DataFrame(columns=["item", "rater", "raw", "row", "column", "place"])
    labels = pd.concat(parts, ignore_index=True) if parts else empty
    labels = labels[labels["raw"] != ""].reset_index(drop=True)
    return labels.assign(place=[table.place(row) for row in labels["row"]])


@dataclass
class _Joined:
    """People's labels in a second file, with the roles of its columns."""

    rows: pd.DataFrame
    roles: list[Role]


def _join_labels(
    table: Table, options: FileOptions, items: pd.DataFrame, main: Layout, gathered: _Gathered
) -> _Joined:
    """Reads the labels of a second file, by the item or the text that both files have."""
    key, names = _shared_column(table, options, items)
    nothing = _Joined(pd.DataFrame(columns=["item", "rater", "raw", "row", "column", "place"]), [])
    if key is None:
        gathered.problems.append(
            f"{table.name}: no column has the items of the verdicts, such as "
            f"{_listed([repr(name) for name in items['id'][:3]])}; columns are "
            f"{', '.join(map(str, table.frame))}"
        )
        return nothing
    own = FileOptions(
        item=key,
        people=tuple(name for name in options.people if name in table.frame),
        system=options.system if options.system in table.frame else None,
    )
    if main.system is not None and own.system is None and main.system in table.frame:
        own = replace(own, system=main.system)
    layout = find_layout(table, own, labels_only=True)
    gathered.problems += [f"{table.name}: {problem}" for problem in layout.problems]
    ids = table.frame[key].map(names)
    if main.system is not None:
        if own.system is None:
            gathered.problems.append(
                f"{table.name} needs the column {main.system}, which tells the texts of an item "
                "apart"
            )
            return nothing
        ids = table.frame[key] + " (" + table.frame[own.system] + ")"
        ids = ids.where(ids.isin(items["item"]))
    if not layout.raters and layout.verdict is None:
        gathered.problems.append(
            f"{table.name} has no column of labels; name it with --human; columns are "
            f"{', '.join(map(str, table.frame))}"
        )
    rows = _labels(table, layout, ids)
    rows["place"] = rows["place"].map(f"{{}} of {table.name}".format)
    strange = rows["item"].isna()
    if strange.any():
        others = table.frame[key][rows.loc[strange, "row"]].unique()
        number = f"{len(others)} item{'s' if len(others) != 1 else ''}"
        gathered.notes.append(
            f"{table.name} has labels of {number} without a verdict: {_listed(list(others))}."
        )
    roles = []
    for role in layout.roles:
        shared = role.role == "item" and options.item not in table.frame
        reason = "shared" if shared else role.reason
        roles.append(replace(role, reason=f"{reason}, in {table.name}"))
    return _Joined(rows[~strange].reset_index(drop=True), roles)


def _shared_column(
    table: Table, options: FileOptions, items: pd.DataFrame
) -> tuple[str | None, Mapping[str, str]]:
    """Returns the column of a second file that names items, and the item of each of its values."""
    by_id = dict(zip(items["id"], items["item"], strict=True))
    if options.item in table.frame:
        return options.item, by_id
    best: tuple[int, str | None, Mapping[str, str]] = (0, None, {})
    by_title = dict(zip(items["title"], items["item"], strict=True)) if "title" in items else {}
    by_text = dict(zip(items["text"], items["item"], strict=True)) if "text" in items else {}
    for column in map(str, table.frame):
        values = set(table.frame[column].unique())
        for names in (by_id, by_title, by_text):
            shared = len(values & names.keys() - {""})
            if shared > best[0]:
                best = (shared, column, names)
    return best[1], best[2]


def _compare_scores(
    verdicts: pd.DataFrame,
    labels: pd.DataFrame,
    items: pd.DataFrame,
    options: FileOptions,
    gathered: _Gathered,
) -> FileOptions:
    """Makes labels of numbers by the comparisons that the user declares.

    They are people's words, if there are two; the options then name the positive one.
    """
    comparisons = read_comparisons(options.score)
    if not comparisons:
        return options
    frames = [frame for frame in (verdicts, labels) if not frame.empty]
    compared = [[_is_compared(frame, part.column) for frame in frames] for part in comparisons]
    for part, rows in zip(comparisons, compared, strict=True):
        if not any(is_compared.any() for is_compared in rows):
            columns = [str(name) for frame in frames for name in frame["column"].unique()]
            gathered.problems.append(unknown("column", part.column, columns, "--score"))
            continue
        values = [
            value
            for frame, is_compared in zip(frames, rows, strict=True)
            for value in frame.loc[is_compared, "raw"].unique()
        ]
        if not any(as_number(value) is not None for value in values):
            gathered.problems.append(
                f"--score compares numbers, and {part.column} has {_listed(values, 4)}"
            )
    if not gathered.problems:
        gathered.problems += _uncompared(frames, comparisons, compared)
    if gathered.problems:
        return options
    words: set[str] = {value for value in items["truth"] if value and as_number(value) is None}
    for frame, rows in zip(frames, zip(*compared, strict=True), strict=True):
        others = frame.loc[~np.logical_or.reduce(rows), "raw"]
        words |= {value for value in others.unique() if value and as_number(value) is None}
    words -= {word for word in words if word.casefold() in MISSING_WORDS}
    yes, no = _compared_labels(comparisons, words, options.positive)
    if words and yes not in words:
        labels_text = _listed(sorted(words))
        which = "which of them is positive, with --positive LABEL"
        gathered.problems.append(
            f"--score makes two labels of numbers, and others are {labels_text}; "
            + (f"say {which}" if len(words) == 2 else "compare columns without words")
        )
    for part, rows in zip(comparisons, compared, strict=True):
        for frame, is_compared in zip(frames, rows, strict=True):
            meanings = {
                value: (yes if part.holds(number) else no)
                for value in frame.loc[is_compared, "raw"].unique()
                if (number := as_number(value)) is not None
            }
            frame.loc[is_compared, "raw"] = frame.loc[is_compared, "raw"].replace(meanings)
        text = f"{part.column} {part.sign} {part.number:g}"
        gathered.notes.append(f"Where {text}, the label is {yes}; else it is {no}.")
    return options if options.positive else replace(options, positive=yes)


def _uncompared(
    frames: Sequence[pd.DataFrame],
    comparisons: Sequence[Comparison],
    compared: Sequence[Sequence[pd.Series]],
) -> list[str]:
    """Names the columns of numbers that comparisons leave as they are, of which labels are made."""
    columns: dict[str, list[str]] = {}
    for frame, rows in zip(frames, zip(*compared, strict=True), strict=True):
        others = frame.loc[~np.logical_or.reduce(rows)]
        for column, values in others.groupby("column", sort=False)["raw"]:
            numbers = [value for value in values.unique() if as_number(value) is not None]
            if len(numbers) > 2:
                columns[str(column)] = numbers
    if not columns:
        return []
    parts = [f"{part.column}{part.sign}{part.number:g}" for part in comparisons]
    whole = ",".join([*parts, *(f"{column}>=NUMBER" for column in columns)])
    listed = "; ".join(f"{name} has {_listed(numbers, 4)}" for name, numbers in columns.items())
    return [f"--score makes two labels, and {listed}: compare these too, --score {whole!r}"]


def _is_compared(frame: pd.DataFrame, name: str) -> pd.Series:
    """Says which rows a comparison names: by their column, its repeats, or who gave them."""
    who = frame["judge"] if "judge" in frame else frame["rater"]
    return (frame["column"] == name) | (who == name)


def _compared_labels(
    comparisons: Sequence[Comparison], words: set[str], positive: str | None
) -> tuple[str, str]:
    """Returns the labels of numbers for which comparisons hold, and do not."""
    if len(words) == 2:
        usual = positive_of(sorted(words)) or positive
        if usual in words:
            return str(usual), next(word for word in words if word != usual)
    texts = {f"{part.sign}{part.number:g}" for part in comparisons}
    if len(texts) > 1:
        return "positive", "negative"
    [text] = texts
    return text, f"not {text}"


def _columns_of_numbers(verdicts: pd.DataFrame, labels: pd.DataFrame) -> tuple[str, ...]:
    """Returns the columns of verdicts and labels whose values are all numbers."""
    found = []
    for frame in (verdicts[verdicts["status"] == "scored"], labels):
        for column, values in frame.groupby("column", sort=False)["raw"]:
            words = [value for value in values.unique() if value.casefold() not in MISSING_WORDS]
            if words and all(as_number(value) is not None for value in words):
                found.append(str(column))
    return tuple(found)


def _meanings(values: pd.Series, meanings: Mapping[str, str]) -> pd.Series:
    """Returns what each value means; empty for one without a meaning."""
    words = [meanings.get(value, "") for value in values]
    return pd.Series(words, values.index, dtype=object)


# --- what values mean ----------------------------------------------------------------------------


def _value_problems(
    scale: ScaleReading, verdicts: pd.DataFrame, labels: pd.DataFrame, items: pd.DataFrame
) -> list[str]:
    """Says where values stand that cannot be read."""
    values: dict[str, list[str]] = {}
    for value, problem in scale.problems.items():
        values.setdefault(problem, []).append(value)
    problems = []
    for problem, wrong in values.items():
        wrong = [value for value in wrong if value]  # without one, all values are meant
        places = [
            *(
                f"{row.place} ({row.item})"
                for row in labels[labels["raw"].isin(wrong)].itertuples()
            ),
            *(f"{row.place} ({row.id})" for row in items[items["truth"].isin(wrong)].itertuples()),
            *verdicts.loc[verdicts["raw"].isin(wrong), "item"].map("item {}".format),
        ]
        problems.append(f"{_listed(places, 3)}: {problem}" if places else problem)
    return problems


def _value_counts(
    scale: ScaleReading, verdicts: pd.DataFrame, labels: pd.DataFrame, items: pd.DataFrame
) -> tuple[ValueCount, ...]:
    """Lists all values as written, in the order of the scale."""
    counts = [
        Counter(verdicts.loc[verdicts["status"] == "scored", "raw"]),
        Counter(labels["raw"]),
        Counter(items["truth"]),
    ]
    order = {label: place for place, label in enumerate(scale.scale.labels)}
    values = sorted(scale.meanings, key=lambda v: (order.get(scale.meanings[v], len(order)), v))
    return tuple(
        ValueCount(v, counts[0][v], counts[1][v], scale.meanings[v], counts[2][v]) for v in values
    )


def _read_verdicts(
    verdicts: pd.DataFrame, scale: ScaleReading, gathered: _Gathered
) -> pd.DataFrame:
    """Returns verdicts with their label, one for each judge, item, repeat and setting."""
    frame = verdicts.assign(label=_meanings(verdicts["raw"], scale.meanings))
    frame.loc[frame["status"] != "scored", "label"] = ""
    frame.loc[(frame["status"] == "scored") & (frame["label"] == ""), "status"] = "parse_failed"
    key = ["judge", "item", "repeat", *knob_columns(frame)]
    sizes = frame.groupby(key, sort=False).size()
    usual = int(sizes.mode().iloc[0]) if len(sizes) else 1
    if usual > 1 and (sizes == usual).mean() > 0.5:
        frame["repeat"] = frame.groupby(key, sort=False).cumcount()
        gathered.questions.append(
            Question(
                f"A judge has {usual} rows for an item: repeats in the order of the file?",
                "--yes",
                "--repeat COLUMN names what numbers them",
            )
        )
    frame = _without_conflicts(frame, key, gathered, "judge")
    return frame.drop(columns=["raw", "row", "column"]).reset_index(drop=True)


def _read_labels(labels: pd.DataFrame, scale: ScaleReading, gathered: _Gathered) -> pd.DataFrame:
    """Returns labels, one for each item and rater."""
    frame = labels.assign(label=_meanings(labels["raw"], scale.meanings))
    frame = frame[frame["label"] != ""]
    frame = _without_conflicts(frame, ["rater", "item"], gathered, "rater")
    return frame[["item", "rater", "label"]].reset_index(drop=True)


def _without_conflicts(
    frame: pd.DataFrame, key: list[str], gathered: _Gathered, who: str
) -> pd.DataFrame:
    """Leaves out what is said twice, and what contradicts itself."""
    twice = frame.duplicated(key, keep=False)
    if not twice.any():
        return frame
    what = "labels" if who == "rater" else "verdicts"
    labels = frame[twice].groupby(key, sort=False)["label"].unique()
    different = labels[labels.map(len) > 1]
    for names, values in list(different.items()):
        rater, item = names[0], names[1]  # type: ignore[index]  # of several columns
        said = " and ".join(value or "nothing" for value in values)
        gathered.conflicts.append(f"{item}: {rater} says {said}; neither is used.")
    same = len(labels) - len(different)
    if same:
        gathered.notes.append(f"Equal {what} that stand more than once, counted once: {same:,}.")
    bad = pd.MultiIndex.from_frame(frame[key]).isin(different.index)
    return frame[~bad].drop_duplicates(key)


def _find_equal_texts(items: pd.DataFrame, labels: pd.DataFrame, gathered: _Gathered) -> None:
    """Notes texts that stand twice, and with different labels of one person."""
    if "text" not in items:
        return
    columns = [n for n in ("text", "response_a", "response_b", *FIELD_NAMES) if n in items]
    twice = items[items.duplicated(columns, keep=False) & (items["text"] != "")]
    if twice.empty:
        return
    joined = labels.merge(twice[["item", *columns]], on="item")
    for (rater, *_), part in joined.groupby(["rater", *columns], sort=False):
        if part["label"].nunique() > 1:
            said = ", ".join(f"{row.item}: {row.label}" for row in part.head(4).itertuples())
            gathered.conflicts.append(f"{rater} gives the same text different labels ({said}).")
    number = len(twice.drop_duplicates(columns))
    many = "1 text stands" if number == 1 else f"{number:,} texts stand"
    places = [
        f"{part['item'].iloc[0]} and {part['item'].iloc[1]}"
        for _, part in twice.groupby(columns, sort=False)
    ]
    gathered.notes.append(f"{many} more than once under different items: {_listed(places, 3)}.")


# --- what is said about it -----------------------------------------------------------------------


def _say_unused(layout: Layout, gathered: _Gathered) -> None:
    if layout.ignored:
        names = _listed(sorted(layout.ignored))
        gathered.notes.append(f"Not used of {layout.who}: {names}, named by no --judge or --human.")
    if layout.unused:
        gathered.notes.append(f"Not used: {_listed(layout.unused, 20)}.")


def _role_questions(roles: Sequence[Role]) -> list[Question]:
    """Returns the questions about roles that are not certain, one for each option.

    Columns that a user names are all of their kind, so an option names every column of it.
    """
    by_option: dict[str, list[Role]] = {}
    for role in roles:
        if not role.certain:
            kind = [role]
            if _holds_labels(role):
                kind = [each for each in roles if each.role == role.role and _holds_labels(each)]
            option = " ".join(dict.fromkeys(each.option for each in kind))
            by_option.setdefault(option, []).append(role)
    questions = []
    for option, uncertain in by_option.items():
        first = uncertain[0]
        columns = {role.option: role.column for role in reversed(uncertain)}
        text, other = f"{', '.join([*columns.values()][::-1])}: {first.words}?", ""
        if _holds_labels(first):
            whose, flag, otherwise = (
                ("a person's are", "--judge", "--human")
                if first.role == "judge"
                else ("a judge's are", "--human", "--judge")
            )
            other = f"{whose} {first.option.replace(flag, otherwise, 1)}"
        questions.append(Question(text, option, other))
    return questions


def _holds_labels(role: Role) -> bool:
    """Whether a column holds the labels of one judge or person."""
    return role.role in ("judge", "person") and not role.names_who


def _refuse(name: str, problems: Sequence[str]) -> None:
    """Refuses a file with all its problems at once."""
    if not problems:
        return
    if len(problems) == 1:
        raise DesignError(f"{name}: {problems[0]}")
    lines = "".join(f"\n- {problem}" for problem in problems[: 2 * LISTED])
    more = f"\n- and {len(problems) - 2 * LISTED} more" if len(problems) > 2 * LISTED else ""
    raise DesignError(f"{name} has {len(problems)} problems:{lines}{more}")


def _rows(number: int) -> str:
    return f"{number:,} row{'s' if number != 1 else ''}"


def _listed(values: Iterable[object], number: int = LISTED) -> str:
    words = list(map(str, values))
    more = f" and {len(words) - number:,} more" if len(words) > number else ""
    return ", ".join(words[:number]) + more
