"""Count the function calls in src/bespeak, and those that cross from file to file, for four walks through the code.

    python tools/walks.py                     # all walks
    python tools/walks.py lint import --top   # some walks, with their ten most frequent crossings

A call is a function, generator or coroutine that begins; resuming one is not a call. Comprehensions are calls in
Python 3.11, but not in 3.12. A crossing is a call to a function of another file, made directly or through libraries.
A crossing between rooms is one between top folders of src/bespeak. Without `--threads`, only the main thread counts.
Each walk runs twice, and the second run is counted. The walks use the command line, `bespeak.connect` and
`bespeak.asgi`, so the script can measure other source trees: set PYTHONPATH to their src.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import logging
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict
from unittest import mock

import click
import httpx

import bespeak

SOURCE = f"{Path(bespeak.__file__).parent}/"
ENDPOINT_FILE = str(Path(__file__).parents[1] / "examples/hotel/endpoints/book-room.toml")
AGENT_ID = "a" * 64


class Recorder:
    """A profile function that counts the calls of one walk."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        """Number of calls by file."""
        self.crossings: Counter[tuple[str, str]] = Counter()
        """Number of calls by caller file, and callee with its file."""
        self._active = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count the call of a function of bespeak."""
        code, file = frame.f_code, _file(frame)
        # At the start of a function, the lowest two bits of the RESUME instruction's argument are 0.
        if not self._active or event != "call" or not file or code.co_code[frame.f_lasti + 1] & 3:
            return
        self.calls[file] += 1
        caller = frame.f_back
        while caller is not None and not _file(caller):
            caller = caller.f_back
        if caller is not None and _file(caller) != file:
            self.crossings[_file(caller), f"{file}:{code.co_qualname}"] += 1

    def runs(self, first: str, second: str) -> Iterator[str]:
        """Yield the input of the first run of a walk and that of the second. Count the calls of the second."""
        yield first
        self._active = True
        yield second
        self._active = False

    def figures(self) -> tuple[int, int, int, int]:
        """Return the numbers of calls, files, crossings, and crossings between rooms."""
        between = (n for (a, b), n in self.crossings.items() if a.partition("/")[0] != b.partition("/")[0])
        return self.calls.total(), len(self.calls), self.crossings.total(), sum(between)


def _file(frame: FrameType) -> str:
    """Return the path of a frame's file below src/bespeak; empty for other files."""
    name = frame.f_code.co_filename
    return name.removeprefix(SOURCE) if name.startswith(SOURCE) else ""


def lint(recorder: Recorder) -> None:
    """Lint one endpoint file."""
    for file in recorder.runs(ENDPOINT_FILE, ENDPOINT_FILE):
        _run_command("lint", file)


def import_openapi(recorder: Recorder) -> None:
    """Import an OpenAPI document with two operations."""
    rooms, room, booking = (
        {"content": {"application/json": {"schema": schema}}, "description": "JSON"}
        for schema in (_schema(count="integer"), _schema(room_id="string"), _schema(booking_id="string"))
    )
    read = {"operationId": "listRooms", "summary": "List the rooms.", "responses": {"200": rooms}}
    write = {"operationId": "bookRoom", "summary": "Book a room.", "requestBody": room, "responses": {"200": booking}}
    paths = {"/rooms": {"get": read}, "/bookings": {"post": write}}
    head = {"openapi": "3.1.0", "info": {"title": "Rooms", "version": "1"}, "servers": [{"url": "https://a.example"}]}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rooms.json")
        file.write_text(json.dumps({**head, "paths": paths}), "utf-8")
        for output in recorder.runs(f"{folder}/first", f"{folder}/second"):
            _run_command("import", "openapi", str(file), "--output", output)


async def propose(recorder: Recorder) -> None:
    """Send a PROPOSE that can be planned: the price of a room, which a call of FETCH /rooms/{room_id} returns."""
    semantic = {"intent": "Find the price of a room.", "actor": "agent", "outcome": "The price is returned."}
    effects = {"capability": "retrieval", "confidence": 0.5, "impact": "informational", "is_idempotent": True}
    schemas = {"input_schema": _schema(room_id="string"), "output_schema": _schema(price="number")}
    others = {"description": "Find a price.", "errors": [], "required_scopes": [], "handler": {"type": "composition"}}
    proposed = {"method": "FIND", "semantic": semantic | effects, **schemas, **others}
    async with bespeak.connect(_make_app(), agent_id=AGENT_ID) as client:
        for path in recorder.runs("/rooms/prices", "/room/prices"):
            reply = await client.request("PROPOSE", "/", {"endpoint": {**proposed, "path": path}})
            assert reply.status == 263, reply


async def book(recorder: Recorder) -> None:
    """Send a BOOK with an idempotency key over HTTP."""
    async with (
        bespeak.asgi(_make_app()).running() as service,
        httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://localhost") as client,
    ):
        for key in recorder.runs("first", "second"):
            headers = {"Agent-ID": AGENT_ID, "Idempotency-Key": key}
            reply = await client.post("/room:book", json={"room_id": "12"}, headers=headers)
            assert reply.status_code == 200, reply.text


Walk = Callable[[Recorder], Coroutine[Any, Any, None] | None]
WALKS: dict[str, Walk] = {"lint": lint, "import": import_openapi, "propose": propose, "book": book}


def _run_command(*arguments: str) -> None:
    """Run `bespeak` in this process."""
    with mock.patch.object(sys, "argv", ["bespeak", *arguments]), redirect_stdout(io.StringIO()):
        try:
            importlib.import_module("bespeak.__main__").main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"bespeak {' '.join(arguments)}: exit code {end.code}") from end


def _schema(**types: str) -> dict[str, Any]:
    """Return a closed schema of required members by their types."""
    properties = {name: {"type": kind} for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": [*types], "additionalProperties": False}


class Room(TypedDict):
    """A room of the service."""

    room_id: str
    price: float


async def get_room(room_id: str) -> Room:
    """Return a room, for FETCH and for BOOK."""
    return Room(room_id=room_id, price=80)


def _make_app() -> bespeak.App:
    """Create the service for PROPOSE and BOOK."""
    policies = bespeak.Policies(synthesis_enabled=True)
    app = bespeak.App("Rooms", server_id="rooms.example", operator="A", contact="a@rooms.example", policies=policies)
    app.endpoint("FETCH", "/rooms/{room_id}", impact="informational", intent="Get a room.", outcome="A room.")(get_room)
    app.endpoint("BOOK", "/room", impact="irreversible", intent="Book a room.", outcome="A booked room.")(get_room)
    return app


@click.command()
@click.argument("walks", nargs=-1, type=click.Choice(list(WALKS)))
@click.option("--top", is_flag=True, help="Print the most frequent crossings.")
@click.option("--threads", is_flag=True, help="Also count the threads that a walk starts.")
def main(walks: Sequence[str], top: bool, threads: bool) -> None:
    """Count the function calls of WALKS through bespeak; by default of all."""
    print(f"{'walk':8}{'calls':>8}{'files':>8}{'crossings':>12}{'between rooms':>16}")
    recorders = {name: Recorder() for name in walks or WALKS}
    for name, recorder in recorders.items():
        threading.setprofile(recorder if threads else None)
        sys.setprofile(recorder)
        try:
            if (rest := WALKS[name](recorder)) is not None:
                asyncio.run(rest)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        print("{:8}{:8,}{:8,}{:12,}{:16,}".format(name, *recorder.figures()))
    for name, recorder in recorders.items() if top else ():
        print(f"\n{name}")
        for (caller, callee), count in recorder.crossings.most_common(10):
            print(f"{count:6,}  {caller} -> {callee}")


if __name__ == "__main__":
    logging.getLogger("bespeak").setLevel(logging.ERROR)  # the services have no [auth], which is a warning
    main()
