"""Any depth, and lists alone."""


def test_order_is_kept(candidate):
    assert candidate.call("solution:flatten", [1, [2, [3, []], 4], 5]) == [1, 2, 3, 4, 5]


def test_strings_and_dicts_are_items(candidate):
    given = ["ab", ["cd", {"e": [1]}]]
    assert candidate.call("solution:flatten", given) == ["ab", "cd", {"e": [1]}]


def test_a_tuple_is_an_item(candidate):
    source = "from solution import flatten\n[type(x).__name__ for x in flatten([(1, [2]), [3]])]"
    assert candidate.run(source) == ["tuple", "int"]


def test_the_argument_is_not_changed(candidate):
    source = """
        from solution import flatten
        given = [1, [2, [3]]]
        flatten(given)
        given
    """
    assert candidate.run(source) == [1, [2, [3]]]


def test_depth_is_not_limited_by_the_stack(candidate):
    source = """
        from solution import flatten
        deep = [7]
        for _ in range(20_000):
            deep = [deep]
        flatten(deep)
    """
    assert candidate.run(source) == [7]
