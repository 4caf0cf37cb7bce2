"""Archives are built here by the description, and compared byte by byte."""

import hashlib
import zlib

IMPORTS = """
import os, subprocess, sys, tempfile
from pathlib import Path
from box.layout import BoxError
from box.pack import pack
from box.unpack import entries, unpack
root = Path(tempfile.mkdtemp())
def make(files):
    for name, text in files.items():
        path = root / "in" / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("latin-1"))
    return str(root / "in")
def snapshot(folder):
    return {
        path.relative_to(folder).as_posix() + "/" * path.is_dir():
            None if path.is_dir() else path.read_bytes().decode("latin-1")
        for path in sorted(Path(folder).rglob("*"))
    }
def attempt(action, *args):
    try:
        return action(*args)
    except BoxError:
        return "BoxError"
    except Exception as fault:
        return type(fault).__name__
def program(*words):
    ran = subprocess.run([sys.executable, "solution.py", *map(str, words)], capture_output=True, text=True)
    return [ran.returncode, ran.stdout, len(ran.stderr.splitlines())]
"""
TREE = {"b.txt": "b", "a/x": "1", "a-b": "2", "a/y/z": "\x00\xff", "empty/": "", "ä": "", "B": "line\n"}


def run(candidate, source, **inputs):
    return candidate.run(f"{IMPORTS}\n{source}", **inputs)


def entry(path, content=b"", kind=0, *, size=None, crc=None):
    name = path.encode() if isinstance(path, str) else path
    crc = zlib.crc32(content) if crc is None else crc
    size = len(content) if size is None else size
    head = len(name).to_bytes(2, "big") + name + bytes([kind])
    return head + size.to_bytes(8, "big") + crc.to_bytes(4, "big") + content


def archive(*parts, magic=b"BOX1", count=None, zeros=2):
    body = magic + b"".join(parts) + bytes(zeros)
    body += (len(parts) if count is None else count).to_bytes(4, "big")
    return body + hashlib.sha256(body).digest()


def of_tree():
    names = {name.encode(): text.encode("latin-1") for name, text in TREE.items()}
    return archive(
        *(
            entry(name.rstrip(b"/"), text, int(name.endswith(b"/")))
            for name, text in sorted(names.items(), key=lambda pair: pair[0].rstrip(b"/"))
        )
    )


def refused(candidate, *archives):
    """The numbers of the archives that are not refused by `entries` and `unpack`."""
    source = """
texts = [text.encode("latin-1") for text in archives]
[n for n, data in enumerate(texts)
 if attempt(entries, data) != "BoxError" or attempt(unpack, data, str(root / "out")) != "BoxError"
 or (root / "out").exists()]
"""
    return run(candidate, source, archives=[data.decode("latin-1") for data in archives])


def test_a_folder_becomes_an_archive_byte_by_byte(candidate):
    found = run(candidate, "pack(make(files)).decode('latin-1')", files=TREE)
    assert found.encode("latin-1") == of_tree()


def test_empty_things(candidate):
    source = "[pack(make(files)).decode('latin-1') for files in ({'x/': ''}, {'x/y/': ''}, {'x/y/f': ''})]"
    expected = [archive(entry(name, kind=kind)) for name, kind in (("x", 1), ("x/y", 1), ("x/y/f", 0))]
    assert [text.encode("latin-1") for text in run(candidate, source)] == expected
    source = "(root / 'in').mkdir()\npack(str(root / 'in')).decode('latin-1')"
    assert run(candidate, source).encode("latin-1") == archive()


def test_links_are_refused(candidate):
    source = """
folder = make({"f": "1", "d/g": "2", "e/h": "3"})
told = []
for target in ("../f", "../e", "missing"):
    os.symlink(target, root / "in" / "d" / "link")
    told.append(attempt(pack, folder))
    os.remove(root / "in" / "d" / "link")
os.mkfifo(root / "in" / "pipe")
[told, attempt(pack, folder)]
"""
    assert run(candidate, source) == [["BoxError"] * 3, "BoxError"]


def test_entries(candidate):
    source = """
[[path, None if content is None else content.decode("latin-1")] for path, content in entries(data.encode("latin-1"))]
"""
    found = run(candidate, source, data=of_tree().decode("latin-1"))
    assert found == [
        ["B", "line\n"], ["a-b", "2"], ["a/x", "1"], ["a/y/z", "\x00\xff"], ["b.txt", "b"], ["empty", None], ["ä", ""],
    ]  # fmt: skip


def test_unpacking_gives_the_folder_back(candidate):
    source = """
folder, out = make(files), str(root / "deep" / "out")
unpack(pack(folder), out)
(root / "there").mkdir()
unpack(pack(folder), str(root / "there"))
[snapshot(out) == snapshot(folder) == snapshot(root / "there"), len(snapshot(out))]
"""
    assert run(candidate, source, files=TREE) == [True, 9]


def test_every_truncation_and_every_changed_byte_is_refused(candidate):
    source = """
data = text.encode("latin-1")
cut = [n for n in range(len(data)) if attempt(entries, data[:n]) != "BoxError"]
changed = [
    n for n in range(len(data))
    if attempt(entries, data[:n] + bytes([data[n] ^ 1]) + data[n + 1 :]) != "BoxError"
]
[cut, changed, attempt(entries, data + b"x"), attempt(entries, b"")]
"""
    data = archive(entry("a", b"12"), entry("b", kind=1))
    assert run(candidate, source, text=data.decode("latin-1")) == [[], [], "BoxError", "BoxError"]


def test_what_differs_from_the_description_is_refused(candidate):
    a, b = entry("a", b"1"), entry("b", b"2")
    extra = archive(a)[:-32] + b"x"
    assert refused(
        candidate,
        archive(a, magic=b"BOX2"),
        archive(a, b, count=1),
        archive(a, count=2),
        archive(b, a),
        archive(a, a),
        archive(entry("a", b"1", crc=7)),
        archive(entry("a", kind=2)),
        archive(entry("a", b"1", kind=1)),
        archive(entry("a", b"1", size=2)),
        archive(entry("a", b"1", size=2**63)),
        archive(a, zeros=1),
        archive(a, zeros=3),
        extra + hashlib.sha256(extra).digest(),
        archive(entry(b"\xff\xfe", b"1")),
        archive()[:4] + hashlib.sha256(b"BOX1").digest(),
    ) == []


def test_paths_that_are_not_valid_are_refused(candidate):
    paths = ["../x", "/x", "a/../b", "a//b", "./a", "a/.", "a/", ".", "..", "a\0b", "/", "a/../../b"]
    assert refused(candidate, *(archive(entry(path, b"1")) for path in paths)) == []


def test_an_entry_below_another_is_refused(candidate):
    assert refused(
        candidate,
        archive(entry("a"), entry("a/b")),
        archive(entry("a", kind=1), entry("a/b")),
        archive(entry("a"), entry("a-b"), entry("a/b/c")),
        archive(entry("a/b"), entry("a/b.c"), entry("a/b/c")),
    ) == []


def test_unusual_paths_that_are_valid(candidate):
    data = archive(*(entry(name, b"1") for name in sorted(["...", "a\\b", "a/..b", " ", "C:", "-x", "a\nb"])))
    source = """
data = text.encode("latin-1")
unpack(data, str(root / "out"))
sorted(snapshot(root / "out"))
"""
    assert run(candidate, source, text=data.decode("latin-1")) == [" ", "-x", "...", "C:", "a\nb", "a/", "a/..b", "a\\b"]


def test_a_folder_in_use_is_refused_and_stays(candidate):
    source = """
folder = make({"f": "1"})
data = pack(folder)
(root / "used").mkdir()
(root / "used" / "other").write_text("2")
(root / "file").write_text("3")
[attempt(unpack, data, str(root / "used")), attempt(unpack, data, str(root / "file")), snapshot(root / "used"),
 (root / "file").read_text(), issubclass(BoxError, ValueError)]
"""
    assert run(candidate, source) == ["BoxError", "BoxError", {"other": "2"}, "3", True]


def test_the_program(candidate):
    source = """
folder = make(files)
[program("pack", folder, root / "x.box"), program("list", root / "x.box"),
 program("unpack", root / "x.box", root / "out"), snapshot(root / "out") == snapshot(folder)]
"""
    listed = "\n".join(
        [
            f"5 {zlib.crc32(b'line' + bytes([10])):08x} B", f"1 {zlib.crc32(b'2'):08x} a-b", f"1 {zlib.crc32(b'1'):08x} a/x",
            f"2 {zlib.crc32(bytes([0, 255])):08x} a/y/z", f"1 {zlib.crc32(b'b'):08x} b.txt", "- - empty/", "0 00000000 ä", "",
        ]
    )  # fmt: skip
    assert run(candidate, source, files=TREE) == [[0, "", 0], [0, listed, 0], [0, "", 0], True]


def test_the_program_refuses(candidate):
    source = """
folder = make({"f": "1"})
(root / "bad").write_bytes(pack(folder)[:-1])
os.symlink("f", root / "in" / "link")
calls = [("list", root / "bad"), ("unpack", root / "bad", root / "out"), ("list", root / "none"),
         ("pack", root / "none", root / "n.box"), ("pack", folder, root / "l.box")]
[[program(*call) for call in calls], sorted(path.name for path in root.iterdir())]
"""
    assert run(candidate, source) == [[[1, "", 1]] * 5, ["bad", "in"]]


def test_other_command_lines(candidate):
    source = "[program(*words) for words in ([], ['pack'], ['list', 'a', 'b'], ['verify', 'a'], ['unpack', 'a'])]"
    assert run(candidate, source) == [[2, "", 1]] * 5
