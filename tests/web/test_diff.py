"""Files of a reply against those of the reference answer."""

from judge_gym.web.diff import MAX_LINES, DiffLine, Part, compare_files

TEXT = "".join(f"line {number}\n" for number in range(1, 21))


def test_lines_are_numbered_on_both_sides_and_far_unchanged_lines_are_folded() -> None:
    reply = TEXT.replace("line 10\n", "line ten\nanother\n")
    [diff] = compare_files({"a.py": TEXT}, {"a.py": reply})
    assert (diff.status, diff.count("removed"), diff.count("added")) == ("different", 1, 2)
    assert diff.lines[0] == DiffLine("gap", hidden=6)
    assert diff.lines[-1] == DiffLine("gap", hidden=7)
    removed, added, more = diff.lines[4:7]
    assert (removed.answer, removed.reply) == (10, None)
    assert removed.parts == [Part("line "), Part("10", True)]
    assert added.parts == [Part("line "), Part("ten", True)]
    assert (more.kind, more.answer, more.reply) == ("added", None, 11)
    assert (diff.lines[7].answer, diff.lines[7].reply) == (11, 12)


def test_without_a_limit_of_context_every_line_is_shown() -> None:
    [diff] = compare_files({"a.py": TEXT}, {"a.py": TEXT}, context=None)
    assert diff.status == "identical"
    assert [line.answer for line in diff.lines] == [*range(1, 21)]


def test_files_of_one_side_only_are_named_as_such() -> None:
    first, second = compare_files({"a.py": "x\n"}, {"b.py": "y\n"})
    assert (first.path, first.status, first.count("removed")) == ("a.py", "only in the answer", 1)
    assert (second.path, second.status, second.count("added")) == ("b.py", "only in the reply", 1)


def test_lines_that_have_little_in_common_have_no_marks() -> None:
    [diff] = compare_files({"a.py": "return x\n"}, {"a.py": "import itertools\n"})
    assert [line.parts for line in diff.lines] == [(Part("return x"),), (Part("import itertools"),)]


def test_a_file_that_is_too_long_is_not_compared() -> None:
    [diff] = compare_files({"a.py": "x\n" * (MAX_LINES + 1)}, {"a.py": "x\n"})
    assert (diff.status, diff.lines) == ("too long", ())
