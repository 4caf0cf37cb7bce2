"""Requests are made in process, as a WSGI server makes them."""

import hashlib

import pytest

START = """
    from datetime import datetime, timedelta, timezone
    from solution import File, Static

    zone = timezone(timedelta(hours=2))
    when = datetime(1994, 11, 6, 10, 49, 37, 900000, zone)
    app = Static({
        "/a.txt": File(b"0123456789", "text/plain", when),
        "/empty": File(b"", "text/x", when),
    })

    def ask(method, path, **headers):
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path}
        environ |= {"HTTP_" + name.upper(): value for name, value in headers.items()}
        answers = []
        def start_response(status, headers, exc_info=None):
            answers.append((status, headers))
        body = b"".join(app(environ, start_response)).decode()
        [(status, headers)] = answers
        assert len({name.lower() for name, _ in headers}) == len(headers)
        return [status[:3], body, {name.lower(): value for name, value in headers}]

"""
TAG = '"' + hashlib.sha256(b"0123456789").hexdigest()[:32] + '"'
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
BEFORE, AFTER = DATE.replace(":37", ":36"), DATE.replace(":37", ":38")
FULL = {
    "content-type": "text/plain",
    "content-length": "10",
    "etag": TAG,
    "last-modified": DATE,
    "accept-ranges": "bytes",
}


def ask(candidate, *requests):
    source = "    [ask(method, path, **headers) for method, path, headers in requests]\n"
    return candidate.run(START + source, requests=[list(each) for each in requests])


def statuses(candidate, *headers, method="GET"):
    requests = [(method, "/a.txt", each) for each in headers]
    return [int(answer[0]) for answer in ask(candidate, *requests)]


def test_a_whole_file(candidate):
    get, head, empty = ask(
        candidate, ("GET", "/a.txt", {}), ("HEAD", "/a.txt", {}), ("GET", "/empty", {})
    )
    assert get == ["200", "0123456789", FULL]
    assert head == ["200", "", FULL]
    assert (empty[0], empty[1], empty[2]["content-length"]) == ("200", "", "0")


def test_missing_files_and_other_methods(candidate):
    tag = {"if_match": '"x"'}
    missing, posted, none = ask(
        candidate, ("GET", "/b", tag), ("POST", "/a.txt", tag), ("POST", "/b", {})
    )
    assert missing == ["404", "", {"content-length": "0"}]
    assert posted == ["405", "", {"content-length": "0", "allow": "GET, HEAD"}]
    assert none[0] == "404"


def test_if_none_match(candidate):
    good = [TAG, f"W/{TAG}", "*", f'"x", {TAG}', f'"a,b" ,W/"c",,{TAG}', f",{TAG},"]
    assert statuses(candidate, *[{"if_none_match": each} for each in good]) == [304] * len(good)
    bad = ['"x"', TAG[1:-1], f"w/{TAG}", f'"{TAG[1:-1]}, "', f"{TAG} {TAG}", "*, *", "", f"x{TAG}", f'"a,{TAG},b"']
    assert statuses(candidate, *[{"if_none_match": each} for each in bad]) == [200] * len(bad)
    [answer] = ask(candidate, ("HEAD", "/a.txt", {"if_none_match": TAG}))
    assert answer == ["304", "", {"etag": TAG, "last-modified": DATE}]


def test_if_match_is_strong(candidate):
    headers = [TAG, f'"x",{TAG}', "*", f"W/{TAG}", '"x"', ""]
    seen = statuses(candidate, *[{"if_match": each} for each in headers])
    assert seen == [200, 200, 200, 412, 412, 412]
    [answer] = ask(candidate, ("GET", "/a.txt", {"if_match": '"x"'}))
    assert answer == ["412", "", {"content-length": "0"}]


def test_dates_count_in_whole_seconds_of_utc(candidate):
    dates = [BEFORE, DATE, AFTER]
    assert statuses(candidate, *[{"if_modified_since": each} for each in dates]) == [200, 304, 304]
    since = [{"if_unmodified_since": each} for each in dates]
    assert statuses(candidate, *since) == [412, 200, 200]


@pytest.mark.parametrize("name", ["if_modified_since", "if_unmodified_since"])
def test_other_dates_are_ignored(candidate, name):
    far = "2094" if name == "if_modified_since" else "1904"
    dates = [
        "never",
        "",
        f"{far}-11-06T08:49:37Z",
        f"Sat, 06 Nov {far} 08:49:37 +0000",
        f"06 Nov {far} 08:49:37 GMT",
        f"Sat Nov  6 08:49:37 {far}",
        f"Sat, 31 Feb {far} 08:49:37 GMT",
        f"Sat, 6 Nov {far} 08:49:37 GMT",
    ]
    assert statuses(candidate, *[{name: each} for each in dates]) == [200] * len(dates)


def test_tags_come_before_dates(candidate):
    assert statuses(
        candidate,
        {"if_none_match": '"x"', "if_modified_since": AFTER},
        {"if_none_match": TAG, "if_modified_since": BEFORE},
        {"if_match": TAG, "if_unmodified_since": BEFORE},
        {"if_match": '"x"', "if_none_match": TAG},
        {"if_match": TAG, "if_none_match": TAG},
        {"if_unmodified_since": BEFORE, "if_none_match": TAG},
        {"if_none_match": TAG, "range": "bytes=99-"},
    ) == [200, 304, 200, 412, 304, 412, 304]


def test_a_range(candidate):
    ranges = ["bytes=2-4", "bytes=7-", "bytes=-3", "bytes=0-0", "bytes=8-99", "bytes=-99"]
    ranges += ["BYTES= 9-9 ", "bytes=00-01"]
    answers = ask(candidate, *[("GET", "/a.txt", {"range": each}) for each in ranges])
    bodies = ["234", "789", "789", "0", "89", "0123456789", "9", "01"]
    assert [answer[:2] for answer in answers] == [["206", body] for body in bodies]
    part = {"content-length": "3", "content-range": "bytes 2-4/10"}
    assert answers[0][2] == {**FULL, **part}
    assert answers[4][2]["content-range"] == "bytes 8-9/10"


def test_ranges_that_are_ignored(candidate):
    ranges = ["bytes=4-2", "bytes=1-2,4-5", "lines=1-2", "bytes=-", "bytes=a-b", "bytes=1", ""]
    ranges += ["bytes=+1-2", "bytes 1-2", "bytes=1-2-3", "bytes=99-98", "bytes=١-٢", "bytes=--1"]
    assert statuses(candidate, *[{"range": each} for each in ranges]) == [200] * len(ranges)
    head = ask(candidate, ("HEAD", "/a.txt", {"range": "bytes=2-4"}))
    assert head == [["200", "", FULL]]
    assert statuses(candidate, {"range": "bytes=99-"}, method="HEAD") == [200]


def test_ranges_that_cannot_be_satisfied(candidate):
    ranges = ["bytes=10-", "bytes=10-11", "bytes=-0"]
    answers = ask(candidate, *[("GET", "/a.txt", {"range": each}) for each in ranges])
    expected = {"content-length": "0", "content-range": "bytes */10"}
    assert answers == [["416", "", expected]] * 3
    empty = ask(candidate, *[("GET", "/empty", {"range": each}) for each in ("bytes=0-", "bytes=-1")])
    assert [answer[0] for answer in empty] == ["416", "416"]


def test_if_range(candidate):
    ranged = {"range": "bytes=0-1"}
    conditions = [TAG, DATE, f"W/{TAG}", BEFORE, AFTER, '"x"', "*", f"{TAG}, {TAG}", ""]
    seen = statuses(candidate, *[{**ranged, "if_range": each} for each in conditions])
    assert seen == [206, 206] + [200] * 7
    assert statuses(candidate, {"range": "bytes=99-", "if_range": '"x"'}) == [200]
    assert statuses(candidate, {"if_range": TAG}) == [200]


def test_the_parts_of_the_package(candidate):
    source = """
    from static.app import File, Static
    from static.etags import make_etag, matches
    from static.ranges import NotSatisfiable, parse_range
    import solution
    try:
        parse_range("bytes=5-", 5)
        raised = False
    except NotSatisfiable:
        raised = True
    [make_etag(b"0123456789"), matches('W/"a"', '"a"', weak=True), matches('W/"a"', '"a"', weak=False),
     parse_range("bytes=-2", 5), parse_range("bytes=3-1", 2), raised,
     solution.File is File, solution.Static is Static, sorted(solution.__all__)]
    """
    expected = [TAG, True, False, [3, 4], None, True, True, True, ["File", "Static"]]
    assert candidate.run(source) == expected
