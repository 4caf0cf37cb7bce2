"""HTML pages as trees, for tests that need no browser."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

VOID = set("area base br col embed hr img input link meta source track wbr".split())


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.builder = ET.TreeBuilder()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open:
                last = self.open.pop()
                self.builder.end(last)
                if last == tag:
                    break

    def handle_data(self, data: str) -> None:
        if self.open:
            self.builder.data(data)


def parse(html: str) -> ET.Element:
    """Returns the root element of a page, or of a part of one."""
    parser = _Builder()
    parser.builder.start("root", {})
    parser.open.append("root")
    parser.feed(html)
    parser.close()
    while parser.open:
        parser.builder.end(parser.open.pop())
    return parser.builder.close()


def text(element: ET.Element | None) -> str:
    """Returns what a reader sees of an element, with single spaces."""
    assert element is not None
    return " ".join("".join(element.itertext()).split())


def rows(element: ET.Element | None) -> list[list[str]]:
    """Returns the cells of a table's body as text."""
    assert element is not None
    return [[text(cell) for cell in row.iter("td")] for row in element.iterfind(".//tbody/tr")]


def region(page: ET.Element, name: str) -> ET.Element | None:
    """Returns the element with an accessible name."""
    return page.find(f".//*[@aria-label='{name}']")
