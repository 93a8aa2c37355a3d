"""The expressions of one server: evaluated in child processes that start with the first one and die with the server."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from subprocess import DEVNULL, Popen
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.concurrency import FairSemaphore
from bespeak.runtime.expressions import child
from bespeak.runtime.expressions.child import HEAD, MOST_RESULT, Evaluated, ExpressionRequest

LONGEST: Final = 4000  # characters of an expression
MOST_DATA: Final = 8 * 1024 * 1024  # maximum bytes of the variables of one evaluation
DEADLINE: Final = 1.0  # seconds for one expression; a process that takes longer is killed
UNAVAILABLE: Final = "expressions-unavailable"  # code of the fault of a server that cannot evaluate expressions
_BATCH: Final = 500  # rows of one message: agents take turns between them
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset({"row", "true", "false", "null", "in"})
_STARTING: Final = 30.0
_MOST_WAITING: Final = 1000
_MOST_OF_ONE: Final = 200  # expressions of one agent that wait; agents take turns

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Evaluated).decode


class ExpressionFault(Fault, frozen=True):
    code: str = "expression-failed"
    """`invalid-expression`, `expression-failed`, `-timeout` or `-memory`, `expressions-busy` or `-unavailable`."""


class Expressions:
    """Checks and evaluates expressions. At most a few run at the same time, and a bounded number waits."""

    def __init__(self, *, deadline: float = DEADLINE, most_waiting: int = _MOST_WAITING) -> None:
        self._deadline = deadline
        self._turns = FairSemaphore(2, most=most_waiting, most_of_one=_MOST_OF_ONE)
        self._idle: list[_ExpressionProcess] = []

    async def check(self, text: str, names: Iterable[str], owner: str | None = None) -> str | None:
        """Return what is wrong with an expression that may use these variables, such as `steps.search`, or None."""
        found = await self._ask(text, names, None, owner)
        return found.message if isinstance(found, ExpressionFault) else None

    async def evaluate(
        self, text: str, variables: Mapping[str, Any], owner: str | None = None
    ) -> Any | ExpressionFault:
        """Return the value of an expression of an agent as plain data, or an ExpressionFault."""
        return await self._ask(text, variables, variables, owner)

    async def evaluate_rows(
        self, text: str, rows: Sequence[Mapping[str, Any]], owner: str | None = None
    ) -> list[tuple[Any, str | None]] | ExpressionFault:
        """Evaluate an expression for each row, whose members and `row` are its variables.

        Returns a value, or None with the reason why there is none, for each row.
        """
        words = set(_NAME.findall(text))
        names = sorted({name for row in rows for name in row if name in words and name not in _RESERVED} | {"row"})
        found: list[tuple[Any, str | None]] = []
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            # Where a row lacks a member, the name means null, as it does for a member that is null.
            given = [{**{name: row.get(name) for name in names}, "row": row} for row in part]
            told = await self._send(text, ExpressionRequest(text, tuple(names), rows=given), owner)
            if isinstance(told, ExpressionFault):
                return told
            found += [tuple(pair) for pair in told]
        return found

    def close(self) -> None:
        while self._idle:
            self._idle.pop().end()

    async def _ask(
        self, text: str, names: Iterable[str], variables: Mapping[str, Any] | None, owner: str | None
    ) -> Any | ExpressionFault:
        # Only what the text can mean is copied to the other process.
        used = tuple(sorted(name for name in names if name.rpartition(".")[2] in text))
        given = None if variables is None else {name: variables[name] for name in used}
        return await self._send(text, ExpressionRequest(text, used, given), owner)

    async def _send(self, text: str, asked: ExpressionRequest, owner: str | None) -> Any | ExpressionFault:
        if len(text) > LONGEST:
            return ExpressionFault(f"it has more than {LONGEST} characters", code="invalid-expression")
        message = _encode(asked)
        if len(message) > MOST_DATA:
            return ExpressionFault(f"its variables are larger than {MOST_DATA // 1024} KiB")
        if not self._turns.has_room(owner or ""):
            return ExpressionFault(
                "too many expressions wait to be evaluated; try again later", code="expressions-busy"
            )
        async with self._turns.take(owner or ""):
            told = await self._exchange(message)
        return told.value if told.code is None else ExpressionFault(told.message, code=told.code)

    async def _exchange(self, message: bytes) -> Evaluated:
        """Ask one of the processes. One that does not answer in time or at all is replaced."""
        while True:
            missing = None if self._idle else find_missing()
            if missing is not None:
                return Evaluated(code=UNAVAILABLE, message=missing)
            try:
                helper, is_new = await self._take()
            except (OSError, EOFError, TimeoutError) as error:
                return Evaluated(code=UNAVAILABLE, message=f"the process for expressions could not be started: {error}")
            keep = False
            try:
                async with asyncio.timeout(self._deadline):
                    told = _decode(await helper.exchange(message))
                keep = told.code != "expression-memory"
            except TimeoutError:
                return Evaluated(code="expression-timeout", message=f"it took longer than {self._deadline:g} s")
            except (OSError, EOFError, msgspec.MsgspecError):
                if not is_new:
                    continue  # it may have been killed while it was idle
                # The library itself ends the process if it gets no memory in some places.
                return Evaluated(
                    code="expression-memory", message="its process ended, for want of memory or by a signal"
                )
            finally:
                if keep:
                    self._idle.append(helper)
                else:
                    helper.end()
            return told

    async def _take(self) -> tuple[_ExpressionProcess, bool]:
        """Return a process, and whether it is new."""
        while self._idle:
            helper = self._idle.pop()
            if helper.process.poll() is None:
                return helper, False
            helper.end()
        helper = _ExpressionProcess()
        try:
            async with asyncio.timeout(_STARTING):
                await helper.receive()
        except BaseException:
            helper.end()
            raise
        return helper, True


def find_missing() -> str | None:
    """Return what a server lacks for expressions; None if it can evaluate them."""
    if sys.platform == "win32":
        return "a platform with process limits"
    if importlib.util.find_spec("cel_expr_python") is None:
        return "the CEL library (pip install 'bespeak[expressions]')"
    return None


class _ExpressionProcess:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                # No variable of the environment goes along: an expression must not find a secret in a core or a log.
                self.process = Popen(  # noqa: S603 - ourselves
                    [sys.executable, "-P", "-S", child.__file__],
                    stdin=theirs.fileno(),
                    stdout=DEVNULL,
                    stderr=DEVNULL,
                    env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                )
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        self._socket = ours

    async def exchange(self, message: bytes) -> bytes:
        """Send a message and receive the answer. Raises OSError or EOFError if the process is gone."""
        await asyncio.get_running_loop().sock_sendall(self._socket, HEAD.pack(len(message)) + message)
        return await self.receive()

    async def receive(self) -> bytes:
        (size,) = HEAD.unpack(await self._receive(HEAD.size))
        if size > MOST_RESULT:
            raise EOFError
        return await self._receive(size)

    async def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = await asyncio.get_running_loop().sock_recv(self._socket, size - len(parts))
            if not part:
                raise EOFError("it has ended")
            parts += part
        return bytes(parts)

    def end(self) -> None:
        """Kill the process and wait for its end, which is immediate."""
        self._socket.close()
        self.process.kill()
        self.process.wait()
