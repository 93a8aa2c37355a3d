"""An MCP server as a child process: started, spoken to over pipes in lines of limited size, and always ended."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from bespeak.contract.handler import VARIABLE, McpServer
from bespeak.protocol.exchange.headers import is_header_name, is_header_value
from bespeak.runtime.bindings.upstream import MAX_RESPONSE_BYTES
from bespeak.text.diagnostics.diagnostic import printable

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_INHERITED: Final = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR")
)  # variables that every program needs and that hold no secrets; the others are passed on only by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a connection needs. Values from the environment are excluded from repr."""

    name: str  # name in logs: the program or the host
    command: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token_file: str = ""

    @property
    def fault(self) -> str:
        """Why the server cannot be reached, as far as this machine knows; empty if nothing speaks against it."""
        if self.url:
            return "" if isinstance(self.read_headers(), dict) else f"the token in {self.token_file} cannot be read"
        if self.folder and not Path(self.folder).is_dir():
            return f"the folder {self.folder} does not exist"
        found = shutil.which(self.command[0], path=self.environment.get("PATH"))
        if found is None and not (Path(self.folder) / self.command[0]).is_file():
            return f"the program {self.command[0]!r} is not found"
        return ""

    def read_headers(self) -> dict[str, str] | str:
        """Return the headers of a request with the token of the file, or why that cannot be read."""
        if not self.token_file:
            return dict(self.headers)
        try:
            with Path(self.token_file).open(encoding="utf-8") as file:
                token = file.read(16_384).strip()
        except (OSError, UnicodeError) as error:
            return getattr(error, "strerror", None) or "it is not text"
        if not token or not token.isascii() or not is_header_value(token):
            return "it does not hold a token on one line"
        return {**self.headers, "Authorization": f"Bearer {token}"}


def resolve_server(server: McpServer, environment: Mapping[str, str]) -> Launch | list[tuple[str, str]]:
    """Fill in the variables of a server, or return its faults, each with the pointer of its key."""
    faults = [(f"/env/{at}", _unset(name)) for at, name in enumerate(server.env) if not environment.get(name)]
    filled: dict[str, str] = {}
    for at, template in server.templates:
        missing = [name for name in VARIABLE.findall(template) if not environment.get(name)]
        faults += [(at, _unset(name)) for name in missing]
        filled[at] = VARIABLE.sub(lambda found: environment.get(found[1], ""), template)
    headers = {name: filled[f"/headers/{name}"] for name in server.headers}
    faults += [
        (f"/headers/{name}", f"the header {name!r} cannot be sent")
        for name, value in headers.items()
        if not (is_header_name(name) and is_header_value(value) and value.isascii())
    ]
    arguments = tuple(filled[f"/args/{at}"] for at in range(len(server.args)))
    if any("\0" in part for part in (server.command, server.folder, *arguments)):
        faults.append(("/args", "an argument contains a NUL character"))
    if faults:
        return faults
    if server.url:
        url = filled["/url"]
        host = urlsplit(url).hostname or "the server"
        return Launch(name=host, url=url, headers=headers, token_file=server.token_file)
    inherited = {name: environment[name] for name in _INHERITED if name in environment}
    named = {name: environment[name] for name in server.env}
    return Launch(
        name=Path(server.command).name,
        command=(server.command, *arguments),
        environment={**inherited, **named},
        folder=server.folder,
    )


def _unset(name: str) -> str:
    return f"the MCP server needs the environment variable {name!r}, which is not set"


FailureKind = Literal["unreachable", "lost", "timeout", "malformed", "authentication", "refused", "asks", "changed"]
"""Kinds of failures.

unreachable: it could not be started or reached, so nothing was sent. lost: it ended during the call. timeout: it did
not answer. malformed: its answer cannot be read. authentication: it does not accept this server's credential. refused:
it answered with a protocol error. asks: it wants an answer of a user or a model. changed: the tool is gone or takes
another input.
"""


@dataclass(frozen=True, slots=True)
class McpFailure:
    kind: FailureKind
    text: str  # what happened, for the operator's log; it may name hosts and files
    code: int | None = None  # code of a protocol error
    retry_after: int | None = None  # seconds until the server is started again; None if it may be called at once


_KEPT: Final = 200  # bytes at both ends of a line that is too long
_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_LAST: Final = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line beyond the limit. Only its ends are known."""

    head: bytes
    tail: bytes

    @property
    def answered(self) -> int | None:
        """Id of the request that the line answers, if it stands at one of the ends."""
        found = _FIRST.match(self.head) or _LAST.search(self.tail)
        return None if found is None else int(found[1])


class MessageLines:
    """Splits the output of a program into lines. A line beyond the limit is dropped while it arrives."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None  # beginning of the line that is being dropped
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """Take a piece of the output; yield each line that it completes."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            self._add(part)
            yield self._line()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._head is None and self._size > self._most:
            kept = b"".join(self._parts)
            self._head, self._tail, self._parts = (kept + part)[:_KEPT], kept[-_KEPT:], []
        if self._head is not None:
            self._tail = (self._tail + part)[-_KEPT:]
        elif part:
            self._parts.append(part)

    def _line(self) -> bytes | TooLong:
        line = b"".join(self._parts) if self._head is None else TooLong(self._head, self._tail)
        self._parts, self._size, self._head, self._tail = [], 0, None, b""
        return line


_logger = logging.getLogger(__name__)

TOO_LARGE: Final = -32901  # code of our own error for an answer that is too large
_PIECE: Final = 65_536
_LONGEST_LINE: Final = 2_000  # bytes of a line on standard error that are kept
_GRACE: Final = 2.0  # seconds for a process to end after its input was closed, after SIGTERM, and after SIGKILL
_LAST_SECONDS: Final = 0.5  # time for the last words of a program whose output has ended
_STEP: Final = 0.01  # seconds between two looks at a process that is to end
_GUARD: Final = """
( trap '' HUP INT TERM
  exec </dev/fd/{fd} || exit
  read _
  for _ in 1 2 3; do
    kill -9 $(grep -lsF BESPEAK_LAUNCH={mark} /proc/[0-9]*/environ | tr -dc '0-9\\n') || break
  done
  kill -9 0
) >/dev/null 2>&1 &
BESPEAK_LAUNCH={mark}; export BESPEAK_LAUNCH
exec "$@"
"""
"""Script that becomes the program and leaves a guard in its process group. The guard reads from a pipe that only this
process holds: when it is closed, by us or by the end of this process, the guard kills the group. On Linux it also kills
descendants that have left the group, which it knows by a variable of their environment."""


class LastWords:
    """Standard error of a program: logged, and its last lines kept for the message when it dies."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.complete = asyncio.Event()  # set when nothing more can come
        self._lines: deque[str] = deque(maxlen=8)

    def add(self, line: bytes) -> None:
        text = printable(line[:_LONGEST_LINE].decode(errors="replace").rstrip())
        if text:
            self._lines.append(text)
            _logger.info("%s: %s", self.name, text)

    def __str__(self) -> str:
        return " | ".join(self._lines)


@asynccontextmanager
async def run_process(launch: Launch, said: LastWords, ended: Callable[[], None]) -> AsyncIterator[TransportStreams]:
    """Start a program and exchange messages; at the end of the block it and its children are gone. Raises OSError."""
    if sys.platform == "win32":
        parameters = StdioServerParameters(
            command=launch.command[0],
            args=list(launch.command[1:]),
            env=dict(launch.environment),
            cwd=launch.folder or None,
        )
        async with stdio_client(parameters) as streams:
            yield streams
        return
    incoming_end, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_end = anyio.create_memory_object_stream[SessionMessage](0)
    async with _started(launch) as pipes, anyio.create_task_group() as group:
        group.start_soon(_read, pipes.output, incoming_end, said, ended)
        group.start_soon(_write, pipes.input, outgoing_end, incoming_end)
        group.start_soon(_listen, pipes.errors, said)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await pipes.stop()
                for stream in (incoming, incoming_end, outgoing, outgoing_end):
                    await stream.aclose()
            group.cancel_scope.cancel()


@dataclass(frozen=True, slots=True)
class _Pipes:
    process: Popen[bytes]
    lifeline: int  # end of the pipe that the guard watches
    input: asyncio.StreamWriter
    output: asyncio.StreamReader
    errors: asyncio.StreamReader

    async def stop(self) -> None:
        """Close the input, then ask the process group to end, then kill all that is left; every wait is bounded."""
        self.input.close()
        if not await self._ends():
            self._signal(signal.SIGTERM)
            await self._ends()
        os.close(self.lifeline)
        if not await self._ends():
            self._signal(signal.SIGKILL)  # the guard is gone
        if not await self._ends():
            _logger.warning("the MCP server process %d does not end", self.process.pid)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    async def _ends(self) -> bool:
        deadline = asyncio.get_running_loop().time() + _GRACE
        # Nothing tells the loop about processes that it has not started.
        while self.process.poll() is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_STEP)
        return self.process.returncode is not None


@asynccontextmanager
async def _started(launch: Launch) -> AsyncIterator[_Pipes]:
    """Start a program. Not by the loop: uvloop lets a child inherit the pipes of others beside `pass_fds`."""
    watched, lifeline = os.pipe()
    try:
        process = Popen(  # noqa: ASYNC220, S603 - it takes milliseconds; the operator names the program
            ["/bin/sh", "-c", _GUARD.format(fd=watched, mark=secrets.token_hex(16)), "sh", *launch.command],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(launch.environment),
            cwd=launch.folder or None,
            pass_fds=(watched,),
            start_new_session=True,
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(watched)
    loop = asyncio.get_running_loop()
    opened: list[asyncio.BaseTransport] = []

    async def reader(pipe: IO[bytes]) -> asyncio.StreamReader:
        found = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(found), pipe)
        opened.append(transport)
        return found

    async def connect() -> _Pipes:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        output, errors = await reader(process.stdout), await reader(process.stderr)
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: protocol, process.stdin)
        opened.append(transport)
        given = asyncio.StreamWriter(transport, protocol, None, loop)
        return _Pipes(process, lifeline, given, output, errors)

    try:
        try:
            pipes = await connect()
        except BaseException:
            os.close(lifeline)
            process.kill()
            process.wait()
            raise
        yield pipes
    finally:
        # A grandchild that left the group may hold the pipes open; nothing waits for it.
        for one in opened:
            one.close()


async def _read(
    output: asyncio.StreamReader,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    said: LastWords,
    ended: Callable[[], None],
) -> None:
    """Pass on what the program writes, until its output ends. Lines that are not messages are skipped."""
    lines = MessageLines(MAX_RESPONSE_BYTES)
    try:
        async with incoming:
            while data := await output.read(_PIECE):
                for line in lines.feed(data):
                    message = _parse(line, said.name)
                    if message is not None:
                        await incoming.send(message)
            with anyio.move_on_after(_LAST_SECONDS):
                await said.complete.wait()
    except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # the process or the session has ended
    finally:
        ended()


def _parse(line: bytes | TooLong, name: str) -> SessionMessage | None:
    if isinstance(line, TooLong):
        number = line.answered
        _logger.warning("%s: an answer of more than %d bytes was dropped", name, MAX_RESPONSE_BYTES)
        if number is None:
            return None
        error = ErrorData(code=TOO_LARGE, message=f"the answer is larger than {MAX_RESPONSE_BYTES} bytes")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        _logger.debug("%s: a line that is not a message was skipped: %s", name, printable(repr(line[:200])))
        return None


async def _write(
    given: asyncio.StreamWriter,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async with outgoing:
            async for one in outgoing:
                given.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await given.drain()
    except (OSError, RuntimeError, anyio.ClosedResourceError):
        # The program no longer reads. Without an end of its output, a request would wait for ever.
        await incoming.aclose()


async def _listen(errors: asyncio.StreamReader, said: LastWords) -> None:
    lines = MessageLines(_LONGEST_LINE)
    with suppress(OSError):
        data = b" "
        while data:
            data = await errors.read(_PIECE)
            for line in lines.feed(data or b"\n"):  # the last line may have no end
                said.add(line.head if isinstance(line, TooLong) else line)
    said.complete.set()
