"""Requests are made in process, as a WSGI server makes them."""

START = """
    import io
    import json
    from http import HTTPStatus
    from solution import make_app

    now = [12.5]
    app = make_app(lambda: now[0], b"secret")

    class Untouched(io.BytesIO):
        def read(self, *args):
            raise AssertionError("the body was read")

    def ask(method, path, data=None, to=None, input=None, **headers):
        path, _, query = path.partition("?")
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
        if data is not None:
            body = data if isinstance(data, bytes) else json.dumps(data).encode()
            environ |= {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(body))}
            environ["wsgi.input"] = io.BytesIO(body)
        else:
            environ["wsgi.input"] = io.BytesIO(b"")
        for name, value in headers.items():
            environ[name if name.startswith("CONTENT") else "HTTP_" + name.upper()] = value
        if input is not None:
            environ["wsgi.input"] = input
        answers = []
        def start_response(status, headers, exc_info=None):
            answers.append((status, {name.lower(): value for name, value in headers}))
        body = b"".join((to or app)(environ, start_response))
        [(status, headers)] = answers
        code = int(status[:3])
        assert status == f"{code} {HTTPStatus(code).phrase}", status
        if code == 204:
            assert body == b"" and not headers.keys() & {"content-type", "content-length"}
            return [204, None, headers]
        assert headers.pop("content-type") == "application/json"
        assert headers.pop("content-length") == str(len(body))
        value = json.loads(body)
        if code >= 400:
            assert list(value) == ["error"] and isinstance(value["error"], str) and value["error"]
            value = "error"
        return [code, value, headers]

    def code(*args, **options):
        return ask(*args, **options)[0]

    def fill(count, **more):
        for number in range(count):
            ask("POST", "/notes", {"text": f"note {number}", **more})

    def ids(answer):
        return [note["id"] for note in answer[1]["notes"]]

"""


def run(candidate, source, **inputs):
    return candidate.run(START + source, **inputs)


def test_a_note_is_created_and_read(candidate):
    source = """
    made = ask("POST", "/notes", {"text": "caf\\u00e9 \\u4f60", "tags": ["a-1", "b"]})
    now[0] = 20
    other = ask("POST", "/notes", {"text": "x"}, CONTENT_TYPE="Application/JSON; charset=utf-8")
    [made, ask("GET", "/notes/1"), other[1], other[2]["location"]]
    """
    note = {"id": 1, "text": "café 你", "tags": ["a-1", "b"], "created": 12.5, "version": 1}
    assert run(candidate, source) == [
        [201, note, {"location": "/notes/1", "etag": '"1"'}],
        [200, note, {"etag": '"1"'}],
        {"id": 2, "text": "x", "tags": [], "created": 20, "version": 1},
        "/notes/2",
    ]


def test_a_note_is_changed_and_deleted_at_its_version(candidate):
    source = """
    fill(1, tags=["a"])
    first = ask("PATCH", "/notes/1", {"tags": ["b"]}, if_match='"1"')
    second = ask("PATCH", "/notes/1", {"text": "new"}, if_match="*")
    late = [code("PATCH", "/notes/1", {"text": "late"}, if_match='"2"'),
            code("DELETE", "/notes/1", if_match='"1"'), code("DELETE", "/notes/1"),
            code("DELETE", "/notes/1", if_match='W/"3"'), code("DELETE", "/notes/1", if_match="3"),
            code("PATCH", "/notes/1", {"text": "x"}), code("PATCH", "/notes/1", {"text": ""}, if_match='"1"')]
    gone = [ask("DELETE", "/notes/1", if_match='"3"'), code("GET", "/notes/1"),
            code("DELETE", "/notes/1", if_match="*"), code("PATCH", "/notes/1")]
    fill(1)
    [first, second, late, gone, ids(ask("GET", "/notes"))]
    """
    note = {"id": 1, "text": "note 0", "tags": ["b"], "created": 12.5, "version": 2}
    assert run(candidate, source) == [
        [200, note, {"etag": '"2"'}],
        [200, {**note, "text": "new", "version": 3}, {"etag": '"3"'}],
        [412, 412, 428, 412, 412, 428, 412],
        [[204, None, {}], 404, 404, 404],
        [2],
    ]


def test_paths_and_methods(candidate):
    source = """
    fill(1)
    paths = ["/", "", "/notes/", "/notes/x", "/notes/01", "/notes/0", "/notes/1/", "/notes/9",
             "/notes/\\u0661", "/notes/1\\n", "/note", "/notes/-1"]
    others = [ask(method, path)[::2] for method, path in
              [("PUT", "/notes"), ("DELETE", "/notes"), ("POST", "/notes/1"), ("PUT", "/notes/99")]]
    [[code("GET", path) for path in paths], others]
    """
    listing, single = {"allow": "GET, POST"}, {"allow": "DELETE, GET, PATCH"}
    expected = [[405, listing], [405, listing], [405, single], [405, single]]
    assert run(candidate, source) == [[404] * 12, expected]


def test_bodies_are_checked_in_order(candidate):
    source = """
    good = {"text": "x"}
    big = b'{"text": "x"}' + b" " * 65536
    [code("POST", "/notes", good, CONTENT_TYPE="text/plain", CONTENT_LENGTH=""),
     code("POST", "/notes", good, CONTENT_TYPE=""),
     code("POST", "/notes", good, CONTENT_LENGTH=""),
     code("POST", "/notes", good, CONTENT_LENGTH="-1"),
     code("POST", "/notes", good, CONTENT_LENGTH="1x"),
     code("POST", "/notes", good, CONTENT_LENGTH="65537", input=Untouched()),
     code("POST", "/notes", good, CONTENT_LENGTH="14"),
     code("POST", "/notes", big[:65536]),
     code("POST", "/notes", b'{"text": "x"}{"text": "y"}', CONTENT_LENGTH="13"),
     [code("POST", "/notes", body) for body in
      (b"", b"{", b"\\xff", b'{"text": NaN}', b'{"text": "x", "tags": [Infinity]}', b"x", "\\ufeff{}".encode("utf-16"))],
     len(ids(ask("GET", "/notes")))]
    """
    assert run(candidate, source) == [415, 415, 411, 411, 411, 413, 400, 201, 201, [400] * 7, 2]


def test_values_are_checked(candidate):
    source = """
    wrong = [[], "x", None, {}, {"text": 1}, {"text": None}, {"text": " \\n"}, {"text": "x" * 1001},
             {"text": "x", "id": 1}, {"text": "x", "tags": None}, {"text": "x", "tags": "ab"},
             {"text": "x", "tags": ["a", "a"]}, {"text": "x", "tags": [1]}, {"text": "x", "tags": [["a"]]}, {"text": "x", "tags": ["A"]},
             {"text": "x", "tags": [""]}, {"text": "x", "tags": ["a" * 21]}, {"text": "x", "tags": ["a\\n"]},
             {"text": "x", "tags": [f"t{n}" for n in range(11)]}]
    right = {"text": "x" * 1000, "tags": ["a" * 20, *[f"t{n}" for n in range(9)]]}
    posted = [code("POST", "/notes", json.dumps(body).encode()) for body in wrong]
    created = code("POST", "/notes", right)
    patched = [code("PATCH", "/notes/1", json.dumps(body).encode(), if_match='"1"') for body in wrong]
    [set(posted) == {422}, created, set(patched) == {422}, ask("GET", "/notes/1")[1]["version"]]
    """
    assert run(candidate, source) == [True, 201, True, 1]


def test_a_repeated_request_creates_nothing(candidate):
    source = """
    first = ask("POST", "/notes", {"text": "x"}, idempotency_key="k1")
    ask("PATCH", "/notes/1", {"text": "y"}, if_match="*")
    second = ask("POST", "/notes", {"text": "x"}, idempotency_key="k1")
    ask("DELETE", "/notes/1", if_match="*")
    third = ask("POST", "/notes", {"text": "x"}, idempotency_key="k1")
    other = code("POST", "/notes", b'{"text":"x"}', idempotency_key="k1")
    fresh = ask("POST", "/notes", {"text": "x"}, idempotency_key="k2")
    replayed = [second[2].pop("idempotent-replayed"), third[2].pop("idempotent-replayed")]
    [replayed, first == second == third, first[2], other, fresh[1]["id"], ids(ask("GET", "/notes"))]
    """
    headers = {"location": "/notes/1", "etag": '"1"'}
    assert run(candidate, source) == [["true", "true"], True, headers, 409, 2, [2]]


def test_keys_are_forgotten_and_errors_are_not_stored(candidate):
    source = """
    seen = [code("POST", "/notes", {"text": ""}, idempotency_key="k")]
    seen.append(ask("POST", "/notes", {"text": "x"}, idempotency_key="k")[1]["id"])
    now[0] += 86399
    seen.append(ask("POST", "/notes", {"text": "x"}, idempotency_key="k")[1]["id"])
    now[0] += 1
    seen.append(ask("POST", "/notes", {"text": "other"}, idempotency_key="k")[1]["id"])
    now[0] += 86399
    seen.append(ask("POST", "/notes", {"text": "other"}, idempotency_key="k")[1]["id"])
    seen.append(code("POST", "/notes", {"text": ""}, idempotency_key="k"))
    seen
    """
    assert run(candidate, source) == [422, 1, 1, 2, 2, 422]


def test_bad_keys_are_refused(candidate):
    source = """
    bad = ["", "a b", "x" * 65, "\\u00e9", "a\\n"]
    [[code("POST", "/notes", {"text": "x"}, idempotency_key=key) for key in bad],
     code("POST", "/notes", {"text": ""}, idempotency_key=""),
     code("POST", "/notes", {"text": "x"}, idempotency_key="x" * 64)]
    """
    assert run(candidate, source) == [[400] * 5, 422, 201]


def test_pages_follow_each_other_while_notes_change(candidate):
    source = """
    fill(7)
    first = ask("GET", "/notes?limit=2")
    fill(2)
    ask("DELETE", "/notes/6", if_match="*")
    ask("DELETE", "/notes/5", if_match="*")
    second = ask("GET", "/notes?limit=3&cursor=" + first[1]["next"])
    third = ask("GET", "/notes?cursor=" + second[1]["next"])
    [ids(first), ids(second), ids(third), third[1]["next"], list(first[1])]
    """
    assert run(candidate, source) == [[7, 6], [4, 3, 2], [1], None, ["notes", "next"]]


def test_the_last_page_is_known_to_be_the_last(candidate):
    source = """
    empty = ask("GET", "/notes")[1]
    fill(21)
    whole = ask("GET", "/notes")
    rest = ask("GET", "/notes?cursor=" + whole[1]["next"])
    exact = ask("GET", "/notes?limit=21")
    ask("DELETE", "/notes/1", if_match="*")
    gone = ask("GET", "/notes?cursor=" + whole[1]["next"])[1]
    [empty, len(ids(whole)), ids(rest), rest[1]["next"], exact[1]["next"], gone]
    """
    nothing = {"notes": [], "next": None}
    assert run(candidate, source) == [nothing, 20, [1], None, None, nothing]


def test_tags_select(candidate):
    source = """
    for number in range(6):
        fill(1, tags=["even", "x"] if number % 2 else ["odd"])
    first = ask("GET", "/notes?tag=even&limit=2")
    ask("PATCH", "/notes/4", {"tags": []}, if_match="*")
    second = ask("GET", "/notes?limit=2&tag=even&cursor=" + first[1]["next"])
    [ids(first), ids(second), second[1]["next"], ids(ask("GET", "/notes?tag=")), ids(ask("GET", "/notes?tag=%78")),
     ids(ask("GET", "/notes?tag=no+ne"))]
    """
    assert run(candidate, source) == [[6, 4], [2], None, [], [6, 2], []]


def test_cursors_cannot_be_made_up_or_moved(candidate):
    source = """
    fill(5, tags=["a", "b"])
    every = ask("GET", "/notes?limit=2")[1]["next"]
    tagged = ask("GET", "/notes?limit=2&tag=a")[1]["next"]
    empty = "/notes?tag=&cursor="
    stranger = make_app(lambda: 0.0, b"other")
    twin = make_app(lambda: 0.0, b"secret")
    changed = [every[:i] + ("2" if every[i] != "2" else "3") + every[i + 1:] for i in range(len(every))]
    [[code("GET", "/notes?cursor=" + each) for each in ("", "x", "3", tagged, every[:-1])],
     [code("GET", "/notes?tag=b&cursor=" + tagged), code("GET", "/notes?tag=a&cursor=" + every), code("GET", empty + every)],
     [each for each in changed if code("GET", "/notes?cursor=" + each) != 400],
     code("GET", "/notes?cursor=" + every, to=stranger), code("GET", "/notes?cursor=" + every, to=twin),
     ids(ask("GET", "/notes?tag=a&cursor=" + tagged))]
    """
    assert run(candidate, source) == [[400] * 5, [400] * 3, [], 400, 200, [3, 2, 1]]


def test_bad_queries_are_refused(candidate):
    source = """
    queries = ["limit=0", "limit=101", "limit=-1", "limit=", "limit=1.5", "limit=+5", "limit=%D9%A1", "limit=x",
               "page=2", "tag=a&tag=b", "limit=1&limit=1", "Limit=1", "cursor="]
    [[code("GET", "/notes?" + query) for query in queries], code("GET", "/notes?limit=100"), code("GET", "/notes?limit=007")]
    """
    assert run(candidate, source) == [[400] * 13, 200, 200]
