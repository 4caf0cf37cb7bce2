"""What figures share: their registration, colours, panels, labels that fit, and rendering.

One SVG works on white paper and on a dark page: its background is transparent, and text, axes and
rules are in `currentColor`, the colour of the surrounding text. Data colours are distinguishable
for colour-blind readers on both backgrounds; light shades have an outline.
"""

import json
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from tempfile import NamedTemporaryFile
from typing import Any, Final

import pandas as pd

from judge_gym.analysis.frames import JUDGE
from judge_gym.errors import DesignError
from judge_gym.records import content_hash, palette
from judge_gym.records.palette import judge_colours


class _Altair:
    """Loads altair on first use: a report without pictures does not need it.

    Encodings are channels such as `alt.X("value:Q")`: altair takes 7 ms to read one from a text.
    """

    def __getattr__(self, name: str) -> Any:
        import altair

        return getattr(altair, name)


alt: Any = _Altair()
Figure = Any
"""A chart of altair, of any kind."""
INK: Final = "currentColor"
BLUE, ORANGE, RED = palette.BLUE, palette.ORANGE, palette.RED
PINK, SKY = palette.PINK, palette.SKY
GREY: Final = "#8C8C8C"
WIDTH: Final = 240
"""The width of a panel if two are side by side, without the names on its left."""
MAX_PANELS, MAX_ROWS = 12, 40
"""The largest numbers drawn; the rest is counted in a note."""
_NAME, _TITLE_LINE, _TITLE_LINES, _MAX_HEIGHT = 28, 92, 3, 1600
SMALL: Final = 12
"""The size of the smallest text, in pixels."""
SHARE: Final = {"domain": [0, 1]}
OUTLINE: Final[dict[str, Any]] = {"stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.55}
Symbol = tuple[str, str, str, bool]
"""A kind of point: name, shape, colour, and whether it is filled."""
BAR_SHAPE: Final = "M0,-1V1"
_CONTAINER = re.compile(r' role="graphics-\w+" aria-roledescription="[\w ]* container"')
"""A group that the renderer announces to screen readers without a name."""


FONTS: Final = (
    str(palette.FONTS),
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.fonts",
    "~/.local/share/fonts",
)
"""Where the font of pages is, and where Linux installs fonts for letters that it lacks."""
Drawn = tuple[Any, Sequence[str]]
"""A chart without a title, and the notes below its title."""


class FigureKind:
    """A figure that draws frames with given columns.

    Args:
        draw: draws the prepared data.
        finding: states in one sentence what the prepared data show.
        columns: the columns that are needed.
        known: the columns in which undefined values are left out.
        optional: columns that are undefined if the frame lacks them.
        by_judge: whether `draw` takes `judges`, all those of the study, for their colours.
    """

    def __init__(
        self,
        draw: Callable[..., Drawn],
        finding: Callable[..., str],
        columns: Sequence[str],
        known: Sequence[str],
        optional: Sequence[str],
        by_judge: bool,
    ) -> None:
        self._draw, self._finding, self._by_judge = draw, finding, by_judge
        self.columns, self._known, self._optional = columns, known, optional
        self.__doc__ = draw.__doc__

    def __call__(
        self,
        frame: pd.DataFrame,
        title: str | None = None,
        *,
        judges: Iterable[str] = (),
        **options: Any,
    ) -> Figure:
        """Draws the figure under a title, by default its finding; None without data.

        Given all `judges` of a study, each has the colour that it has in other figures.
        """
        data = self.data(frame)
        if data.empty:
            return None
        with alt.utils.schemapi.debug_mode(False):  # tests validate each kind of figure
            coloured = {"judges": judges} if self._by_judge else {}
            chart, notes = self._draw(data, **options, **coloured)
            return titled(chart, title or self._finding(data, **options), *notes)

    def has_data(self, frame: pd.DataFrame) -> bool:
        """Whether anything of the frame can be drawn."""
        return not self.data(frame).empty

    def finding(self, frame: pd.DataFrame, **options: Any) -> str:
        """Returns in one sentence what the figure shows."""
        return self._finding(self.data(frame), **options)

    def data(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Returns the columns that are shown, without rows in which a known value is missing."""
        columns = [*self.columns, *self._optional]
        if frame.empty:  # an empty frame needs no columns
            return pd.DataFrame(columns=columns, dtype=object)
        for column in self.columns:
            if column not in frame:
                raise DesignError(
                    f"the frame has no column {column!r}; the figure needs "
                    f"{', '.join(self.columns)}",
                    choices=self.columns,
                )
        shown = frame.reindex(columns=columns).dropna(subset=list(self._known))
        shown = shown.reset_index(drop=True)
        return panels(shown) if {"task", "variant"} <= {*columns} else shown


FIGURES: dict[str, FigureKind] = {}


def figure(
    columns: Sequence[str],
    *,
    known: Sequence[str],
    finding: Callable[..., str],
    optional: Sequence[str] = (),
    by_judge: bool = False,
) -> Callable[[Callable[..., Drawn]], FigureKind]:
    """Registers a function that draws a figure, under its own name."""

    def register(draw: Callable[..., Drawn]) -> FigureKind:
        FIGURES[draw.__name__] = FigureKind(draw, finding, columns, known, optional, by_judge)
        return FIGURES[draw.__name__]

    return register


def panels(frame: pd.DataFrame) -> pd.DataFrame:
    """Adds a column `panel`: the task, and the variant if there are several."""
    several = frame["variant"].nunique() > 1
    return frame.assign(panel=frame["task"] + (" · " + frame["variant"] if several else ""))


def first_values(
    frame: pd.DataFrame, column: str, most: int, noun: str
) -> tuple[pd.DataFrame, str]:
    """Returns the rows of the first values of a column, and a note on the omitted ones.

    >>> first_values(pd.DataFrame({"judge": ["a", "b", "a", "c"]}), "judge", 2, "judges")[1]
    '1 more of 3 judges not shown.'
    """
    values = frame[column].unique()
    kept = frame[frame[column].isin(values[:most])]
    return kept, omitted(len(values), most, noun)


def omitted(total: int, shown: int, noun: str) -> str:
    """Returns a note on how many are not shown; empty if all are."""
    return f"{total - shown} more of {total} {noun} not shown." if total > shown else ""


def field(column: str) -> str:
    r"""Escapes a column's name for Vega, where a dot would mean a nested field.

    >>> field("judge.model")
    'judge\\.model'
    """
    return re.sub(r"([.\[\]'\"\\])", r"\\\1", column)


def shortened(texts: Iterable[str], most: int) -> dict[str, str]:
    """Maps each text to a distinct text of at most so many characters.

    The common end and beginning of the long texts are cut first, then the middle.

    >>> shortened(["lab/model-1:thinking", "lab/model-2:thinking", "x"], 12).values()
    dict_values(['lab/model-1…', 'lab/model-2…', 'x'])
    """
    every = list(dict.fromkeys(map(str, texts)))
    long = [text for text in every if len(text) > most]
    head = _shared(long)
    tail = _shared([text[head:][::-1] for text in long])
    found: dict[str, str] = {}
    for text in every:
        cut = text
        if tail and len(cut) > most:
            cut = cut[: -min(tail, len(cut) - most + 1)] + "…"
        if head and len(cut) > most:
            cut = "…" + cut[min(head, len(cut) - most + 1) :]
        if len(cut) > most:
            cut = f"{cut[: most // 2 - 1]}…{cut[most // 2 - most :]}"
        if cut in found.values():
            cut = f"{cut[: most - 4]}… {len(found) + 1}"
        found[text] = cut
    return found


def _shared(texts: Sequence[str]) -> int:
    """Returns the length of the common beginning of several texts."""
    columns = zip(*texts, strict=False) if len(texts) > 1 else ()
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, columns))


def label_expression(words: Mapping[str, str | list[str]]) -> str:
    """Returns a Vega expression that maps labels to text; a list has one line each."""
    return f"({json.dumps(words)})[datum.label]"


def row_names(
    column: str, texts: Iterable[str], *, most: int = _NAME, lines: bool = False, **more: Any
) -> Any:
    """Returns a y axis with a row per name, shortened to `most` characters a line.

    With `lines`, a task and its variant have a line each; `more` are options of the axis.
    """
    words: dict[str, str | list[str]] = {**shortened(texts, most)}
    if lines:
        parts = {str(text): str(text).split(" · ", 1) for text in texts}
        cut = shortened([part for both in parts.values() for part in both], most)
        words = {text: [cut[part] for part in both] for text, both in parts.items()}
    return row_labels(column, words, limit=9 * most, **more)


def row_labels(
    column: str, words: Mapping[str, str | list[str]], *, limit: int = 480, **more: Any
) -> Any:
    """Returns a y axis with a row per name and the given labels; a list has one line each."""
    axis = alt.Axis(
        labelExpr=label_expression(words),
        labelLimit=limit,
        ticks=False,
        domain=False,
        labelPadding=6,
    )
    return alt.Y(f"{field(column)}:N", title=None, axis=axis, **more)


def column_names(column: str, texts: Iterable[str], **more: Any) -> Any:
    """Returns an x axis with a column per name, in slanted text."""
    axis = alt.Axis(
        labelExpr=label_expression({**shortened(texts, 20)}),
        labelAngle=-40,
        ticks=False,
        domain=False,
    )
    return alt.X(f"{field(column)}:N", title=None, axis=axis, **more)


def panel_limit(height: float, columns: int = 2) -> int:
    """Returns how many panels of a height a figure has room for."""
    return max(columns, min(MAX_PANELS, columns * int(_MAX_HEIGHT // (height + 60))))


def fitting_rows(
    data: pd.DataFrame, *, judges: int = MAX_ROWS, step: float = 22
) -> tuple[pd.DataFrame, str]:
    """Selects as many judges and panels as a figure has room for, and a note on the others."""
    shown, more = first_values(data, JUDGE, judges, "judges")
    limit = panel_limit(step * shown[JUDGE].nunique())
    shown, fewer = first_values(shown, "panel", limit, "panels")
    return shown, f"{more} {fewer}".strip()


def ordinal_colours(column: str, title: str, values: Iterable[Any]) -> Any:
    """Returns colours for ordered values, visible on white and on near-black."""
    scheme = alt.SchemeParams(name="viridis", extent=[0.08, 0.95])
    return alt.Color(
        f"{field(column)}:O",
        title=title,
        scale=alt.Scale(scheme=scheme, domain=list(values)),
        legend=alt.Legend(orient="top", symbolStrokeWidth=0.5, columns=12),
    )


def percent_axis(count: int) -> Any:
    """Returns an axis of shares with about so many numbers, in percent as tables write it."""
    # The format is that of the labels that screen readers speak.
    return alt.Axis(format="%", labelExpr="round(100 * datum.value) + ' %'", tickCount=count)


def named_colours(
    column: str,
    names: Sequence[str],
    colours: Sequence[str],
    *,
    title: str | None = None,
    **more: Any,
) -> Any:
    """Returns a colour for each name; further options are those of the legend."""
    return alt.Color(
        f"{field(column)}:N",
        title=title,
        scale=alt.Scale(domain=list(names), range=list(colours)),
        legend=alt.Legend(orient="top", **more),
    )


def by_judge(
    column: str, judges: Iterable[str], of: Iterable[str] = (), *, channel: str = "Color"
) -> Any:
    """Colours marks by their judge, without a legend, since names are written beside them.

    Args:
        column: which names the judge.
        judges: that are drawn.
        of: all judges of the study, if more than those that are drawn.
        channel: what is coloured: `Color`, `Fill` or `Stroke`.
    """
    colours = judge_colours(of or judges)
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return getattr(alt, channel)(f"{field(column)}:N", scale=scale, legend=None)


def gradient(column: str, title: str, low: float, high: float) -> Any:
    """Returns colours for an amount from low to high, clamped at the ends."""
    scheme = alt.SchemeParams(name="viridis", extent=[0.08, 0.95])
    return alt.Color(
        f"{field(column)}:Q",
        title=title,
        scale=alt.Scale(scheme=scheme, domain=[low, high], clamp=True),
        legend=alt.Legend(orient="top", gradientLength=160),
    )


def symbols(column: str, kinds: Sequence[Symbol]) -> dict[str, Any]:
    """Returns encodings of kinds of points by shape, colour and filling, with one legend."""
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


def interval_rules(
    base: Any, value: Any, low: str = "low", high: str = "high", **options: Any
) -> Any:
    """Returns a rule over each known interval, on the axis of its value."""
    start = value.copy(deep=False)
    start.shorthand = f"{field(low)}:Q"
    known = base.transform_filter(f"isValid(datum['{low}']) && isValid(datum['{high}'])")
    rules = known.mark_rule(**{"strokeWidth": 1.5, "opacity": 0.65, **options})
    end = f"{field(high)}:Q"
    if isinstance(value, alt.X):
        return rules.encode(x=start, x2=alt.X2(end))
    return rules.encode(y=start, y2=alt.Y2(end))


def titled(chart: Any, title: str, *notes: str) -> Figure:
    """Adds a title and the notes below it to a chart."""
    lines = textwrap.wrap(
        title, _TITLE_LINE, max_lines=_TITLE_LINES, placeholder=" …", break_on_hyphens=False
    )
    below = textwrap.wrap(" ".join(note for note in notes if note), _TITLE_LINE + 20)
    heading = alt.TitleParams(lines or [""], subtitle=below) if below else alt.TitleParams(lines)
    figure: Figure = chart.properties(title=heading)
    return figure


def caption(figure: Figure) -> str:
    """Returns the title of a figure in one line, for narrow screens."""
    return " ".join(figure.title.text)


def faceted(
    chart: Any, column: str, texts: Sequence[str], *, columns: int = 2, width: int = WIDTH
) -> Any:
    """Returns one panel per value of a column, wrapped, in the order of the texts.

    Narrow panels are spaced so that their headings fit.
    """
    order = list(dict.fromkeys(texts))
    room = max(width, 200)
    header = alt.Header(labelExpr=label_expression(_headings(order, room)), labelLimit=room + 20)
    facet = alt.Facet(f"{field(column)}:N", title=None, header=header, sort=order)
    spacing = {"row": 20, "column": 20 + room - width}
    return chart.facet(facet=facet, columns=columns, spacing=spacing)


def _headings(texts: Iterable[str], room: float) -> dict[str, str | list[str]]:
    """Returns the lines of each panel's heading, the variant below its task."""
    lines = {}
    for text in texts:
        parts = [
            textwrap.wrap(part, int(room / 6.8), max_lines=4, placeholder=" …")
            for part in str(text).split(" · ", 1)
        ]
        lines[str(text)] = [line for part in parts for line in part]
    return {text: found or [""] for text, found in lines.items()}


def svg(chart: Figure) -> str:
    """Renders the chart as a standalone picture, without a browser or network."""
    return _stable_ids(_CONTAINER.sub("", _rendered(chart, "transparent")))


def png(chart: Figure) -> bytes:
    """Renders the chart in black on white, at twice its size."""
    return bytes(_renderer().svg_to_png(_stable_ids(_rendered(chart, "white")), scale=2))


def _rendered(chart: Figure, ground: str) -> str:
    spec = chart.to_dict(validate=False)
    spec["config"] = _config(ground)
    try:
        return str(_renderer().vegalite_to_svg(spec))
    except ValueError:  # it fails where it cuts a label in the middle of an emoji
        for guide in ("axis", "legend", "header"):
            spec["config"][guide]["labelLimit"] = 0
        whole = re.sub(r'"(labelLimit|limit)": \d+', r'"\1": 0', json.dumps(spec))
        return str(_renderer().vegalite_to_svg(whole))


@cache
def _renderer() -> Any:
    """Loads the renderer, and makes it prefer the font that it contains.

    It reads the file of an installed font anew for every letter, which takes most of the time. So
    installed fonts are added after its own, for letters that its own lacks.
    """
    import vl_convert

    before = os.environ.get("FONTCONFIG_FILE")
    with NamedTemporaryFile("w", suffix=".conf") as config:
        config.write(f"<fontconfig><dir>{config.name}</dir></fontconfig>")  # names no fonts
        config.flush()
        os.environ["FONTCONFIG_FILE"] = config.name
        for folder in FONTS:
            vl_convert.register_font_directory(os.path.expanduser(folder))
    if before is None:
        del os.environ["FONTCONFIG_FILE"]
    else:
        os.environ["FONTCONFIG_FILE"] = before
    return vl_convert


def _config(ground: str) -> dict[str, Any]:
    """Returns the style of all figures; everything but data is in ink."""
    faint = {"gridColor": INK, "gridOpacity": 0.13}
    guide = {
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "labelFontSize": SMALL,
        "titleFontSize": SMALL,
    }
    return {
        "background": ground,
        "font": f"{palette.FONT}, sans-serif",
        "padding": 8,
        "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": WIDTH},
        "axis": {**guide, **faint, "domainColor": INK, "tickColor": INK, "domainOpacity": 0.4},
        "legend": {**guide, "symbolStrokeColor": INK, "gradientStrokeColor": INK},
        "header": {
            **guide,
            "labelAnchor": "start",
            "labelFontWeight": "bold",
            "labelPadding": 6,
        },
        "title": {
            "anchor": "start",
            "color": INK,
            "fontSize": 14,
            "fontWeight": 600,
            "offset": 14,
            "subtitleColor": INK,
            "subtitleFontSize": SMALL,
            "subtitlePadding": 6,
        },
        "rule": {"color": INK},
        "tick": {"color": INK},
        "text": {"color": INK, "fontSize": SMALL},
        "point": {"opacity": 1, "size": 60, "strokeWidth": 1.5},
    }


def _stable_ids(picture: str) -> str:
    """Replaces ids by ones that depend on the picture alone and are unique on a page.

    The renderer numbers ids over all pictures of a process.
    """
    ids = list(dict.fromkeys(re.findall(r'\bid="([^"]+)"', picture)))
    if not ids:
        return picture
    used = re.compile(rf"(?<=[\"#])({'|'.join(map(re.escape, ids))})(?=[\")])")
    mark = content_hash(used.sub("", picture))[:8]
    return used.sub(lambda match: f"f{mark}-{ids.index(match[0])}", picture)
