"""Finds the country that a name means, and tells whether a text names a country."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pycountry

# English names in everyday use that ISO 3166 does not list. The first one of a code in the upper
# table is used instead of the ISO name ("Russian Federation").
EVERYDAY = {
    "BN": "Brunei",
    "BQ": "Bonaire",
    "CD": "DR Congo|Democratic Republic of the Congo|Democratic Republic of Congo|DRC",
    "CG": "Republic of the Congo|Republic of Congo|Congo-Brazzaville",
    "CI": "Ivory Coast",
    "CV": "Cape Verde",
    "FK": "Falkland Islands|Falklands",
    "FM": "Micronesia",
    "MO": "Macau",
    "PS": "Palestine|Palestinian territories",
    "RU": "Russia",
    "SH": "Saint Helena",
    "TR": "Turkey",
    "VA": "Vatican City|Vatican|Holy See",
    "XK": "Kosovo",
}
FURTHER = {
    "AE": "UAE|U.A.E.",
    "BA": "Bosnia",
    "CN": "PRC",
    "GB": "UK|U.K.|Britain|Great Britain|England|Scotland|Wales|Northern Ireland",
    "IE": "Republic of Ireland",
    "KP": "DPRK",
    "KR": "Republic of Korea",
    "MK": "Macedonia",
    "MM": "Burma",
    "NL": "Holland",
    "SZ": "Swaziland",
    "TL": "East Timor",
    "US": "U.S.|US|U.S.A.|USA",
}
# Accepted where a user names a country, but too ambiguous in a text ("Latin America").
INFORMAL = {"AE": "Emirates", "KR": "Korea", "SA": "Saudi", "ST": "São Tomé", "US": "America"}
# Longer names that contain the name of a country and mean something else.
DECOYS = ("New England", "New Guinea", "New Jersey", "New Mexico", "New South Wales")
# Top-level domains that outlets of any country use.
GENERIC_DOMAINS = frozenset(
    "ac ag ai am bz cc cd co fm gg gl im io la ly me nu sc sh st to tv vc ws".split()
)


@dataclass(frozen=True, slots=True)
class Country:
    """A country and the English names by which a text may name it."""

    alpha_2: str
    """Its ISO 3166 code; empty for a country that is not in the list, such as an invented one."""
    names: tuple[str, ...]
    """The most common name first."""


def find_country(name: str) -> Country | None:
    """Looks up the country that a name or an ISO code means, if any.

    >>> find_country("Cote d'Ivoire")
    Country(alpha_2='CI', names=('Ivory Coast', "Côte d'Ivoire", "Republic of Côte d'Ivoire"))
    >>> find_country("Valdoria") is None
    True
    """
    return _index().get(_fold(name))


def names_country(text: str, country: Country) -> bool:
    """Tells whether a text names a country, in whole words as written here or in capitals.

    >>> usa = Country("US", ("United States", "U.S.", "US"))
    >>> names_country("The U.S. economy grew.", usa), names_country("Tell us more.", usa)
    (True, False)
    """
    return any(match["own"] for match in _pattern(country).finditer(text))


def outlet_country(url: str) -> str:
    """The ISO code of an address's top-level domain, empty for a generic one.

    >>> outlet_country("https://www.nrk.no/x"), outlet_country("https://startup.io/x")
    ('NO', '')
    """
    host = re.match(r"\w+://(?:[^/?#]*@)?([^/?#:]+)", url)
    domain = host[1].lower().rstrip(".").rpartition(".")[2] if host else ""
    code = "gb" if domain == "uk" else domain
    country = _index().get(code) if len(code) == 2 and domain not in GENERIC_DOMAINS else None
    return country.alpha_2 if country else ""


@cache
def _atlas() -> tuple[Country, ...]:
    """Loads every country with the names that occur in texts."""
    listed = {row.alpha_2: list(_iso_names(row)) for row in pycountry.countries}
    countries = []
    for code in dict.fromkeys([*listed, *EVERYDAY]):
        # "Bolivia, Plurinational State of" is a form for lists and does not occur in texts.
        iso = [name for name in listed.get(code, ()) if not re.search(r"[,(]", name)]
        everyday, further = (table.get(code, "").split("|") for table in (EVERYDAY, FURTHER))
        names = dict.fromkeys(name for name in [*everyday, *iso, *further] if name)
        countries.append(Country(code, tuple(names) or tuple(listed[code])))
    return tuple(countries)


@cache
def _index() -> dict[str, Country]:
    """Indexes countries by the folded forms of their names and codes."""
    index = {}
    atlas = {country.alpha_2: country for country in _atlas()}
    for code, country in atlas.items():
        for name in (code, *country.names, INFORMAL.get(code, "")):
            index[_fold(name)] = country
    for row in pycountry.countries:
        for name in (row.alpha_3, *_iso_names(row)):
            index.setdefault(_fold(name), atlas[row.alpha_2])
    index.pop("", None)
    return index


def _iso_names(row: object) -> Iterator[str]:
    for field in ("common_name", "name", "official_name"):
        if name := getattr(row, field, ""):
            yield name.removeprefix("the ")


@cache
def _pattern(country: Country) -> re.Pattern[str]:
    """Compiles a pattern with own names in the group `own`, after longer foreign names."""
    foreign = [name for other in _atlas() if other != country for name in other.names]
    name_patterns = [_whole(name) for name in country.names]
    masks = [
        name
        for name in (*foreign, *DECOYS)
        if name not in country.names and any(re.search(pattern, name) for pattern in name_patterns)
    ]
    other_names = "|".join(_whole(name) for name in sorted(masks, key=len, reverse=True))
    return re.compile(
        f"{other_names + '|' if other_names else ''}(?P<own>{'|'.join(name_patterns)})"
    )


def _whole(name: str) -> str:
    spaced = r"\s+".join(re.escape(word) for word in name.split())
    capitals = r"\s+".join(re.escape(word) for word in name.upper().split())
    return rf"(?<!\w)(?:{spaced}|{capitals})(?!\w)"


def _fold(name: str) -> str:
    """Folds case, accents, dots, article and extra spaces of a name."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    words = plain.casefold().replace(".", "").replace("’", "'").split()
    return " ".join(words).removeprefix("the ")
