"""Each rule of the language; every test asks for many queries in one run."""

ROWS = [
    {"id": 1, "city": "Oslo", "total": 5, "note": "it's"},
    {"id": 2, "city": "Rome", "total": 2.5},
    {"id": 3, "city": "Oslo", "total": None, "note": ""},
    {"id": 4, "total": "many", "note": "x"},
    {"id": 5, "city": "Bern", "total": -1},
]
EACH = """
from solution import query
[[row["id"] for row in query(text, rows)] for text in texts]
"""
POSITIONS = """
from solution import QueryError, query
def position(text):
    try:
        return [query(text, rows)]
    except QueryError as fault:
        return fault.position
[position(text) for text in texts]
"""


def ids(candidate, *conditions, rows=ROWS):
    texts = [f"select id where {condition}" for condition in conditions]
    return candidate.run(EACH, texts=texts, rows=rows)


def ordered(candidate, *ends, rows=ROWS):
    return candidate.run(EACH, texts=[f"select * {end}" for end in ends], rows=rows)


def positions(candidate, *texts, rows=ROWS):
    return candidate.run(POSITIONS, texts=list(texts), rows=rows)


def test_fields(candidate):
    rows = [{"a": 1, "b": "x"}, {"b": None, "c": 2}]
    assert candidate.call("solution:query", "select *", rows) == rows
    found = candidate.call("solution:query", "select b, a,A", rows)
    assert found == [{"b": "x", "a": 1, "A": None}, {"b": None, "a": None, "A": None}]


def test_comparisons(candidate):
    assert ids(
        candidate, "total = 5", "total != 5", "total < 2.5", "total <= 2.5", "total > -1", "total >= -1"
    ) == [[1], [2, 4, 5], [5], [2, 5], [1, 2], [1, 2, 5]]


def test_operands_on_either_side(candidate):
    assert ids(candidate, "5=total", "'Oslo' = city", "1 = 1", "'a' < 'b'", "id = id", "1>2") == [
        [1], [1, 3], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [],
    ]  # fmt: skip


def test_strings(candidate):
    assert ids(candidate, "note = 'it''s'", "note = ''", "city < 'Oslo'", "city = 'oslo'") == [
        [1], [3], [5], [],
    ]  # fmt: skip


def test_null_is_unknown(candidate):
    assert ids(
        candidate, "total = total", "not total = 5", "gone != 1", "not gone = 1", "not not total = 5"
    ) == [[1, 2, 4, 5], [2, 4, 5], [], [], [1]]


def test_unknown_in_and_and_or(candidate):
    assert ids(
        candidate,
        "not (gone = 1 and id = 1)",
        "gone = 1 or id = 1",
        "not (gone = 1 or id = 1)",
        "not (gone = 1 and id != id)",
    ) == [[2, 3, 4, 5], [1], [], [1, 2, 3, 4, 5]]


def test_is_null(candidate):
    assert ids(candidate, "city is null", "city IS NOT Null", "not total is null", "gone is null") == [
        [4], [1, 2, 3, 5], [1, 2, 4, 5], [1, 2, 3, 4, 5],
    ]  # fmt: skip


def test_in(candidate):
    assert ids(
        candidate, "id in (1, 3,9)", "total in (5, 'many', 2.5)", "not total in (5)", "not gone in (1)"
    ) == [[1, 3], [1, 2, 4], [2, 4, 5], []]


def test_strings_and_numbers(candidate):
    assert ids(candidate, "total != 'x'", "not total < 3", "total > 'a'", "id = '1'") == [
        [1, 2, 4, 5], [1], [4], [],
    ]  # fmt: skip


def test_not_binds_closer_than_and_and_and_closer_than_or(candidate):
    assert ids(
        candidate,
        "id = 1 or id = 2 and id = 3",
        "(id = 1 or id = 2) and id = 2",
        "not id = 1 and id = 2",
        "not (id = 1 and id = 2) and id < 3",
        "id = 1 and id = 2 or id = 5",
    ) == [[1], [2], [2], [1, 2], [5]]


def test_order(candidate):
    assert ordered(
        candidate,
        "order by total",
        "order by total desc",
        "order by city desc, id desc",
        "order by city asc, total desc",
        "order by gone",
    ) == [[5, 2, 1, 4, 3], [4, 1, 2, 5, 3], [2, 3, 1, 5, 4], [5, 1, 3, 2, 4], [1, 2, 3, 4, 5]]


def test_equal_records_stay_in_their_order(candidate):
    rows = [{"id": n, "k": n % 2} for n in range(8)]
    assert ordered(candidate, "order by k desc", "order by k", rows=rows) == [
        [1, 3, 5, 7, 0, 2, 4, 6], [0, 2, 4, 6, 1, 3, 5, 7],
    ]  # fmt: skip


def test_clauses_together_keywords_in_any_case_and_white_space(candidate):
    text = "SELECT\tid,city\n Where id>=2 ORDER By id DESC Limit 2 "
    assert candidate.call("solution:query", text, ROWS) == [
        {"id": 5, "city": "Bern"}, {"id": 4, "city": None},
    ]  # fmt: skip
    assert ordered(candidate, "limit 0", "limit 99", "order by id desc limit 1") == [
        [], [1, 2, 3, 4, 5], [5],
    ]  # fmt: skip


def test_what_is_no_query_is_refused_at_its_place(candidate):
    cases = {
        "": 0,
        "  from a": 2,
        "select": 6,
        "select ": 7,
        "select a,": 9,
        "select a b": 9,
        "select limit": 7,
        "select * where": 14,
        "select * where a": 16,
        "select * where a = ": 19,
        "select * where a == 1": 18,
        "select * where (a = 1": 21,
        "select * where a = 1)": 20,
        "select * where a in ()": 21,
        "select * where 1 in (1)": 17,
        "select * where a in (b)": 21,
        "select * where a is 1": 20,
        "select * where a = 'x": 19,
        "select * where a = null": 19,
        "select * where a = - 1": 19,
        "select * where a # 1": 17,
        "select * order a": 15,
        "select * order by a limit -1": 26,
        "select * limit 1.5": 15,
        "select * limit 1 where a = 1": 17,
        "select a.b": 8,
        "select a b #": 9,
        "select # where where": 7,
    }
    assert dict(zip(cases, positions(candidate, *cases, rows=[]), strict=True)) == cases


def test_modules_and_unchanged_records(candidate):
    source = """
        import records.engine, records.lexer, records.parser
        from solution import QueryError, query
        rows = [{"a": 2}, {"a": 1}]
        found = query("select * order by a", rows)
        found[0]["a"] = 9
        names = [records.lexer.tokens, records.parser.parse, records.engine.run]
        [[one.__module__ for one in names], rows, issubclass(QueryError, ValueError)]
    """
    assert candidate.run(source) == [
        ["records.lexer", "records.parser", "records.engine"], [{"a": 2}, {"a": 1}], True,
    ]  # fmt: skip
