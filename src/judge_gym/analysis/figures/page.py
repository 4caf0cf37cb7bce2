"""What all figures share: colours, panels, names that fit, and how a chart becomes a picture.

One SVG serves white paper and a dark page: its ground is transparent, and words, axes and rules are
in `currentColor`, the colour of the text around it. Colours of data are told apart by the
colour-blind and seen on both grounds; what carries them has an outline where a shade may fade.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import altair as alt
import pandas as pd

from judge_gym.errors import DesignError
from judge_gym.records import content_hash

Figure = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.ConcatChart
    | alt.HConcatChart
    | alt.VConcatChart
)
INK: Final = "currentColor"
# Okabe and Ito's colours without black and yellow, which fade on one of the two grounds.
BLUE, ORANGE, RED, PINK, SKY = "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#56B4E9"
GREY: Final = "#8C8C8C"
WIDTH: Final = 250
"""Of a panel where two stand side by side, without the names on its left."""
MAX_PANELS, MAX_ROWS = 12, 40
"""What is more is counted, not drawn."""
_NAME, _TITLE_LINE, _TITLE_LINES, _MAX_HEIGHT = 28, 92, 3, 1600
SHARE: Final = alt.Scale(domain=[0, 1])
OUTLINE: Final[dict[str, Any]] = {"stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.55}
Symbol = tuple[str, str, str, bool]
"""A kind of point: its name, shape and colour, and whether it is filled."""
BAR_SHAPE: Final = "M0,-1V1"


def needed(frame: pd.DataFrame, columns: Sequence[str], *, known: Sequence[str]) -> pd.DataFrame:
    """The columns that a figure shows, and the rows in which what it draws is known."""
    if frame.empty:  # nothing at all needs no columns
        return pd.DataFrame(columns=list(columns), dtype=object)
    for column in columns:
        if column not in frame:
            raise DesignError(
                f"the frame has no column {column!r}; the figure needs {', '.join(columns)}",
                choices=columns,
            )
    return frame[list(columns)].dropna(subset=list(known)).reset_index(drop=True)


def panels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a column `panel`: its task, and its variant where there are several."""
    several = frame["variant"].nunique() > 1
    return frame.assign(panel=frame["task"] + (" · " + frame["variant"] if several else ""))


def first(frame: pd.DataFrame, column: str, most: int, noun: str) -> tuple[pd.DataFrame, str]:
    """The rows of the first values of a column, and a note on how many more there are.

    >>> first(pd.DataFrame({"judge": ["a", "b", "a", "c"]}), "judge", 2, "judges")[1]
    '1 more of 3 judges not shown.'
    """
    values = frame[column].unique()
    kept = frame[frame[column].isin(values[:most])]
    return kept, left_out(len(values), most, noun)


def left_out(total: int, shown: int, noun: str) -> str:
    """How many are not shown; empty where all are."""
    return f"{total - shown} more of {total} {noun} not shown." if total > shown else ""


def field(column: str) -> str:
    r"""A column's name as Vega reads it: a dot would mean a nested field.

    >>> field("judge.model")
    'judge\\.model'
    """
    return re.sub(r"([.\[\]'\"\\])", r"\\\1", column)


def short(texts: Iterable[str], most: int) -> dict[str, str]:
    """Each text in at most so many characters, and still told apart from the others.

    What all long ones end and begin with is cut first, as far as need be, then the middle.

    >>> short(["lab/model-1:thinking", "lab/model-2:thinking", "x"], 12).values()
    dict_values(['lab/model-1…', 'lab/model-2…', 'x'])
    """
    every = list(dict.fromkeys(map(str, texts)))
    long = [text for text in every if len(text) > most]
    head = _shared(long)
    tail = _shared([text[head:][::-1] for text in long])
    found: dict[str, str] = {}
    for text in every:
        told = text
        if tail and len(told) > most:
            told = told[: -min(tail, len(told) - most + 1)] + "…"
        if head and len(told) > most:
            told = "…" + told[min(head, len(told) - most + 1) :]
        if len(told) > most:
            told = f"{told[: most // 2 - 1]}…{told[most // 2 - most :]}"
        if told in found.values():
            told = f"{told[: most - 4]}… {len(found) + 1}"
        found[text] = told
    return found


def _shared(texts: Sequence[str]) -> int:
    """How many letters several texts begin with in common."""
    columns = zip(*texts, strict=False) if len(texts) > 1 else ()
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, columns))


def spelled(words: Mapping[str, str | list[str]]) -> str:
    """How labels read, as Vega's expression; a list stands on a line each."""
    return f"({json.dumps(words)})[datum.label]"


def names(
    column: str, texts: Iterable[str], *, most: int = _NAME, lines: bool = False, **more: Any
) -> Any:
    """A row per name, cut to its place.

    Args:
        column: holds the names.
        texts: all of them.
        most: characters of a line.
        lines: whether a task and its variant stand on a line each.
        **more: such as an order.
    """
    words: dict[str, str | list[str]] = {**short(texts, most)}
    if lines:
        parts = {str(text): str(text).split(" · ", 1) for text in texts}
        cut = short([part for both in parts.values() for part in both], most)
        words = {text: [cut[part] for part in both] for text, both in parts.items()}
    return written(column, words, limit=9 * most, **more)


def written(
    column: str, words: Mapping[str, str | list[str]], *, limit: int = 480, **more: Any
) -> Any:
    """A row per name, as it is written; a list stands on a line each."""
    axis = alt.Axis(
        labelExpr=spelled(words), labelLimit=limit, ticks=False, domain=False, labelPadding=6
    )
    return alt.Y(f"{field(column)}:N", title=None, axis=axis, **more)


def slanted(column: str, texts: Iterable[str], **more: Any) -> Any:
    """A column per name, written at a slant."""
    axis = alt.Axis(
        labelExpr=spelled({**short(texts, 20)}), labelAngle=-40, ticks=False, domain=False
    )
    return alt.X(f"{field(column)}:N", title=None, axis=axis, **more)


def fitting(height: float, columns: int = 2) -> int:
    """How many panels of a height a figure has room for."""
    return max(columns, min(MAX_PANELS, columns * int(_MAX_HEIGHT // (height + 60))))


def ordered(column: str, title: str, values: Iterable[Any]) -> Any:
    """Colours for values with an order, all of them seen on white and on near-black."""
    scheme = alt.SchemeParams(name="viridis", extent=[0.08, 0.95])
    return alt.Color(
        f"{field(column)}:O",
        title=title,
        scale=alt.Scale(scheme=scheme, domain=list(values)),
        legend=alt.Legend(orient="top", symbolStrokeWidth=0.5, columns=12),
    )


def graded(column: str, title: str, low: float, high: float) -> Any:
    """Colours for an amount from low to high; what lies beyond has the colour of the end."""
    scheme = alt.SchemeParams(name="viridis", extent=[0.08, 0.95])
    return alt.Color(
        f"{field(column)}:Q",
        title=title,
        scale=alt.Scale(scheme=scheme, domain=[low, high], clamp=True),
        legend=alt.Legend(orient="top", gradientLength=160),
    )


def symbols(column: str, kinds: Sequence[Symbol]) -> dict[str, Any]:
    """Kinds of points told apart by shape, colour and filling, with one legend."""
    domain = [name for name, *_ in kinds]
    ranges = {
        "shape": [shape for _, shape, *_ in kinds],
        "fill": [colour if filled else "transparent" for _, _, colour, filled in kinds],
        "stroke": [colour for _, _, colour, _ in kinds],
    }
    legend = alt.Legend(orient="top", title=None, symbolStrokeWidth=1.5)
    channels = {"shape": alt.Shape, "fill": alt.Fill, "stroke": alt.Stroke}
    return {
        name: channels[name](
            f"{field(column)}:N", scale=alt.Scale(domain=domain, range=values), legend=legend
        )
        for name, values in ranges.items()
    }


def spans(base: Any, value: Any, low: str = "low", high: str = "high", **options: Any) -> Any:
    """A rule over each interval that is known, on the axis of the value that it belongs to."""
    start = value.copy(deep=False)
    start.shorthand = f"{field(low)}:Q"
    known = base.transform_filter(f"isValid(datum['{low}']) && isValid(datum['{high}'])")
    rules = known.mark_rule(**{"strokeWidth": 1.5, "opacity": 0.65, **options})
    end = f"{field(high)}:Q"
    return (
        rules.encode(x=start, x2=end) if isinstance(value, alt.X) else rules.encode(y=start, y2=end)
    )


def titled(chart: Any, title: str, *notes: str) -> Figure:
    """The chart under its finding, with how to read it below."""
    lines = textwrap.wrap(
        title, _TITLE_LINE, max_lines=_TITLE_LINES, placeholder=" …", break_on_hyphens=False
    )
    told = textwrap.wrap(" ".join(note for note in notes if note), _TITLE_LINE + 26)
    heading = alt.TitleParams(lines or [""], subtitle=told) if told else alt.TitleParams(lines)
    figure: Figure = chart.properties(title=heading)
    return figure


def caption(figure: Figure) -> str:
    """What stands over a figure, in one line: for a screen that is narrower than it."""
    return " ".join(figure.title.text)


def faceted(
    chart: Any, column: str, texts: Sequence[str], *, columns: int = 2, width: int = WIDTH
) -> Any:
    """A panel per value of a column, wrapped, in the order of the texts.

    A narrow panel keeps a distance that leaves room for its heading.
    """
    order = list(dict.fromkeys(texts))
    room = max(width, 200)
    header = alt.Header(labelExpr=spelled(_headings(order, room)), labelLimit=room + 20)
    facet = alt.Facet(f"{field(column)}:N", title=None, header=header, sort=order)
    spacing = {"row": 20, "column": 20 + room - width}
    return chart.facet(facet=facet, columns=columns, spacing=spacing)


def _headings(texts: Iterable[str], room: float) -> dict[str, str | list[str]]:
    """Headings of panels in lines, the variant below its task."""
    lines = {}
    for text in texts:
        parts = [
            textwrap.wrap(part, int(room / 6.2), max_lines=4, placeholder=" …")
            for part in str(text).split(" · ", 1)
        ]
        lines[str(text)] = [line for part in parts for line in part]
    return {text: found or [""] for text, found in lines.items()}


def in_panels(chart: Any, frame: pd.DataFrame, title: str, *notes: str) -> Figure:
    """A panel per `panel` of the frame, wrapped, so that any number of variants can be read."""
    return titled(faceted(chart, "panel", list(frame["panel"])), title, *notes)


def svg(chart: Figure) -> str:
    """The chart as a standalone picture; needs no browser and no network."""
    return _own_ids(_drawn(chart, "transparent"))


def png(chart: Figure) -> bytes:
    """The chart in black on white, at twice its size."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(_own_ids(_drawn(chart, "white")), scale=2))


def _drawn(chart: Figure, ground: str) -> str:
    import vl_convert

    spec = chart.to_dict()
    spec["config"] = _config(ground)
    return str(vl_convert.vegalite_to_svg(spec))


def _config(ground: str) -> dict[str, Any]:
    """How every figure looks; whatever is not data is in ink."""
    faint = {"gridColor": INK, "gridOpacity": 0.13}
    guide = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal"}
    return {
        "background": ground,
        "font": "sans-serif",
        "padding": 8,
        "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": WIDTH},
        "axis": {**guide, **faint, "domainColor": INK, "tickColor": INK, "domainOpacity": 0.4},
        "legend": {**guide, "symbolStrokeColor": INK, "gradientStrokeColor": INK},
        "header": {
            **guide,
            "labelFontSize": 11,
            "labelAnchor": "start",
            "labelFontWeight": "bold",
            "labelPadding": 6,
        },
        "title": {
            "anchor": "start",
            "color": INK,
            "fontSize": 14,
            "offset": 14,
            "subtitleColor": INK,
            "subtitleFontSize": 11,
            "subtitlePadding": 6,
        },
        "rule": {"color": INK},
        "tick": {"color": INK},
        "text": {"color": INK, "fontSize": 10},
        "point": {"opacity": 1, "size": 60, "strokeWidth": 1.5},
    }


def _own_ids(picture: str) -> str:
    """Ids that repeat with the picture, and are its own on a page with others.

    The renderer numbers them through all pictures of a process.
    """
    ids = list(dict.fromkeys(re.findall(r'\bid="([^"]+)"', picture)))
    if not ids:
        return picture
    used = re.compile(rf"(?<=[\"#])({'|'.join(map(re.escape, ids))})(?=[\")])")
    mark = content_hash(used.sub("", picture))[:8]
    return used.sub(lambda match: f"f{mark}-{ids.index(match[0])}", picture)
