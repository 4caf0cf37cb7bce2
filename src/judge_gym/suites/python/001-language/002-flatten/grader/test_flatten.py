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


def test_a_depth_limits_what_is_opened(candidate):
    source = """
        from solution import flatten
        given = [1, [2, [3, [4]]], [], [[5]]]
        [flatten(given, depth) for depth in (0, 1, 2, 3, 9, None)] + [flatten(given, 0) is given]
    """
    assert candidate.run(source) == [
        [1, [2, [3, [4]]], [], [[5]]],
        [1, 2, [3, [4]], [5]],
        [1, 2, 3, [4], 5],
        [1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
        False,
    ]


def test_the_same_list_may_occur_several_times(candidate):
    source = "from solution import flatten\none = [1]\ntwo = [one, one]\nflatten([two, one, two])"
    assert candidate.run(source) == [1, 1, 1, 1, 1]


def test_a_list_in_itself_is_refused(candidate):
    source = """
        from solution import flatten
        direct = [1]
        direct.append(direct)
        inner = []
        indirect = [2, [inner]]
        inner.append(indirect)
        told = []
        for items, depth in ((direct, None), (indirect, None), ([[indirect]], None), (direct, 1), ([1], -1)):
            try:
                told.append(flatten(items, depth))
            except ValueError:
                told.append("ValueError")
        told.append(len(flatten(direct, 0)))
        told
    """
    assert candidate.run(source) == ["ValueError"] * 5 + [2]
