"""MCP over standard input and output: one message for each line, whatever else reads and prints there.

The SDK has such a transport, too. It takes the descriptors only when the service is loaded, leaves lines that are not
messages unanswered, and cannot end while a read waits.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any, BinaryIO, Final

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from bespeak.faces.mcp.sessions import InvalidMessage, is_id, read_message

LONGEST: Final = 16 * 1024 * 1024  # bytes of a line
_GRACE: Final = 5.0  # seconds in which cancelled calls must end, and the last answers must be read
Wire = tuple[BinaryIO, BinaryIO]  # the files that belong to the protocol: what the client writes, and what it reads


def claim() -> Wire:
    """Take standard input and output for the protocol.

    From now on, standard input is empty, and what anything prints goes to standard error: Python, libraries in C and
    other processes.
    """
    wire = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(empty, 1)
    os.close(empty)
    return wire


async def serve_stdio(server: Server[Any], wire: Wire, stop: asyncio.Event) -> None:
    """Serve one client until it closes its end or `stop` is set. Calls that still run are cancelled.

    A thread may wait for the client for ever after that, so the process has to end with `os._exit`.
    """
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sending, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    with incoming, received, sending, outgoing:
        running = asyncio.create_task(server.run(received, sending, server.create_initialization_options()))
        reading = asyncio.create_task(_read(wire[0], incoming, sending.clone()))
        writing = asyncio.create_task(_write(wire[1], outgoing))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((running, writing, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in (running, reading, stopping):
            task.cancel()
        await asyncio.wait((running, reading), timeout=_GRACE)
        await asyncio.wait((writing,), timeout=_GRACE)


async def _read(file: BinaryIO, incoming: Any, answers: Any) -> None:
    """Read messages. A line that is not a message is answered with an error, so that no client waits in vain."""
    async with incoming, answers:
        while line := await asyncio.to_thread(file.readline, LONGEST):
            if len(line) == LONGEST and not line.endswith(b"\n"):
                await asyncio.to_thread(_skip_line, file)
                message = f"The line is longer than {LONGEST} bytes"
                found: types.JSONRPCMessage = _refuse(InvalidMessage(types.INVALID_REQUEST, message, None))
            elif line.isspace():
                continue
            else:
                found = parse_line(line)
            await (answers if isinstance(found, _RefusedMessage) else incoming).send(SessionMessage(found))


def _skip_line(file: BinaryIO) -> None:
    while (part := file.readline(LONGEST)) and not part.endswith(b"\n"):
        pass


async def _write(file: BinaryIO, outgoing: Any) -> None:
    """Write messages until there are no more, or the client does not read them."""

    def put(line: bytes) -> None:
        file.write(line)
        file.flush()

    with suppress(OSError):
        async for sent in outgoing:
            line = sent.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
            await asyncio.to_thread(put, line.encode())


class _RefusedMessage(types.JSONRPCError):
    """An error of ours. A client sends errors, too: in reply to a question."""


def parse_line(line: bytes) -> types.JSONRPCMessage:
    """Parse a line into a message of the client; return the error that answers it if it is not one."""
    message = read_message(line)
    if isinstance(message, InvalidMessage):
        return _refuse(message)
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        number = message.id if is_id(message.id) else None
        return _refuse(InvalidMessage(types.INVALID_REQUEST, "This message cannot be read", number))


def _refuse(found: InvalidMessage) -> _RefusedMessage:
    error = types.ErrorData(code=found.code, message=found.message)
    return _RefusedMessage(jsonrpc="2.0", id=found.id, error=error)
