"""Kill a server while it repeats calls after a delay, and verify that every repetition that was promised is made.

python -m tools.faults.retries --rounds 50
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.faults.deployment import AGENT
from tools.faults.load import LONGEST
from tools.faults.server import Server

from bespeak.agent.client.agtp_transport import Pool
from bespeak.errors import RemoteProtocolError

_PATIENCE = 60.0
_APP = '''
import asyncio
from pathlib import Path

from bespeak import App

app = App("Fault Air", server_id="faults.example", operator="Fault Air", contact="a@faults.example", methods=["RETRY"])
HERE = Path(__file__).parent / "attempts"


@app.endpoint("BOOK", "/seat", impact="reversible", scopes=[])
async def book_seat(mark: str) -> dict[str, str]:
    """Reserve a seat for a passenger.

    Outcome: The first attempt fails, and every further one reserves the seat after a moment.
    """
    file = HERE / mark
    is_first = not file.exists()
    with file.open("a") as effects:
        effects.write("x")
    if is_first:
        raise RuntimeError("the first attempt fails")
    await asyncio.sleep(0.02)
    return {"mark": mark}
'''


async def _send(pool: Pool, method: str, path: str, body: dict[str, Any], task_id: str) -> tuple[int, Any] | None:
    headers = (("Agent-ID", AGENT), ("Authority-Scope", "seats:book"), ("Task-ID", task_id))
    try:
        answer = await pool.request(method, path, headers, json.dumps(body).encode())
    except (OSError, RemoteProtocolError, TimeoutError):
        return None
    return answer.status, json.loads(answer.body)


async def _promise(port: int, marks: list[str], promised: set[str]) -> None:
    """Let calls fail, and have each repeated after a moment; add those that the server has acknowledged."""
    pool = Pool("127.0.0.1", port, size=8, read_timeout=LONGEST)
    left = iter(marks)

    async def work() -> None:
        for mark in left:
            failed = await _send(pool, "BOOK", "/seat", {"mark": mark}, mark)
            if failed is None or failed[0] != 500:
                continue
            told = await _send(pool, "RETRY", "/", {"original_task_id": mark, "delay": 0.02}, f"retry-{mark}")
            if told is not None and told[0] == 202:
                promised.add(mark)

    await asyncio.gather(*(work() for _ in range(8)))
    await pool.close()


async def _find_lost(port: int, promised: set[str]) -> set[str]:
    """Return the calls that have not succeeded when the time is over, or that nobody will repeat any more."""
    pool = Pool("127.0.0.1", port, size=8, read_timeout=LONGEST)
    left, lost, deadline = set(promised), set[str](), time.monotonic() + _PATIENCE
    while left and time.monotonic() < deadline:
        for mark in sorted(left):
            # One attempt is too few for a repetition, so that this only asks what has become of the call.
            told = await _send(pool, "RETRY", "/", {"original_task_id": mark, "max_attempts": 1}, f"look-{mark}")
            if told is not None and told[0] == 200:
                left.discard(mark)
            if told is not None and told[0] == 409 and told[1]["error"]["code"] == "attempts-exhausted":
                left.discard(mark)
                lost.add(mark)
        await asyncio.sleep(0.02)
    await pool.close()
    return lost | left


async def _run(folder: Path, source: random.Random, rounds: int, calls: int) -> tuple[int, set[str]]:
    place = ("--store", str(folder / "store.db"))
    promised: set[str] = set()
    for number in range(rounds):
        server = await asyncio.to_thread(Server, folder / "desk.py", *place)
        marks = [f"m-{number}-{index}" for index in range(calls)]
        try:
            asking = asyncio.create_task(_promise(server.port, marks, promised))
            enough = source.randint(calls // 4, calls)
            while len(promised) % calls < enough % calls and not asking.done():
                await asyncio.sleep(0.002)
            await asyncio.to_thread(server.kill)
            await asking
        finally:
            server.kill()
    server = await asyncio.to_thread(Server, folder / "desk.py", *place)
    try:
        return len(promised), await _find_lost(server.port, promised)
    finally:
        server.kill()


def run(*, rounds: int, seed: int, calls: int = 40) -> int:
    """Run, print what was found, and return 1 if a repetition that was promised is lost."""
    with tempfile.TemporaryDirectory(prefix="bespeak-") as name:
        folder = Path(name)
        (folder / "attempts").mkdir()
        (folder / "desk.py").write_text(_APP)
        promised, lost = asyncio.run(_run(folder, random.Random(seed), rounds, calls))
        repeated = sum(len(file.read_text()) > 2 for file in (folder / "attempts").iterdir())
    print(
        f"retries: {rounds} kills, {promised} promised, {len(lost)} lost, {repeated} made more than once, seed {seed}"
    )
    return 1 if lost else 0


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="times that the server is killed")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="seed of a run to repeat")
    options = parser.parse_args()
    return run(rounds=options.rounds, seed=options.seed)


if __name__ == "__main__":
    sys.exit(main())
