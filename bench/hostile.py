"""The peak memory of whole runs against a hostile server: `python bench/hostile.py [CASE...]`.

Each case is a `judge-gym run` in its own process, with one judge behind the server on loopback and
one simulated judge, and the same command again. It must stay under 400 MB, record every attempt,
complete the simulated judge, name the last error, and ask nothing again that was answered.
"""

import argparse
import asyncio
import gzip
import itertools
import json
import multiprocessing
import os
import re
import sqlite3
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import chdir, closing
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

from rig import write_short_study

MOST_MB, LONGEST = 400, 120.0
"""Of a run: its peak memory and its seconds, after which it is ended."""
ITEMS, FLYING = 100, 100
MB = 1024**2
JUDGES = {
    "endpoint": "endpoint:judge",
    "openai": "openai:gpt-5.2",
    "anthropic": "anthropic:claude-haiku-4-5",
    "google": "google:gemini-2.5-flash",
}
"""A judge per way of calling; each asks below /LANE of the server."""


# --- replies -------------------------------------------------------------------------------------


def reply(lane: str, text: str = "VERDICT: A", model: str = "m", tokens: Any = 5) -> dict[str, Any]:
    """Returns a reply in the format of a lane."""
    match lane:
        case "anthropic":
            return {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": tokens, "output_tokens": tokens},
            }
        case "google":
            return {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": text}]},
                        "finishReason": "STOP",
                    }
                ],
                "modelVersion": model,
                "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": tokens},
            }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": tokens},
    }


def plain(lane: str, **changes: Any) -> bytes:
    """Returns the bytes of a reply with a length."""
    return packed(json.dumps(reply(lane, **changes)).encode())


def packed(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Returns a response with these bytes as its body."""
    lines = (f"Content-Length: {len(body)}", *headers)
    head = "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: application/json", *lines])
    return head.encode() + b"\r\n\r\n" + body


def refused(*headers: str, status: str = "429 Too Many Requests") -> bytes:
    """Returns a refusal with further headers."""
    return packed(b'{"error": {"message": "busy"}}', *headers, status=status)


def bomb() -> bytes:
    """Returns 10 GB of spaces as gzip, in 10 MB: equal blocks that need nothing before them."""
    stream = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = stream.compress(b" " * (64 * MB)) + stream.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + block * 160


CASES: dict[str, Callable[[str], bytes]] = {
    "gzip bomb": lambda lane: packed(bomb(), "Content-Encoding: gzip"),
    "gzip of a bomb": lambda lane: packed(gzip.compress(bomb(), 9), "Content-Encoding: gzip, gzip"),
    "endless after gzip": lambda lane: b"",
    "endless body": lambda lane: b"",
    "7.9 MB of spaces": lambda lane: packed(
        json.dumps(reply(lane)).encode() + b" " * int(7.9 * MB)
    ),
    "7.9 MB of text": lambda lane: plain(lane, text="VERDICT: A" + "x" * int(7.9 * MB)),
    "7.9 MB of small values": lambda lane: packed(
        json.dumps(reply(lane) | {"more": []})[:-2].encode() + b"[]," * int(2.6 * MB) + b"0]}"
    ),
    "model name of 5 MB": lambda lane: plain(lane, model="m" * (5 * MB)),
    "usage of 10**30": lambda lane: plain(lane, tokens=10**30),
    "usage of NaN": lambda lane: plain(lane, tokens=float("nan")),
    "nested 100,000 deep": lambda lane: packed(b'{"choices":' + b"[" * 100_000),
    "invalid UTF-8": lambda lane: packed(b'{"choices": "\xff\xfe\xc0"}'),
    "lone surrogate": lambda lane: plain(lane, text="VERDICT: A \ud800 \x00"),
    "headers of 60 KB": lambda lane: packed(b"{}", f"X-Long: {'h' * 60_000}"),
    "60 KB of headers": lambda lane: packed(b"{}", *[f"X-{n}: {'h' * 100}" for n in range(600)]),
    "Retry-After: inf": lambda lane: refused("Retry-After: inf"),
    "Retry-After: 1e12": lambda lane: refused("Retry-After: 1e12"),
    "Retry-After in 9999": lambda lane: refused("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"),
    "Retry-After of 503": lambda lane: refused("Retry-After: inf", status="503 Busy"),
    "error of 7.9 MB": lambda lane: packed(
        json.dumps({"error": {"message": "e" * int(7.9 * MB)}}).encode(), status="400 Bad Request"
    ),
}


# --- server --------------------------------------------------------------------------------------


def serve(told: Connection) -> None:
    """Answers with the case that was named last, and tells how often it was asked."""
    current, asked = "", Counter[str]()
    responses: dict[str, bytes] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = re.search(r"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                lane = head.split("/")[1]
                asked[current] += 1
                if current.startswith("endless"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                    if "gzip" in current:
                        whole = gzip.compress(json.dumps(reply(lane)).encode())
                        writer.write(b"Content-Encoding: gzip\r\n")
                    writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
                    if "gzip" in current:
                        writer.write(b"%x\r\n%b\r\n" % (len(whole), whole))
                    while True:
                        writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                        await writer.drain()
                if lane not in responses:
                    responses[lane] = CASES[current](lane)
                whole = memoryview(responses[lane])
                for start in range(0, len(whole), MB):
                    writer.write(whole[start : start + MB])
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def run() -> None:
        nonlocal current
        server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1000)
        told.send(server.sockets[0].getsockname()[1])
        while (case := await asyncio.to_thread(told.recv)) != "":
            if case is not None:
                current = case
                responses.clear()
            told.send(asked[current])
        server.close()

    asyncio.run(run())


# --- runs ----------------------------------------------------------------------------------------


def write_study(lane: str, url: str) -> None:
    """Writes a study with a judge of the lane and a simulated one."""
    with Path("items.jsonl").open("w") as file:
        for number in range(ITEMS):
            text = " ".join(f"word{number}x{place}" for place in range(40))
            item = {"text": text, "url": f"https://wire.example/{number}", "date": "2026-01-05"}
            file.write(json.dumps(item) + "\n")
    limits = f"rpm = 0\ntpm = 0\nconcurrency = {FLYING}"
    tables = [f'[endpoints.endpoint]\nbase_url = "{url}/endpoint/v1"\n{limits}']
    tables += [f"[providers.{name}]\n{limits}" for name in JUDGES if name != "endpoint"]
    Path("judge-gym.models.toml").write_text("\n".join([*tables, f"[hosted]\n{limits}"]))
    write_short_study([JUDGES[lane], "sim:balanced"])


def run(url: str) -> tuple[float, float, str]:
    """Returns a run's peak memory in MB, its seconds and its output."""
    keys = {f"{name}_API_KEY": "no-key" for name in ("OPENAI", "ANTHROPIC", "GOOGLE")}
    urls = {
        "OPENAI_BASE_URL": f"{url}/openai/v1",
        "ANTHROPIC_BASE_URL": f"{url}/anthropic",
        "GOOGLE_GEMINI_BASE_URL": f"{url}/google",
    }
    options = ["--db", "sqlite:///lab.db", "--concurrency", str(FLYING)]
    command = [sys.executable, "-m", "judge_gym", *options, "run", "study.yaml"]
    start = time.perf_counter()
    with Path("output.txt").open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **keys, **urls}
        )
        timer = Timer(LONGEST, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    output_text = Path("output.txt").read_text(errors="replace")
    return usage.ru_maxrss / 1024, time.perf_counter() - start, output_text


def attempts(judge: str) -> tuple[int, int, str]:
    """Counts a judge's attempts and its calls with an answer, and returns the last error."""
    with closing(sqlite3.connect("lab.db")) as database:
        rows = database.execute(
            "select call_id, completed, error from attempts join calls on call_id = calls.id "
            "where model = ? order by attempts.id",
            [judge],
        ).fetchall()
    answered = {call for call, completed, _ in rows if completed}
    errors = [error for _, _, error in rows if error]
    return len(rows), len(answered), errors[-1] if errors else ""


def main() -> None:
    """Measure and print; ends with 1 where a run does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"by default {', '.join(CASES)}")
    parser.add_argument("--lanes", default=",".join(JUDGES), help="by default %(default)s")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url, broken = f"http://127.0.0.1:{ours.recv()}", 0
    print(f"{'':10} {'':24} {'peak MB':>8} {'wall s':>7} {'asked':>6} {'again':>6}")
    for lane, case in itertools.product(options.lanes.split(","), options.cases or CASES):
        with TemporaryDirectory() as folder, chdir(folder):
            write_study(lane, url)
            ours.send(case)
            before = ours.recv()
            peak, seconds, output = run(url)
            recorded, answered, last = attempts(JUDGES[lane])
            ours.send(None)
            asked = ours.recv() - before
            peak, seconds = max(peak, run(url)[0]), seconds
            ours.send(None)
            again = ours.recv() - before - asked
        waits = case.startswith("Retry-After:") or case.endswith("9999")
        faults = {
            "memory": peak > MOST_MB,
            "traceback": "Traceback" in output,
            "other judge": not re.search(r"sim:balanced +complete ", output),
            "not recorded": recorded != asked and not waits,
            "paid twice": again > ITEMS - answered,
            "no words": last not in output.replace("\n", " ") and not answered,
        }
        found = ", ".join(name for name, holds in faults.items() if holds)
        broken += bool(found)
        row = f"{lane:10} {case:24} {peak:8.0f} {seconds:7.1f} {asked:6} {again:6}"
        print(row, found or "ok", last[:90], flush=True)
    ours.send("")
    server.join()
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
