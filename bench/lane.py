"""What the lane to a user's endpoint costs beside a bare aiohttp loop: `python bench/lane.py`.

Both make the same calls to simulated judges that take their time, in a server of its own process.
The ideal wall time is that of the server's latency alone; CPU is that of the client.
"""

import asyncio
import json
from functools import partial

import aiohttp
from rig import Took, keep_flying, served, timed

from judge_gym.models.http_model import HttpModel
from judge_gym.records import Draw, Message, Request

CALLS, FLYING, LATENCY = 2_000, 64, 0.05
ROUNDS = 3
ARTICLE = "The regulator warned two stations; a bill is under review. " * 40


def question(number: int) -> Request:
    """A question as long as an editor's, like no other."""
    asked = f"Article {number}. Write a clinical summary.\n{ARTICLE}"
    return Request("lab:editor", (Message("user", (asked,)),), Draw("bench", number))


async def bare(url: str, requests: list[Request]) -> None:
    """The least that a call takes: encode, post, decode."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def call(request: Request) -> None:
            messages = [{"role": m.role, "content": m.content} for m in request.messages]
            body = {"model": "editor", "messages": messages, "max_tokens": request.max_tokens}
            async with session.post(
                f"{url}/chat/completions",
                data=json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
            ) as response:
                json.loads(await response.read())["choices"][0]["message"]["content"]

        await keep_flying(call, requests, FLYING)


async def wired(url: str, requests: list[Request]) -> None:
    """The product's lane."""
    model = HttpModel("lab:editor", url, "editor")
    await keep_flying(model.complete, requests, FLYING)


def main() -> None:
    """Measure and print, in turns, so that a busy moment hurts both."""
    lanes = {"aiohttp": bare, "HttpModel": wired}
    best = {name: Took() for name in lanes}
    with served(latency=LATENCY) as server:
        for lane in lanes.values():
            asyncio.run(lane(server.url, [question(number) for number in range(FLYING)]))  # warm up
        for _ in range(ROUNDS):
            for name, lane in lanes.items():
                calls = lane(server.url, [question(number) for number in range(CALLS)])
                best[name] = best[name].best(timed(partial(asyncio.run, calls), server))
    ideal = CALLS / FLYING * LATENCY
    print(f"{CALLS:,} calls of {LATENCY * 1000:g} ms, {FLYING} in flight; best of {ROUNDS} rounds")
    print(f"{'':10} {'wall s':>8} {'x ideal':>8} {'CPU s per 1,000':>16}")
    for name, took in best.items():
        print(
            f"{name:10} {took.wall:8.2f} {took.wall / ideal:8.2f} {took.cpu / CALLS * 1000:16.3f}"
        )


if __name__ == "__main__":
    main()
