"""Requests are made in process, as a WSGI server makes them."""

import pytest
from inside.grading import Raised

START = """
    from wsgiref.util import setup_testing_defaults
    from wsgiref.validate import validator
    from solution import Router

    router = Router()

    def add(*patterns):
        for entry in patterns:
            method, _, pattern = entry.partition(" ")
            def handler(entry=entry, **values):
                return f"{entry} {sorted(values.items())}"
            router.add(method, pattern, handler)

    def ask(method, path):
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path.encode().decode("latin-1")}
        setup_testing_defaults(environ)
        answers = []
        def start_response(status, headers, exc_info=None):
            answers.append((status, {name.lower(): value for name, value in headers}))
        body = b"".join(router(environ, start_response)).decode()
        [(status, headers)] = answers
        return [status, body, headers]

    def bodies(*paths):
        return [ask("GET", path)[1] for path in paths]

"""


def run(candidate, source, **inputs):
    return candidate.run(START + source, **inputs)


def test_handlers_get_the_values_of_their_pattern(candidate):
    source = """
    add("GET /", "GET /users/<int:id>", "GET /users/<int:id>/posts/<slug>", "GET /files/<path:rest>")
    bodies("/", "/users/007", "/users/1/posts/a b", "/files/a/b//c/")
    """
    assert run(candidate, source) == [
        "GET / []",
        "GET /users/<int:id> [('id', 7)]",
        "GET /users/<int:id>/posts/<slug> [('id', 1), ('slug', 'a b')]",
        "GET /files/<path:rest> [('rest', 'a/b//c/')]",
    ]


def test_other_paths_are_not_found(candidate):
    source = """
    add("GET /a.b", "GET /users/<int:id>", "GET /n/<name>", "GET /files/<path:rest>")
    paths = ["/axb", "/a.b/", "/a.b\\n", "/users/-1", "/users/1.5", "/users/\\u0663", "/users/", "/n/",
             "/n/a/b", "/files/", "/files", "", "//a.b", "/users/1\\n"]
    [path for path in paths if ask("GET", path)[0] != "404 Not Found"]
    """
    assert run(candidate, source) == []


def test_paths_are_utf_8_and_lengths_are_bytes(candidate):
    source = """
    router.add("GET", "/caf\\u00e9/<name>", lambda name: name)
    good = ask("GET", "/caf\\u00e9/\\u4f60\\u597d")
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/caf\\xe9/x"}
    statuses = []
    b"".join(router(environ, lambda status, headers, exc_info=None: statuses.append(status)))
    [good, statuses]
    """
    headers = {"content-type": "text/plain; charset=utf-8", "content-length": "6"}
    assert run(candidate, source) == [["200 OK", "你好", headers], ["404 Not Found"]]


@pytest.mark.parametrize("order", [1, -1])
def test_the_most_specific_pattern_counts_in_any_order(candidate, order):
    source = """
    patterns = ["GET /<path:p>", "GET /<a>/x", "GET /<a>/<b>", "GET /<int:n>/<b>", "GET /new/<path:p>",
                "GET /new/<int:n>", "GET /<a>"]
    add(*patterns[::order])
    [body.split(" [")[0][4:] for body in bodies("/new/x", "/new/1", "/7/x", "/q/x", "/q/y", "/q", "/q/y/z")]
    """
    assert run(candidate, source, order=order) == [
        "/new/<path:p>",
        "/new/<int:n>",
        "/<int:n>/<b>",
        "/<a>/x",
        "/<a>/<b>",
        "/<a>",
        "/<path:p>",
    ]


def test_a_method_that_the_best_pattern_lacks_is_not_allowed(candidate):
    source = """
    add("GET /new", "PUT /new", "POST /<name>", "DELETE /x")
    [ask("POST", "/new"), ask("GET", "/x")[2]["allow"], ask("get", "/new")[0], ask("POST", "/y")[0]]
    """
    headers = {
        "allow": "GET, HEAD, OPTIONS, PUT",
        "content-type": "text/plain; charset=utf-8",
        "content-length": "22",
    }
    text = "405 Method Not Allowed"
    assert run(candidate, source) == [[text, text, headers], "DELETE, OPTIONS", text, "200 OK"]


def test_head_has_the_headers_of_get_and_no_body(candidate):
    source = """
    add("GET /a", "POST /b")
    head, get = ask("HEAD", "/a"), ask("GET", "/a")
    missing, refused = ask("HEAD", "/c"), ask("HEAD", "/b")
    [head[1], head[2] == get[2], head[0], missing[:2], missing[2]["content-length"], refused[:2]]
    """
    assert run(candidate, source) == [
        "",
        True,
        "200 OK",
        ["404 Not Found", ""],
        "13",
        ["405 Method Not Allowed", ""],
    ]


def test_handlers_for_head_and_options_come_first(candidate):
    source = """
    add("GET /a", "HEAD /a", "OPTIONS /a")
    router.add("HEAD", "/b", lambda: "12345")
    [ask("OPTIONS", "/a")[:2], ask("HEAD", "/b")[1:], ask("GET", "/b")[2]["allow"]]
    """
    headers = {"content-type": "text/plain; charset=utf-8", "content-length": "5"}
    assert run(candidate, source) == [
        ["200 OK", "OPTIONS /a []"],
        ["", headers],
        "HEAD, OPTIONS",
    ]


def test_options_lists_the_methods(candidate):
    source = """
    add("GET /a", "DELETE /a", "POST /b")
    [ask("OPTIONS", "/a"), ask("OPTIONS", "/b")[2], ask("OPTIONS", "/c")[0]]
    """
    first = ["204 No Content", "", {"allow": "DELETE, GET, HEAD, OPTIONS"}]
    assert run(candidate, source) == [first, {"allow": "OPTIONS, POST"}, "404 Not Found"]


def test_bad_patterns_are_refused(candidate):
    source = """
    bad = ["a", "", "/<float:x>", "/<a>/<a>", "/<a>/<int:a>", "/x<a>", "/<a>x", "/<a", "/a>", "/<>",
           "/<1a>", "/<path:p>/x", "/<literal:a>", "/<int:>", "/<:a>", "/<a><b>"]
    taken = []
    for pattern in bad:
        try:
            add("GET " + pattern)
            taken.append(pattern)
        except ValueError:
            pass
    add("GET /<a>", "POST /<a>")
    try:
        add("GET /<a>")
        taken.append("twice")
    except ValueError:
        pass
    [taken, ask("GET", "/x")[0]]
    """
    assert run(candidate, source) == [[], "200 OK"]


def test_an_exception_of_a_handler_goes_on(candidate):
    source = """
    router.add("GET", "/", lambda: {}["key"])
    ask("GET", "/")
    """
    with pytest.raises(Raised) as error:
        run(candidate, source)
    assert error.value.kind == "KeyError"


def test_urls_are_encoded(candidate):
    source = """
    add("GET /", "GET /u/<int:id>", "GET /f/<path:p>", "GET /n/<name>/<other>")
    [router.url("/"), router.url("/u/<int:id>", id=7), router.url("/f/<path:p>", p="a b/\\u00e9?.txt"),
     router.url("/n/<name>/<other>", other="50%", name="a+b~c&")]
    """
    assert run(candidate, source) == [
        "/",
        "/u/7",
        "/f/a%20b/%C3%A9%3F.txt",
        "/n/a%2Bb~c%26/50%25",
    ]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("'/none'", "LookupError"),
        ("'/n/<name>'", "TypeError"),
        ("'/n/<name>', name='a', more='b'", "TypeError"),
        ("'/n/<name>', name=''", "ValueError"),
        ("'/n/<name>', name='a/b'", "ValueError"),
        ("'/u/<int:id>', id=-1", "ValueError"),
    ],
)
def test_values_that_would_not_match_are_refused(candidate, call, kind):
    source = f"""
    add("GET /n/<name>", "GET /u/<int:id>")
    try:
        router.url({call})
        ended = "no error"
    except Exception as error:
        ended = [each.__name__ for each in type(error).__mro__]
    ended
    """
    assert kind in run(candidate, source)
