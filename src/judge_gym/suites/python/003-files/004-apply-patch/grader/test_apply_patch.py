"""The program over folders that are made for it."""

PROGRAM = """
import os, subprocess, sys, tempfile
from pathlib import Path
def snapshot(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*")) if path.is_file()
    }
def run(files, patch):
    folder = Path(tempfile.mkdtemp())
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    ran = subprocess.run([sys.executable, "solution.py", folder], input=patch.encode(), capture_output=True)
    return [ran.returncode, ran.stdout.decode(), ran.stderr.decode(), snapshot(folder)]
[run(*case) for case in cases]
"""
ABC = "a\nb\nc\nd\ne\n"


def runs(candidate, *cases):
    """Exit code, standard output and error, and the files after each case."""
    return candidate.run(PROGRAM, cases=list(cases))


def patch(*lines, name="f"):
    return "".join(f"{line}\n" for line in (f"--- a/{name}", f"+++ b/{name}", *lines))


def applied(candidate, *cases):
    """The new text of `f` in each case, or the exit code."""
    found = runs(candidate, *([{"f": old}, text] for old, text in cases))
    for (old, _), (code, out, error, files) in zip(cases, found, strict=True):
        assert (code == 0) == (out == "patched f\n"), (code, out, error)
        assert code == 0 or (files == {"f": old} and out == "" and len(error.splitlines()) == 1)
    return [files["f"] if code == 0 else code for code, _, _, files in found]


def test_a_hunk_replaces_its_lines(candidate):
    text = patch("@@ -2,3 +2,3 @@ def x", " b", "-c", "+C", " d")
    twice = patch("@@ -1 +1,2 @@", "-a", "+A", "+AA", "@@ -4,2 +5 @@", " d", "-e")
    assert applied(candidate, (ABC, text), (ABC, twice)) == ["a\nb\nC\nd\ne\n", "A\nAA\nb\nc\nd\n"]


def test_nothing_is_searched_for_elsewhere(candidate):
    near = patch("@@ -3,2 +3,2 @@", " b", "-c", "+C")
    other = patch("@@ -2,2 +2,2 @@", " b", "-x", "+C")
    beyond = patch("@@ -5,2 +5,2 @@", " e", "-f", "+C")
    before = patch("@@ -0,1 +1,1 @@", "-e", "+C")
    shifted = patch("@@ -1 +1,3 @@", "+x", "+y", " a", "@@ -4 +6 @@", "-d", "+D")
    assert applied(candidate, *((ABC, text) for text in (near, other, beyond, before, shifted))) == [
        1, 1, 1, 1, "x\ny\na\nb\nc\nD\ne\n",
    ]  # fmt: skip


def test_hunks_that_only_add(candidate):
    assert applied(
        candidate,
        (ABC, patch("@@ -0,0 +1 @@", "+x")),
        (ABC, patch("@@ -2,0 +3,2 @@", "+x", "+y")),
        (ABC, patch("@@ -5,0 +6 @@", "+x")),
        (ABC, patch("@@ -6,0 +7 @@", "+x")),
        (ABC, patch("@@ -2 +2 @@", "-b", "+B", "@@ -2,0 +3 @@", "+x", "@@ -3 +4 @@", "-c", "+C")),
    ) == [
        "x\n" + ABC, "a\nb\nx\ny\nc\nd\ne\n", ABC + "x\n", 1, "a\nB\nx\nC\nd\ne\n",
    ]  # fmt: skip


def test_lines_that_look_like_headers(candidate):
    text = patch("@@ -1,3 +1,3 @@", "--- a", "-@@ b", "+++ c", "+@@ d", " \\ e")
    old = "-- a\n@@ b\n\\ e\n"
    assert applied(candidate, (old, text)) == ["++ c\n@@ d\n\\ e\n"]


def test_the_end_of_a_file_without_a_line_feed(candidate):
    none = "\\ No newline at end of file"
    assert applied(
        candidate,
        ("a\nb", patch("@@ -2 +2 @@", "-b", none, "+c", none)),
        ("a\nb", patch("@@ -2 +2 @@", "-b", none, "+b")),
        ("a\nb\n", patch("@@ -2 +2 @@", "-b", "+b", none)),
        ("a\nb", patch("@@ -1,2 +1,2 @@", "-a", "+A", " b", none)),
        ("a\nb", patch("@@ -2 +2 @@", "-b", "+c")),
        ("a\nb\n", patch("@@ -2 +2 @@", "-b", none, "+c", none)),
        ("a\nb\n", patch("@@ -1 +1 @@", "-a", "+c", none)),
        ("a", patch("@@ -1,0 +2 @@", "+b")),
    ) == ["a\nc", "a\nb\n", "a\nb", "A\nb", 1, 1, 1, 1]


def test_an_empty_line_is_one_that_stays(candidate):
    assert applied(candidate, ("a\n\nb\n", patch("@@ -1,3 +1,3 @@", "-a", "+A", "", " b"))) == ["A\n\nb\n"]


def test_only_a_line_feed_separates_lines(candidate):
    old = "a\r\nb\x0cb\u2028b\r\nc\rd\n"
    text = patch("@@ -2,2 +2,2 @@", " b\x0cb\u2028b\r", "-c\rd", "+ä")
    assert applied(candidate, (old, text)) == ["a\r\nb\x0cb\u2028b\r\nä\n"]
    assert applied(candidate, ("a\r\n", patch("@@ -1 +1 @@", "-a", "+b"))) == [1]


def test_files_are_created_and_deleted(candidate):
    text = (
        "--- /dev/null\n+++ b/new/deep/x\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
        "--- a/old/y\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n" + patch("@@ -1 +1 @@", "-a", "+A")
    )
    files = {"f": "a\n", "old/y": "1\n2\n", "z": ""}
    [[code, out, error, after]] = runs(candidate, [files, text])
    assert (code, error) == (0, "")
    assert out == "created new/deep/x\ndeleted old/y\npatched f\n"
    assert after == {"f": "A\n", "new/deep/x": "a\nb", "z": ""}


def test_other_lines_and_times_in_headers_are_ignored(candidate):
    text = (
        "From: someone\n@@ a remark\n\ndiff --git a/f b/f\nindex 1..2 100644\n"
        "--- a/f\t2030-01-01 00:00\n+++ b/f\t2030-01-02\n@@ -1 +1 @@\n-a\n+A\n-- \n2.40\n\n"
        "diff --git a/dir/g h b/dir/g h\n--- a/dir/g h\n+++ b/dir/g h\n@@ -1 +1 @@\n-g\n+G\n+++ end\n"
    )
    [[code, out, _, after]] = runs(candidate, [{"f": "a\n", "dir/g h": "g\n"}, text])
    assert (code, out) == (0, "patched f\npatched dir/g h\n")
    assert after == {"f": "A\n", "dir/g h": "G\n"}
    assert runs(candidate, [{"f": "a\n"}, "no patch\n"])[0][:3] == [0, "", ""]


def test_all_or_nothing(candidate):
    good, bad = patch("@@ -1 +1 @@", "-a", "+A", name="good"), patch("@@ -1 +1 @@", "-x", "+A", name="bad")
    files = {"good": "a\n", "bad": "b\n"}
    created = "--- /dev/null\n+++ b/new/x\n@@ -0,0 +1 @@\n+a\n"
    for code, out, error, after in runs(candidate, [files, good + created + bad]):
        assert (code, out, error, after) == (1, "", "bad: hunk 1\n", files)


def test_a_conflict_names_its_hunk_or_file(candidate):
    two = patch("@@ -1 +1 @@", "-a", "+A", "@@ -3 +3 @@", "-x", "+C", "@@ -5 +5 @@", "-x", "+E")
    missing = patch("@@ -1 +1 @@", "-a", "+A", name="gone/g")
    create = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    part = "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
    gone = "--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    found = runs(candidate, *([{"f": ABC}, text] for text in (two, missing, create, part, gone)))
    errors = ["f: hunk 2\n", "gone/g\n", "f\n", "f\n", "g\n"]
    assert found == [[1, "", error, {"f": ABC}] for error in errors]


def malformed(candidate, *texts):
    found = runs(candidate, *([{"f": ABC}, text] for text in texts))
    return [
        text
        for text, (code, out, error, files) in zip(texts, found, strict=True)
        if (code, out, len(error.splitlines()), files) != (2, "", 1, {"f": ABC})
    ]


def test_malformed_hunks(candidate):
    assert malformed(
        candidate,
        patch("@@ -1,2 +1,2 @@", " a", "-b", "+B", "@@ -x +1 @@"),
        patch("@@ -1 @@", "-a"),
        patch("@@ -1,2 +1 @@", " a"),
        patch("@@ -1 +1 @@", "*a"),
        patch("@@ -1,2 +1 @@", "+x", " a", "-b"),
        patch("@@ -1,1 +1,2 @@", "-a", " b", "+c"),
        patch("@@ -2,2 +2,2 @@", " b", "-c", "+C", "@@ -3 +3 @@", "-c", "+x"),
        patch("@@ -4 +4 @@", "-d", "+D", "@@ -1 +1 @@", "-a", "+A"),
        patch("@@ -2,2 +2,2 @@", " b", "-c", "+C", "@@ -2,0 +3 @@", "+x"),
    ) == []


def test_malformed_files(candidate):
    hunk = "@@ -1 +1 @@\n-a\n+A\n"
    assert malformed(
        candidate,
        f"--- a/f\n{hunk}",
        "--- a/f\n",
        "--- a/f\n+++ b/f\n",
        f"--- a/f\n+++ b/f\n\n{hunk}",
        f"--- a/f\n+++ b/g\n{hunk}",
        f"--- f\n+++ f\n{hunk}",
        f"--- a/\n+++ b/\n{hunk}",
        f"--- a/../f\n+++ b/../f\n{hunk}",
        f"--- a/./f\n+++ b/./f\n{hunk}",
        f"--- a//f\n+++ b//f\n{hunk}",
        f"--- a/d//f\n+++ b/d//f\n{hunk}",
        "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a\n",
        f"--- /dev/null\n+++ b/new\n{hunk}",
        f"--- a/f\n+++ /dev/null\n{hunk}",
        f"--- a/f\n+++ b/f\n{hunk}--- a/f\n+++ b/f\n@@ -3 +3 @@\n-c\n+C\n",
    ) == []


def test_a_malformed_end_changes_nothing(candidate):
    text = patch("@@ -1 +1 @@", "-a", "+A") + patch("@@ -1 +1 @@", "-a", name="g")
    [[code, out, _, after]] = runs(candidate, [{"f": ABC, "g": ABC}, text])
    assert (code, out, after) == (2, "", {"f": ABC, "g": ABC})


def test_the_modules(candidate):
    source = """
from patching.apply import Conflict, apply
from patching.parse import Malformed, parse
[one] = parse(patch)
try:
    apply("x\\n", one)
except ValueError as fault:
    told = [type(fault).__name__]
try:
    parse("--- a/f\\n")
except ValueError as fault:
    told.append(type(fault).__name__)
[made] = parse("--- /dev/null\\n+++ b/f\\n@@ -0,0 +1 @@\\n+a\\n")
[gone] = parse("--- a/f\\n+++ /dev/null\\n@@ -1 +0,0 @@\\n-a\\n")
[told, apply("a\\n", one), apply(None, made), apply("a\\n", gone)]
"""
    assert candidate.run(source, patch=patch("@@ -1 +1 @@", "-a", "+A")) == [
        ["Conflict", "Malformed"], "A\n", "a\n", None,
    ]  # fmt: skip
