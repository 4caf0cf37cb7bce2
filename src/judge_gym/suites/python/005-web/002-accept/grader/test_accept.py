"""Headers and offers, several in one run of the candidate."""


def types(candidate, *cases):
    source = "from solution import best_type\n[best_type(header, offers) for header, offers in cases]"
    return candidate.run(source, cases=[list(case) for case in cases])


def languages(candidate, *cases):
    source = """
    from solution import best_language
    [best_language(header, offers) for header, offers in cases]
    """
    return candidate.run(source, cases=[list(case) for case in cases])


HTML, JSON, PLAIN = "text/html", "application/json", "text/plain"
ALL = [HTML, JSON, PLAIN]


def test_quality_decides_and_then_the_order_of_the_offers(candidate):
    assert types(
        candidate,
        ("application/json, text/html;q=0.9", ALL),
        ("application/json, text/html", ALL),
        ("text/plain;q=0.2, application/json;q=0.3", ALL),
        ("TEXT/Plain", ALL),
        ("image/png", ALL),
        ("text/html;q=0", ALL),
    ) == [JSON, HTML, JSON, PLAIN, None, None]


def test_no_header_or_no_valid_element_takes_the_first_offer(candidate):
    empty = types(candidate, (None, ALL), ("", ALL), (" , ,", ALL), ("html", ALL), (None, []))
    assert empty == [HTML, HTML, HTML, HTML, None]
    assert types(candidate, ("*/*", []), ("*/html", ALL), ("text/html;q=2", [JSON])) == [
        None,
        HTML,
        JSON,
    ]


def test_the_most_specific_range_gives_the_quality_and_not_the_highest(candidate):
    assert types(
        candidate,
        ("text/*;q=0.9, text/html;q=0.1, application/json;q=0.5", [HTML, JSON]),
        ("*/*, text/html;q=0", [HTML, JSON]),
        ("*/*;q=0.3, text/*;q=0.2", [HTML, JSON]),
        ("text/html;q=0, text/*", [HTML, PLAIN]),
        ("*/*, text/*;q=0", [HTML, PLAIN]),
        ("text/html;q=0.2, text/html;q=0.8, application/json;q=0.5", [JSON, HTML]),
    ) == [JSON, JSON, JSON, PLAIN, None, HTML]


def test_parameters_belong_to_the_range(candidate):
    one, two = "text/html;level=1", "text/html; level=2"
    assert types(
        candidate,
        ("text/html;level=2", [HTML, one, two]),
        ("text/html;q=0.5;level=1, text/html;q=0.4", [HTML, one]),
        ("text/html;level=1;q=0.1, text/html;q=0.4", [one, HTML]),
        ("text/*;level=1;q=0.1, text/html;q=0.4, */*;q=0.2", [PLAIN, one]),
        ("text/html;level=3", [one, two]),
        ("text/html;charset=UTF-8", ["text/html;level=1;charset=utf-8"]),
        ("text/html;level=A", ["text/html;level=a"]),
        ("text/html;flag", [HTML]),
        ("text/html; LEVEL = 1", [HTML, one]),
    ) == [two, one, HTML, one, None, "text/html;level=1;charset=utf-8", None, HTML, one]


def test_quoted_values_hide_separators(candidate):
    assert types(
        candidate,
        ('text/html;title="a,b;q=0", application/json;q=0.5', [JSON, 'text/html;title="a,b;q=0"']),
        ('text/html;level="1"', ["text/html;level=1"]),
        (r'text/plain;a="x\",y", text/html;q=0.1', [HTML, r'text/plain;a="x\",y"']),
        (r'text/plain;a="\x"', ["text/plain;a=x"]),
        ('text/html;q="0.1", application/json;q=0.5', [HTML, JSON]),
    ) == [
        'text/html;title="a,b;q=0"',
        "text/html;level=1",
        r'text/plain;a="x\",y"',
        "text/plain;a=x",
        JSON,
    ]


def test_qualities_have_one_form(candidate):
    for text in ("0.", "0.000", "0"):
        assert types(candidate, (f"text/html;q={text}, text/plain;q=0.001", ALL)) == [PLAIN]
    for text in ("1.", "1.000", "1", "0.999", ""):
        quality = f"text/html; Q = {text}" if text else "text/html"
        assert types(candidate, (f"text/plain;q=0.9\t,{quality}", ALL)) == [HTML]
    bad = ["1.5", ".5", "1.001", "0.1234", "-1", "x", "", "2", "1e0", "0,5", "nan", "٠"]
    cases = [(f"text/html;q={text}, text/plain;q=0.1", [HTML, PLAIN]) for text in bad]
    expected = [PLAIN] * len(bad)
    expected[bad.index("0,5")] = PLAIN
    assert types(candidate, *cases) == expected


def test_ranges_have_one_form(candidate):
    bad = ["text", "text/", "/html", "text/html/x", "te xt/html", "text/h(ml", "*", "*/html"]
    cases = [(f"{text}, text/plain;q=0.1", [HTML, PLAIN]) for text in bad]
    assert types(candidate, *cases) == [PLAIN] * len(bad)
    assert types(candidate, ("application/vnd.x+json", [JSON, "application/vnd.X+json"])) == [
        "application/vnd.X+json"
    ]


def test_languages_match_by_whole_parts(candidate):
    assert languages(
        candidate,
        ("en", ["eng", "en-GB"]),
        ("EN-gb", ["en", "en-GB"]),
        ("fr, en;q=0.5", ["en-GB", "fr-FR"]),
        ("en;q=0.2, en-GB;q=0.9, de;q=0.5", ["de", "en-US", "en-GB"]),
        ("*;q=0.5, en;q=0.1", ["en", "de"]),
        ("*, en;q=0", ["en-US", "de"]),
        ("de-1996-x", ["de-1996-x-y", "de"]),
    ) == ["en-GB", "en-GB", "fr-FR", "en-GB", "de", "de", "de-1996-x-y"]


def test_a_second_round_uses_shorter_ranges(candidate):
    assert languages(
        candidate,
        ("de-AT", ["en", "de-DE"]),
        ("de-AT, en;q=0.1", ["de", "en"]),
        ("zh-Hant-TW;q=0.5, fr-CA;q=0.4", ["fr", "zh-Hant", "zh"]),
        ("zh-Hant-TW", ["zh", "fr"]),
        ("de-AT, de;q=0", ["de", "de-DE"]),
        ("de-AT, de-DE;q=0", ["de-DE", "de-CH"]),
        ("de-AT, *;q=0", ["de", "en"]),
        ("pt-BR, es-MX;q=0.7", ["es", "pt-PT"]),
    ) == ["de-DE", "en", "zh-Hant", None, None, "de-CH", None, "pt-PT"]


def test_bad_language_ranges_are_ignored(candidate):
    bad = ["en_GB", "-en", "en-", "ninechars", "e n", "en-*", "é"]
    cases = [(f"{text}, de;q=0.1", ["en", "ninechars", "é", "de"]) for text in bad]
    assert languages(candidate, *cases) == ["de"] * len(bad)
    assert languages(candidate, (None, ["en"]), ("", ["en"]), ("en_GB", ["fr"]), ("*", [])) == [
        "en",
        "en",
        "fr",
        None,
    ]
