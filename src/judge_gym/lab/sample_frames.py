"""Samples as frames: read from a store or a file, written to a file.

Heavy libraries load when a frame is made.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import reader as csv_rows
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from judge_gym.axes import FOREIGN, Design, find_knob
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown
from judge_gym.lab.export_columns import LABEL, ExportColumns, add_columns
from judge_gym.lab.items import stage_number
from judge_gym.records import Display
from judge_gym.store import Store
from judge_gym.store.database import NEEDED, open_database

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.client import Client

FORMATS = ("csv", "parquet")
SERVED = ("http://", "https://")
PART = 1 << 17
"""The number of rows of a parquet file that are written at once."""
KEY = ["judge.model", "evidence", "replicate"]
APART = ["tag", "task", "variant", "series", "rubric", "is_swap", "flipped"]
"""The columns that distinguish further samples of one judge on one item."""
ANSWER_COLUMNS = ["verdict_line", "probe_label", "probe_model"]
"""The columns that are read from answers: analyses of many samples do without them."""
ANSWER_SOURCES = ["tag", "call_id", "rubric", "display", "stages", "flipped", "probe_status"]
SHARED_KEY = ["series", "rubric", "evidence", "replicate", "flipped", "is_swap"]
"""The columns that identify a sample of an experiment, whichever study's run it belongs to."""


# --- from a store --------------------------------------------------------------------------------


def stored_samples(store: Store, rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Reads one row per sample of experiments, with the task's reference and every knob.

    `rows` are the experiments, as `store.experiments.rows` returns them.
    """
    import pandas as pd

    # Two tags of a study may name one experiment; its samples are listed once, under the first.
    named: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        named.setdefault((row["digest"], row["owner"]), row)
    table = store.samples.table([row["tag"] for row in named.values()])
    frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    del table  # the frame has taken its memory over
    frame["truth"] = _decode_truths(frame["truth"])
    if len({digest for digest, _ in named}) < len(named):
        frame = _without_shared(frame, {row["tag"]: row["digest"] for row in named.values()})
    lengths = store.samples.text_lengths([row["tag"] for row in named.values()])
    frame["length"] = _lengths(lengths, frame)
    about = annotations(list(named.values()))
    spread = about.take(about.index.get_indexer(pd.Index(frame["tag"]))).reset_index(drop=True)
    frame.insert(list(frame).index("truth") + 1, "reference", spread.pop("reference"))
    frame.insert(list(frame).index("n_stages") + 1, "stage_names", _stage_names(store, frame))
    return pd.concat([frame, spread], axis=1)


def _stage_names(store: Store, frame: "pd.DataFrame") -> "pd.Series":
    """Names the stages of each sample's rubric, in order."""
    import pandas as pd

    from judge_gym.analysis.frames import NAMES_APART

    rubrics, ids = pd.factorize(frame["rubric"])
    names = store.rubrics.stage_names({int(id) for id in ids})
    texts = [NAMES_APART.join(names.get(int(id), ())) for id in ids]
    return pd.Series(pd.Categorical(texts).take(rubrics)) if texts else frame["rubric"].astype(str)


def _lengths(lengths: Sequence[Mapping[str, Any]], frame: "pd.DataFrame") -> "pd.Series":
    """Measures the length of the text of each sample. A pair has none."""
    import pandas as pd

    key = ["run", "evidence"]
    by_item = pd.DataFrame(lengths, columns=[*key, "length"]).astype({"length": float})
    indexed = by_item.drop_duplicates(key).set_index(key)["length"]
    return indexed.reindex(pd.MultiIndex.from_frame(frame[key])).set_axis(frame.index)


def exported_samples(
    store: Store,
    rows: Sequence[Mapping[str, Any]],
    columns: ExportColumns = ExportColumns(),  # noqa: B008
) -> "pd.DataFrame":
    """Adds `ANSWER_COLUMNS`, which are read from the judges' answers, to stored samples.

    Args:
        store: where they are stored.
        rows: their experiments.
        columns: what is added on request.
    """
    import pandas as pd

    frame, parts = stored_samples(store, rows), []
    for start in range(0, len(frame), PART):
        part = frame[ANSWER_SOURCES].iloc[start : start + PART]
        samples = [dict(zip(ANSWER_SOURCES, row, strict=True)) for row in part.to_numpy()]
        parts += answer_columns(store, samples, rows)
    added = pd.DataFrame(parts, index=frame.index, columns=ANSWER_COLUMNS, dtype="str")
    return add_columns(store, pd.concat([frame, added], axis=1), rows, columns)


def answer_columns(
    store: Store, samples: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, str | None]]:
    """Reads `ANSWER_COLUMNS` of samples, whose experiments are `rows`."""
    designs = {row["tag"]: Design.of(row["design"]) for row in rows}
    texts = store.samples.answer_texts([int(row["call_id"]) for row in samples])
    names = store.rubrics.stage_names({int(row["rubric"]) for row in samples})
    prompts = {tag: store.experiments.template(design) for tag, design in designs.items()}
    return [
        _answer_columns(
            row,
            designs[row["tag"]],
            prompts[row["tag"]],
            names[row["rubric"]],
            texts.get(int(row["call_id"])),
        )
        for row in samples
    ]


def _answer_columns(
    row: Mapping[str, Any],
    design: Design,
    prompt: str,
    names: Sequence[str],
    answer: str | None,
) -> dict[str, str | None]:
    from judge_gym.stages.probe import prompted_labels
    from judge_gym.stages.templates import read_template
    from judge_gym.stages.verdicts import verdict_line

    display, flipped = Display.parse(row["display"]), bool(row["flipped"])
    probed = isinstance(row["probe_status"], str)  # else None, or in a frame no number
    stages = [int(stage) for stage in row["stages"].split()]
    if prompt:
        return {
            "verdict_line": read_template(prompt).verdict(answer or ""),
            "probe_label": "; ".join(names[stage - 1] for stage in stages) if probed else None,
            "probe_model": design.judge.model if probed else None,
        }
    probed_labels = prompted_labels(display, stages, flipped=flipped)
    strategy = design.verdict.resolve()
    labels = zip(display.labels, display.stages, strict=True)
    line = answer and verdict_line(
        answer,
        display.labels,
        json_output=strategy.json,
        method=strategy.method,
        abstain=strategy.abstain,
        names=None if flipped else {label: names[stage - 1] for label, stage in labels},
    )
    return {
        "verdict_line": line or None,
        "probe_label": "; ".join(names[stage - 1] for _, stage in probed_labels)
        if probed
        else None,
        "probe_model": design.judge.model if probed else None,
    }


def _without_shared(frame: "pd.DataFrame", digests: Mapping[str, str]) -> "pd.DataFrame":
    """Keeps samples that several studies have only under the first tag."""
    shared = frame[SHARED_KEY].assign(digest=frame["tag"].map(digests)).duplicated()
    return frame[~shared].reset_index(drop=True)


def annotations(rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Collects the reference and the knobs of experiments, by tag."""
    import pandas as pd

    tags = [row["tag"] for row in rows]
    designs = [Design.of(row["design"]).values() for row in rows]
    recorded = {path for design in designs for path in design if path.startswith(FOREIGN)}
    knobs = {**Design.knobs(), **{path: find_knob(path) for path in sorted(recorded)}}
    kinds: dict[str, Any] = {"text": "category", "a number": float}
    frame = pd.DataFrame(designs, index=tags, columns=list(knobs)).astype(
        {path: kinds[knob.type] for path, knob in knobs.items() if knob.type in kinds}
        | {"judge.model": "str"}  # it is joined and written everywhere
    )
    return frame.assign(reference=pd.Series([_reference(row["truth"]) for row in rows], tags))


def _reference(truth: Mapping[str, Any] | None) -> float:
    """A task's reference value from 0 to 1, reversed if higher means a lower stage."""
    value = (truth or {}).get("value")
    if truth is None or value is None or not 0 <= value <= 1:
        return float("nan")
    return float(1 - value if truth.get("direction") == "down" else value)


def _decode_truths(texts: "pd.Series") -> "pd.Series":
    """Parses truths from JSON, each distinct text once."""
    import pandas as pd

    codes, distinct = pd.factorize(texts)
    missing = [None] if (codes < 0).any() else []
    return pd.Series([*map(json.loads, distinct), *missing]).take(codes).reset_index(drop=True)


def pull_experiment(tag: str, *, url: str | None = None) -> "pd.DataFrame":
    """Reads the tidy frame of one experiment, without changing the lab.

    Args:
        tag: the experiment's tag.
        url: the database, or where a lab is served (`http://HOST:PORT`, with `JUDGE_GYM_TOKEN`);
            else `JUDGE_GYM_DATABASE_URL`, else the working folder's.
    """
    from judge_gym.analysis.frames import tidy

    if url is not None and url.startswith(SERVED):
        from judge_gym.client import Client

        with Client(url) as lab:
            lab.experiments.show(tag)
            return tidy(_download(lab, tag), source=tag)
    with _reading(url) as store:
        return tidy(exported_samples(store, store.experiments.rows(tags=[tag])), source=tag)


def pull_study(name: str, *, url: str | None = None) -> "pd.DataFrame":
    """Reads the tidy frame of a study, as `pull_experiment` does of an experiment."""
    from judge_gym.analysis.frames import tidy

    if url is not None and url.startswith(SERVED):
        from judge_gym.client import Client

        with Client(url) as lab:
            _refuse_unknown_study(name, (row["study"] for row in lab.experiments.list_studies()))
            return tidy(_download(lab, name), source=name)
    with _reading(url) as store:
        _refuse_unknown_study(name, (row["study"] for row in store.experiments.rows()))
        return tidy(exported_samples(store, store.experiments.rows(study=name)), source=name)


def _download(lab: "Client", target: str) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_parquet(io.BytesIO(lab.samples_file(target, format="parquet")))


def _refuse_unknown_study(name: str, studies: Iterable[str]) -> None:
    names = sorted({*studies} - {""})
    if name not in names:
        choice_text = f"choose {', '.join(names)}" if names else "there is none yet"
        raise NotFoundError(f"there is no study {name!r}; {choice_text}", choices=names)


@contextmanager
def _reading(url: str | None) -> Iterator[Store]:
    """Opens the store of an existing database that needs no upgrade."""
    database = open_database(url, prepare=False, create=False)
    store = Store(database)
    try:
        if (revision := database.revision() or "") < NEEDED:
            raise ConflictError(
                f"the database {database.display_url} is at schema {revision or 'none'}, this "
                f"version reads {NEEDED}; open it with Lab.open, or run 'judge-gym db upgrade'"
            )
        yield store
    finally:
        store.close()


# --- files ---------------------------------------------------------------------------------------


def file_format(file: Path, format: str | None = None) -> str:
    """Chooses csv or parquet for a file, and refuses a format that contradicts its name."""
    suffix = file.suffix.lower().removeprefix(".")
    format_name = suffix if format is None else format
    if format_name not in FORMATS:
        raise DesignError(unknown("format", format_name, FORMATS, str(file)), choices=FORMATS)
    if suffix not in ("", format_name):
        raise DesignError(f"{file} does not end in .{format_name}, the requested format")
    return format_name


def write_csv(frame: "pd.DataFrame", out: Path | IO[str]) -> None:
    """Writes rows as CSV, with an apostrophe before text that a spreadsheet would compute."""
    from judge_gym.analysis.formulas import escape_formulas

    escape_formulas(frame).to_csv(out, index=False)


def write_samples(frame: "pd.DataFrame", out: Path, format: str) -> None:
    """Writes samples as CSV or parquet. The same samples give the same bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    if format == "csv":
        write_csv(frame, out)
        return
    # Part by part, because texts that repeat are far larger than their categories.
    texts = {name: "str" for name in frame if frame[name].dtype == "category"}
    texts["truth"] = "string"  # numbers and labels
    schema = pa.Schema.from_pandas(frame.iloc[:0].astype(texts), preserve_index=False)
    with parquet.ParquetWriter(out, schema) as writer:
        for start in range(0, len(frame), PART):
            part = frame.iloc[start : start + PART].astype(texts)
            writer.write_table(pa.Table.from_pandas(part, schema, preserve_index=False))


def read_samples(path: str | Path, *, truths: Mapping[str, str] | None = None) -> "pd.DataFrame":
    """Reads the tidy frame of a file: an export, or verdicts recorded elsewhere.

    Args:
        path: a .csv or .parquet file with at least the columns judge.model, evidence, replicate,
            status, stages and n_stages. Other columns are kept.
        truths: what words of known answers mean: `{"Positive": "pass"}`; empty for none.
    """
    from judge_gym.analysis.frames import number_truths, tidy

    file = Path(path)
    format = file_format(file)
    if not file.is_file():
        raise NotFoundError(f"there is no file {file}")
    import pyarrow as pa

    try:
        table = _csv_table(file) if format == "csv" else _parquet_table(file)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        message = " ".join(str(error).split())
        raise DesignError(f"{file} cannot be read as {format}: {message}") from error
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise DesignError(f"{file} names the column {name!r} twice")
    samples = table.to_pandas(split_blocks=True, self_destruct=True)
    del table  # the frame has taken its memory over
    if truths and "truth" in samples:
        samples["truth"] = samples["truth"].replace(truths)
    frame = tidy(_with_ids(samples) if format == "csv" else samples, source=file.name)
    frame = number_truths(frame, file.name)
    _refuse_twice(frame, file.name)
    return frame


def is_export(path: str | Path) -> bool:
    """Says whether a file has the columns of exported samples."""
    from judge_gym.analysis.frames import NEEDED

    file = Path(path)
    if not file.is_file() or file.suffix.lower() not in (".csv", ".parquet"):
        return False
    if file.suffix.lower() == ".csv":
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            header = lines.readline().strip()
        mark = max(",;\t", key=header.count)
        return {*NEEDED} <= {name.strip('"') for name in header.split(mark)}
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return {*NEEDED} <= {*parquet.read_schema(file).names}
    except pa.ArrowInvalid:
        return False


def people_of(samples: "pd.DataFrame") -> "pd.DataFrame":
    """Collects people's labels from the columns `label.RATER`: tag, evidence, rater, stage."""
    import pandas as pd

    from judge_gym.analysis.frames import NAMES_APART

    label_columns = [name for name in samples if str(name).startswith(LABEL)]
    about = ["tag", "evidence", "stage_names", "n_stages"]
    items = samples[[*about, *label_columns]].drop_duplicates(["tag", "evidence"])
    labels = items.melt(about, label_columns, "rater", "label").fillna({"label": ""})
    labels = labels[labels["label"] != ""]
    raters = labels["rater"].str.removeprefix(LABEL)
    cells = (raters, labels["evidence"], labels["label"], labels["stage_names"], labels["n_stages"])
    stages = []
    for rater, item, label, stage_names, scale in zip(*cells, strict=True):
        names = stage_names.split(NAMES_APART) if stage_names else []
        stage = stage_number(str(label).strip(), names, scale)
        if not stage:
            choices = names or [str(number) for number in range(1, scale + 1)]
            what = f"label of {rater} for {item}"
            raise DesignError(unknown(what, str(label), choices), choices=choices)
        stages.append(stage)
    people = labels[["tag", "evidence"]].assign(rater=raters, stage=pd.Series(stages, labels.index))
    return people.reset_index(drop=True)


def _csv_table(file: Path) -> Any:
    """Reads a text file with columns separated by commas, semicolons or tabs."""
    import pyarrow as pa
    from pyarrow import csv

    from judge_gym.analysis.formulas import restore_formulas
    from judge_gym.analysis.frames import TEXTS

    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        header, first = lines.readline(), lines.readline()
    if not first:
        raise DesignError(f"{file.name} has no samples")
    separator = max(",;\t", key=header.count)
    # Text stays as it is written: a series 07, an item NA, an empty slot.
    kinds = dict.fromkeys(_text_knobs(), pa.dictionary(pa.int32(), pa.string()))
    kinds |= dict.fromkeys(TEXTS, pa.large_string())
    kinds |= {
        name: pa.large_string()
        for name in next(csv_rows([header], delimiter=separator))
        if name.startswith(LABEL)
    }
    table = csv.read_csv(
        file,
        parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=kinds),
    )
    return restore_formulas(table)


def _parquet_table(file: Path) -> Any:
    """Reads a parquet file, with knobs as categories."""
    from pyarrow import parquet

    columns = set(parquet.read_schema(file).names) - {"judge.model"}
    return parquet.read_table(file, read_dictionary=[n for n in _text_knobs() if n in columns])


def _text_knobs() -> list[str]:
    return [path for path, knob in Design.knobs().items() if knob.type == "text"]


def _with_ids(samples: "pd.DataFrame") -> "pd.DataFrame":
    """Converts evidence to numbers if every item is written as one, as 07 is not."""
    items = list(samples["evidence"].unique()) if "evidence" in samples else []
    numbers = all(str(item).isdecimal() and str(int(item)) == item for item in items)
    return samples.astype({"evidence": "int64"}) if items and numbers else samples


def _refuse_twice(frame: "pd.DataFrame", source: str) -> None:
    """Refuses a second sample of a cell and replicate that no column distinguishes."""
    twice = frame.duplicated([*KEY, *APART]).to_numpy()
    if twice.any():
        row = frame.iloc[int(twice.argmax())]
        columns = [*KEY, *(name for name in APART if frame[name].nunique() > 1)]
        key = ", ".join(f"{name} {row[name]}" for name in columns)
        raise DesignError(
            f"{source} has two samples of {key}; number replicates, or tell them apart by "
            "tag, series or a knob"
        )


def with_answers(
    store: Store, samples: Sequence[dict[str, Any]], tag: str
) -> Sequence[dict[str, Any]]:
    """Adds the columns that are read from answers to an experiment's samples."""
    rows = store.experiments.rows(tags=[tag])
    added = answer_columns(store, samples, rows)
    return [{**row, **columns} for row, columns in zip(samples, added, strict=True)]
