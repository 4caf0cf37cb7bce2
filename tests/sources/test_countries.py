"""Countries: everyday names, short codes that are no pronouns, names inside longer names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.sources.countries import Country, find_country, names_country, outlet_country
from tables import each_row


@each_row(
    ("names", "code"),
    [
        ("USA|US|us|U.S.|U.S.A.|United States|United States of America|America", "US"),
        ("UK|U.K.|Britain|Great Britain|England|Scotland|Wales|United Kingdom|GBR", "GB"),
        ("Russia|Russian Federation|RU", "RU"),
        ("Turkey|Türkiye|Turkiye", "TR"),
        ("Ivory Coast|Côte d'Ivoire|Cote d’Ivoire|COTE D'IVOIRE", "CI"),
        ("Burma|Myanmar", "MM"),
        ("South Korea|Republic of Korea|Korea|Korea, Republic of", "KR"),
        ("North Korea|DPRK", "KP"),
        ("Iran|Islamic Republic of Iran|Iran, Islamic Republic of", "IR"),
        ("DR Congo|Democratic Republic of the Congo|DRC", "CD"),
        ("Congo|Republic of the Congo|Congo-Brazzaville", "CG"),
        ("Netherlands|The Netherlands|Holland", "NL"),
        ("Czechia|Czech Republic", "CZ"),
        ("Cape Verde|Cabo Verde", "CV"),
        ("Swaziland|Eswatini", "SZ"),
        ("East Timor|Timor-Leste", "TL"),
        ("Palestine|Palestine, State of|State of Palestine", "PS"),
        ("Vatican|Vatican City|Holy See", "VA"),
        ("Brunei|Brunei Darussalam", "BN"),
        ("Macau|Macao", "MO"),
        ("UAE|U.A.E.|United Arab Emirates|Emirates", "AE"),
        ("Kosovo|XK", "XK"),
        ("Bolivia|Bolivia, Plurinational State of", "BO"),
        ("Vietnam|Viet Nam", "VN"),
        ("The Gambia|Gambia", "GM"),
        ("Norway|norway| NORWAY |NOR|no", "NO"),
        ("Curacao|Curaçao", "CW"),
    ],
)  # fmt: skip
def test_a_country_is_found_by_every_name_that_people_use(names: str, code: str) -> None:
    for name in names.split("|"):
        found = find_country(name)
        assert found is not None, name
        assert found.alpha_2 == code, name


@pytest.mark.parametrize("name", ["", "  ", "Valdoria", "Norvessa", "Atlantis", "the", "."])
def test_what_is_no_country_is_not_found(name: str) -> None:
    assert find_country(name) is None


@each_row(
    ("country", "text"),
    [
        ("USA", "The U.S. economy grew."),
        ("USA", "The US-led talks"),
        ("USA", "in the United\nStates"),
        ("USA", "UNITED STATES VOTES"),
        ("UK", "The U.K.'s parliament"),
        ("UK", "protests in Northern Ireland"),
        ("Norway", "Norway's court"),
        ("Norway", "NORWAY VOTES"),
        ("Turkey", "Turkey votes on Sunday"),
        ("Turkey", "Türkiye votes on Sunday"),
        ("Guinea", "Papua New Guinea and Guinea signed it."),
        ("Papua New Guinea", "in Papua New Guinea"),
        ("Sudan", "South Sudan and Sudan"),
        ("Ivory Coast", "Côte d'Ivoire's president"),
        ("DR Congo", "the Democratic Republic of the Congo"),
        ("Congo", "the Republic of the Congo"),
    ],
)
def test_a_text_names_a_country(country: str, text: str) -> None:
    found = find_country(country)
    assert found is not None
    assert names_country(text, found)


@each_row(
    ("country", "text"),
    [
        ("USA", "They told us more."),
        ("USA", "usa.gov, in Latin America"),
        ("USA", "The USAID office"),
        ("UK", "the ukulele of New England"),
        ("Norway", "Norwaylike; norwayan"),
        ("Turkey", "a roast turkey"),
        ("China", "fine china"),
        ("Guinea", "Papua New Guinea, Equatorial Guinea and Guinea-Bissau"),
        ("Guinea", "a guinea pig"),
        ("Sudan", "South Sudan"),
        ("Ireland", "Northern Ireland"),
        ("Mexico", "New Mexico"),
        ("Jersey", "New Jersey"),
        ("Congo", "the Democratic Republic of the Congo"),
        ("Niger", "Nigeria"),
        ("Oman", "A Roman woman"),
        ("Samoa", "American Samoa"),
    ],
)
def test_a_text_does_not_name_a_country(country: str, text: str) -> None:
    found = find_country(country)
    assert found is not None
    assert not names_country(text, found)


def test_an_invented_country_is_named_as_written() -> None:
    valdoria = Country("", ("Valdoria",))
    assert names_country("In Valdoria, judges were dismissed.", valdoria)
    assert names_country("VALDORIA VOTES", valdoria)
    assert not names_country("The Valdorian court", valdoria)


@each_row(
    ("url", "code"),
    [
        ("https://www.nrk.no/x", "NO"),
        ("http://bbc.co.uk", "GB"),
        ("https://user:pw@host.de:8080/x?y", "DE"),
        ("https://NRK.NO./x", "NO"),
        ("https://example.com/x.no", ""),
        ("https://startup.io", ""),
        ("https://new.co", ""),
        ("http://127.0.0.1/x", ""),
        ("https://site.eu", ""),
        ("nrk.no", ""),
        ("", ""),
    ],
)
def test_a_domain_tells_where_an_outlet_is(url: str, code: str) -> None:
    assert outlet_country(url) == code


@given(st.text(max_size=40))
def test_any_text_may_be_asked_about(text: str) -> None:
    find_country(text)
    outlet_country(text)
    assert not names_country(text.lower(), Country("US", ("United States", "US")))
