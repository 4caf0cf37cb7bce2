"""README's pictures: in both colour schemes, at twice their size, and of what README says."""

import json
import re
import struct
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

from tables import each_row

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTENT = json.loads((IMAGES / "pictures.json").read_text(encoding="utf-8"))
PICTURES = ("price", "findings", "items")


def words(text: str) -> str:
    """The text on one line, without the marks of a quote."""
    return " ".join(text.replace("\n> ", " ").split())


def size(picture: Path) -> tuple[int, int]:
    """The width and height of a PNG file."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


@each_row("name", PICTURES)
def test_a_picture_is_in_both_schemes_at_twice_the_size_at_which_it_is_shown(name: str) -> None:
    shown = re.search(rf'<img src="docs/images/{name}-light.png" width="(\d+)"', README)
    assert shown is not None
    assert f'srcset="docs/images/{name}-dark.png"' in README
    light, dark = (size(IMAGES / f"{name}-{scheme}.png") for scheme in ("light", "dark"))
    assert light == dark and light[0] >= 2 * int(shown[1])


def test_pictures_show_the_sentence_that_readme_quotes() -> None:
    """If it fails, draw them again: `.venv/bin/python scripts/pictures.py`."""
    assert CONTENT["sentence"] in words(README)
    root = ElementTree.fromstring((IMAGES / "terminal.svg").read_text(encoding="utf-8"))
    frames = list(root.iter("{http://www.w3.org/2000/svg}g"))
    lines = [unescape(text.text or "") for text in frames[-1]]
    assert CONTENT["sentence"] in words(" ".join(lines))


def test_a_terminal_plays_and_shows_its_last_frame_where_nothing_moves() -> None:
    root = ElementTree.fromstring((IMAGES / "terminal.svg").read_text(encoding="utf-8"))
    animated = [
        g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.find("*[@dur]") is not None
    ]
    assert len(animated) > 5
    assert [frame.get("opacity") for frame in animated] == ["0"] * (len(animated) - 1) + ["1"]


def test_every_picture_is_shown_on_a_page() -> None:
    pages = [README, *(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))]
    names = {file.name for file in IMAGES.iterdir() if file.suffix != ".json"}
    assert {name for name in names if not any(name in page for page in pages)} == set()
