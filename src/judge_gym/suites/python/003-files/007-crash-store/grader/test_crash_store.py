"""Crashes at every byte, damage, compaction and locks."""

START = """
import os, shutil, subprocess, sys, tempfile
from pathlib import Path
from solution import Locked, Store
root = Path(tempfile.mkdtemp())
folder = root / "db"
log = folder / "log"
def texts(store):
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in store.items()}
def reopened(path=folder):
    store = Store(str(path))
    found = texts(store)
    store.close()
    return found
def copy_with(data):
    path = root / "copy"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    (path / "log").write_bytes(data)
    return path
"""
WRITES = """
store = Store(str(folder))
states, ends = [{}], [0]
def done():
    states.append(texts(store))
    ends.append(log.stat().st_size)
store.put(b"a", b"1"); done()
store.put(b"b", b"22" * 9); done()
store.apply({b"a": b"3", b"c": b"", b"b": None}); done()
store.delete(b"a"); done()
store.put(b"", b"\\xff\\x00"); done()
store.close()
data = log.read_bytes()
"""


def run(candidate, source):
    return candidate.run(f"{START}\n{source}")


def test_values_are_stored_and_removed(candidate):
    source = """
store = Store(str(folder / "deep"))
store.put(b"b", b"2")
store.put(b"a", b"")
store.put(b"b", b"3")
store.put(b"\\x00\\n", b"x" * 100_000)
told = [store.delete(b"a"), store.delete(b"a"), store.get(b"a") is None, store.get(b"b").decode()]
store.apply({b"c": b"4", b"b": None, b"none": None, b"": b""})
[told, [[key.decode(), len(value)] for key, value in store.items()]]
"""
    assert run(candidate, source) == [
        [True, False, True, "3"], [["", 0], ["\x00\n", 100_000], ["c", 1]],
    ]  # fmt: skip


def test_a_new_store_finds_everything(candidate):
    assert run(candidate, f"{WRITES}\n[reopened(), states[-1]]") == [{"": "\xff\x00", "c": ""}] * 2


def test_a_log_that_is_cut_anywhere_gives_whole_records(candidate):
    source = f"""{WRITES}
wrong = []
for n in range(len(data) + 1):
    expected = states[max(i for i, end in enumerate(ends) if end <= n)]
    found = reopened(copy_with(data[:n]))
    if found != expected:
        wrong.append([n, found, expected])
wrong
"""
    assert run(candidate, source) == []


def test_what_is_written_after_a_crash_is_found(candidate):
    source = f"""{WRITES}
wrong = []
for n in range(0, len(data), 3):
    path = copy_with(data[:n])
    store = Store(str(path))
    store.put(b"new", b"value")
    expected = texts(store)
    store.close()
    if reopened(path) != expected or expected.get("new") != "value":
        wrong.append(n)
wrong
"""
    assert run(candidate, source) == []


def test_a_changed_byte_ends_the_log(candidate):
    source = f"""{WRITES}
wrong = []
for n in range(len(data)):
    expected = states[max(i for i, end in enumerate(ends) if end <= n)]
    for bits in (1, 0x80, 0xff):
        found = reopened(copy_with(data[:n] + bytes([data[n] ^ bits]) + data[n + 1 :]))
        if found != expected:
            wrong.append([n, bits])
wrong
"""
    assert run(candidate, source) == []


def test_rubbish_at_the_end_is_cut_off(candidate):
    source = f"""{WRITES}
wrong = []
for tail in (b"\\x00" * 7, b"\\x00" * 4096, b"\\xff" * 500, bytes(range(256)), data[1:], data[ends[3] : -1][1:]):
    path = copy_with(data[: ends[3]] + tail)
    if reopened(path) != states[3] or (path / "log").stat().st_size != ends[3]:
        wrong.append(len(tail))
wrong
"""
    assert run(candidate, source) == []


def test_the_log_only_grows_and_reading_writes_nothing(candidate):
    source = """
store = Store(str(folder))
before, wrong = b"", []
for action in (
    lambda: store.put(b"a", b"1"), lambda: store.apply({b"b": b"2", b"a": None}), lambda: store.delete(b"b"),
):
    action()
    data = log.read_bytes()
    if not data.startswith(before) or len(data) <= len(before):
        wrong.append(len(data))
    before = data
store.get(b"a"), store.items(), store.delete(b"none")
[wrong, log.read_bytes() == before]
"""
    assert run(candidate, source) == [[], True]


def test_a_process_that_dies_loses_nothing(candidate):
    source = """
code = '''
import os, sys
from solution import Store
store = Store(sys.argv[1])
store.put(b"a", b"1")
store.apply({b"b": b"2", b"c": b"3"})
store.delete(b"b")
os._exit(9)
'''
ran = subprocess.run([sys.executable, "-c", code, str(folder)])
[ran.returncode, reopened()]
"""
    assert run(candidate, source) == [9, {"a": "1", "c": "3"}]


def test_fsync_is_called_for_each_change(candidate):
    source = """
synced, real = [], os.fsync
def fsync(file):
    number = file if isinstance(file, int) else file.fileno()
    synced.append(os.fstat(number).st_ino)
    real(number)
os.fsync = fsync
store = Store(str(folder))
told = []
for action in (lambda: store.put(b"a", b"1"), lambda: store.apply({b"b": b"2"}), lambda: store.delete(b"a")):
    synced.clear()
    action()
    told.append(log.stat().st_ino in synced)
told
"""
    assert run(candidate, source) == [True, True, True]


def test_compaction_keeps_the_values_in_little_space(candidate):
    source = """
store = Store(str(folder))
for n in range(300):
    store.put(b"key%d" % (n % 10), b"v" * n)
    store.put(b"gone", b"x")
store.delete(b"gone")
before = texts(store)
store.compact()
bound = 64 + sum(64 + len(key) + len(value) for key, value in before.items())
told = [log.stat().st_size <= bound, texts(store) == before, (folder / "log.new").exists()]
store.put(b"after", b"1")
store.close()
[told, reopened() == {**before, "after": "1"}]
"""
    assert run(candidate, source) == [[True, True, False], True]


def test_a_crash_during_compaction(candidate):
    source = f"""{WRITES}
(folder / "log.new").write_bytes(data[: ends[1]])
found = reopened()
told = [found == states[-1], (folder / "log.new").exists()]
store, real = Store(str(folder)), os.replace
def fails(*args, **kwargs):
    raise OSError("no")
os.replace = fails
try:
    store.compact()
except OSError as fault:
    told.append(str(fault))
os.replace = real
store.put(b"after", b"1")
told.append(store.get(b"after").decode())
store.close()
[told, reopened() == {{**states[-1], "after": "1"}}]
"""
    assert run(candidate, source) == [[True, False, "no", "1"], True]


def test_one_store_at_a_time(candidate):
    source = """
store = Store(str(folder))
store.put(b"a", b"1")
(folder / "log.new").write_bytes(b"x")
before = log.read_bytes()
told = []
try:
    Store(str(folder))
except Locked as fault:
    told.append(isinstance(fault, RuntimeError))
code = '''
import sys
from solution import Locked, Store
try:
    Store(sys.argv[1])
except Locked:
    print("locked")
'''
def other():
    return subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True).stdout
told += [other(), log.read_bytes() == before, (folder / "log.new").exists()]
store.put(b"b", b"2")
store.compact()
told.append(other())
store.close()
[told, other(), reopened()]
"""
    assert run(candidate, source) == [
        [True, "locked\n", True, True, "locked\n"], "", {"a": "1", "b": "2"},
    ]  # fmt: skip


def test_after_close(candidate):
    source = """
opened = Store(str(folder))
opened.put(b"a", b"1")
opened.close()
opened.close()
told = []
for action in (
    lambda: opened.get(b"a"), lambda: opened.items(), lambda: opened.put(b"a", b"2"),
    lambda: opened.delete(b"a"), lambda: opened.delete(b"none"), lambda: opened.apply({}),
    lambda: opened.compact(),
):
    try:
        action()
        told.append("no error")
    except ValueError:
        pass
import store.log
[told, reopened(), Store.__module__]
"""
    assert run(candidate, source) == [[], {"a": "1"}, "store.store"]


def test_many_keys(candidate):
    source = """
os.fsync = lambda file: None
store = Store(str(folder))
for n in range(5_000):
    store.put(b"key%d" % n, b"value%d" % n)
store.close()
store = Store(str(folder))
sum(store.get(b"key%d" % n) == b"value%d" % n for n in range(5_000))
"""
    assert run(candidate, source) == 5_000
