"""Bodies are sent as text, each character a byte, and fed whole, byte by byte and in odd pieces."""

import pytest

SOURCE = """
    from solution import Limits, MultipartError, Parser, TooLarge, boundary_of

    def parse(body, size):
        parser = Parser(boundary.encode(), Limits(**limits))
        data = body.encode("latin-1")
        parts, ended = [], []
        try:
            for start in range(0, len(data), size):
                parts += parser.feed(data[start:start + size])
            parser.finish()
        except MultipartError as error:
            ended.append(type(error).__name__)
        return [[part.name, part.filename, part.content.decode("latin-1")] for part in parts] + ended

    bodies = [parse(body, size) for size in (1, 3, 7, 1 << 20)]
    bodies
"""


def parse(candidate, body, boundary="XX", **limits):
    """The parts of a body, which are the same however it is cut."""
    single, *others = candidate.run(SOURCE, body=body, boundary=boundary, limits=limits)
    for other in others:
        if single and isinstance(single[-1], str):
            assert other[-1] == single[-1]
        else:
            assert other == single
    return single


def part(name, content="", filename=None, extra=""):
    more = "" if filename is None else f'; filename="{filename}"'
    return f'Content-Disposition: form-data; name="{name}"{more}\r\n{extra}\r\n{content}\r\n'


def body(*parts):
    return "".join("--XX\r\n" + each for each in parts) + "--XX--\r\n"


def test_fields_and_files(candidate):
    text = body(part("a", "1"), part("b", "\x00\xff\r\n", "f.bin"), part("", "", ""))
    assert parse(candidate, text) == [["a", None, "1"], ["b", "f.bin", "\x00\xff\r\n"], ["", "", ""]]


def test_what_looks_like_a_delimiter_is_content(candidate):
    contents = ["--XX", "a--XX\r\nb", "\r\n--XXY", "\r\n--X", "\n--XX--", "\r\n--XX \r\n", "\r\n--XX-"]
    contents += ["\r\n--XX\n", "\r\n--XX\r", "\r\r\n", "\r\n-", "--XX--"]
    text = body(*[part(str(number), each) for number, each in enumerate(contents)])
    expected = [[str(number), None, each] for number, each in enumerate(contents)]
    assert parse(candidate, text) == expected


def test_the_crlf_of_the_empty_line_belongs_to_no_delimiter(candidate):
    text = '--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n--XX--\r\n--XX--'
    assert parse(candidate, text) == [["a", None, "--XX--"]]


def test_bytes_outside_of_parts_are_ignored(candidate):
    text = "hello --XX\r\n--XXX\r\n\n--XX\r\n\r\n" + body(part("a", "1")) + "\r\n--XX\r\nwhatever"
    assert parse(candidate, text) == [["a", None, "1"]]
    assert parse(candidate, "--XX--") == []
    assert parse(candidate, "x\r\n--XX--") == []


def test_a_body_without_its_last_delimiter_is_refused(candidate):
    for text in ("", "--XX", "--XX-", "--XX\r\n", body(part("a", "1"))[:-4], "x--XX--"):
        assert parse(candidate, text)[-1] == "MultipartError"


def test_a_part_is_returned_by_the_feed_that_completes_it(candidate):
    source = """
    from solution import Parser
    parser = Parser(b"XX")
    seen = []
    for piece in pieces:
        seen.append("".join(part.name for part in parser.feed(piece.encode())))
    parser.finish()
    seen
    """
    first = "--XX\r\n" + part("a", "1")
    pieces = [first[:-2], "\r\n--XX", "\r", "\n" + part("b") + "--XX\r\n" + part("c") + "--XX-", "-"]
    assert candidate.run(source, pieces=[*pieces, "--XX\r\n"]) == ["", "", "", "ab", "c", ""]


def test_headers_are_kept_by_name(candidate):
    source = """
    from solution import Parser
    [part] = Parser(b"XX").feed(body.encode())
    [part.headers, part.content.decode()]
    """
    text = body(part("a", "x", extra="X-Thing:  a: b\t \r\nCONTENT-type:text/é\nx\r\n"))
    disposition = {"content-disposition": 'form-data; name="a"'}
    more = {"x-thing": "a: b", "content-type": "text/é\nx"}
    assert candidate.run(source, body=text) == [{**disposition, **more}, "x"]


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "X-Thing: 1\r\n",
        "Content-Disposition: attachment; name=a\r\n",
        "Content-Disposition: form-data\r\n",
        "Content-Disposition: form-data; name=a\r\nno colon\r\n",
        "Content-Disposition: form-data; name=a\r\n: x\r\n",
        "Content-Disposition : form-data; name=a\r\n",
        "Content-Disposition: form-data; name=a\r\nX: 1\r\nx: 2\r\n",
        "Content-Disposition: form-data; name=a\r\nX: \xff\r\n",
        "Content-Disposition: form-data; name=a\r\n X: folded\r\n",
        'Content-Disposition: form-data; name="a\r\n',
        'Content-Disposition: form-data; name="a"b\r\n',
        'Content-Disposition: form-data; name=a"b"\r\n',
        "Content-Disposition: form-data; name\r\n",
        "Content-Disposition: form-data; name=a; =b\r\n",
    ],
)
def test_bad_headers_are_refused(candidate, lines):
    assert parse(candidate, f"--XX\r\n{lines}\r\nx\r\n--XX--") == ["MultipartError"]


def test_parameters(candidate):
    dispositions = [
        r'form-data; name="a\"b\\c"; filename="C:\dir\x;y.txt"',
        "FORM-DATA ;NAME = plain text ; Filename=x.y;",
        'form-data;; name="first"; name="second"; other=";"',
        'form-data; filename="name=no; x"; name=""',
    ]
    text = body(*[f"content-disposition: {each}\r\n\r\n\r\n" for each in dispositions])
    assert [each[:2] for each in parse(candidate, text)] == [
        ['a"b\\c', r"C:\dir\x;y.txt"],
        ["plain text", "x.y"],
        ["first", None],
        ["", "name=no; x"],
    ]


def test_limits_allow_exactly_as_many(candidate):
    text = body(part("a", "12345"), part("b", "1234"))
    header = len('Content-Disposition: form-data; name="a"\r\n')
    assert len(parse(candidate, text, parts=2, part_bytes=5, header_bytes=header)) == 2
    assert parse(candidate, text, parts=1)[-1] == "TooLarge"
    assert parse(candidate, text, part_bytes=4)[-1] == "TooLarge"
    assert parse(candidate, text, header_bytes=header - 1)[-1] == "TooLarge"


def test_too_large_comes_before_the_end_of_the_body(candidate):
    endless = "--XX\r\n" + part("a", "x" * 1100)
    assert parse(candidate, endless, part_bytes=1000) == ["TooLarge"]
    assert parse(candidate, endless[:-200], part_bytes=1000) == ["MultipartError"]
    headers = "--XX\r\nno colon " + "x" * 1100
    assert parse(candidate, headers, header_bytes=1000) == ["TooLarge"]
    assert parse(candidate, headers + "\r\n\r\n\r\n--XX--", header_bytes=1000) == ["TooLarge"]


def test_an_error_stays(candidate):
    source = """
    from solution import MultipartError, Parser
    parser = Parser(b"XX")
    errors = 0
    for action in (lambda: parser.feed(b"--XX\\r\\n\\r\\n"), lambda: parser.feed(rest.encode()), parser.finish):
        try:
            action()
        except MultipartError:
            errors += 1
    errors
    """
    assert candidate.run(source, rest="\r\n" + body(part("a"))) == 3


def test_memory_stays_small_outside_of_parts(candidate):
    source = """
    import tracemalloc
    from solution import Parser
    junk = b"\\r\\n--X" * 20000
    tracemalloc.start()
    parser = Parser(b"XX")
    for _ in range(40):
        parser.feed(junk)
    names = [part.name for part in parser.feed(b"\\r\\n" + body.encode())]
    for _ in range(40):
        parser.feed(junk)
    parser.finish()
    [names, tracemalloc.get_traced_memory()[1] < 1_500_000]
    """
    assert candidate.run(source, body=body(part("a"))) == [["a"], True]


def test_boundaries(candidate):
    source = """
    from solution import MultipartError, boundary_of
    def attempt(header):
        try:
            return boundary_of(header).decode()
        except MultipartError:
            return None
    [attempt(header) for header in headers]
    """
    good = {
        "multipart/form-data; boundary=abc": "abc",
        'Multipart/Form-Data;charset=utf-8; BOUNDARY = "a b:c"': "a b:c",
        "multipart/form-data; boundary=a; boundary=b": "a",
        "multipart/form-data; boundary=" + "x" * 70: "x" * 70,
        "multipart/form-data; x=';'; boundary=1" .replace("'", '"'): "1",
    }
    bad = [
        "",
        "multipart/mixed; boundary=a",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        'multipart/form-data; boundary="a "',
        "multipart/form-data; boundary=a_é",
        "multipart/form-data; boundary=" + "x" * 71,
        'multipart/form-data; boundary="a',
        "multipart/form-data; boundary=a*",
        "multipart/form-data; boundary=a\n",
    ]
    found = candidate.run(source, headers=[*good, *bad])
    assert found == [*good.values(), *[None] * len(bad)]
