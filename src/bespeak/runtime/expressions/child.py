"""The process that evaluates expressions, with bounded memory. A program: it imports nothing else of bespeak."""

from __future__ import annotations

import base64
import math
import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec

MEMORY: Final = 600 * 1024 * 1024
"""Limit of the address space: strings can be doubled, and the library has no limit of its own for that."""
HEAD: Final = struct.Struct("!I")  # length of a message, which comes before it
MOST_RESULT: Final = 1024 * 1024  # maximum bytes of a result as JSON
READY: Final = b"ready"
_KEPT: Final = 256  # compiled expressions that are kept
_DEEPEST: Final = 64


class ExpressionRequest(msgspec.Struct):
    """One request: to evaluate an expression, or only to compile it if `variables` is None."""

    text: str
    names: tuple[str, ...]
    variables: dict[str, Any] | None = None
    rows: list[dict[str, Any]] | None = None
    """Variables of many evaluations, whose value is a list of pairs: a value and None, or None and a message."""


class Evaluated(msgspec.Struct, omit_defaults=True):
    """The answer: a value, or a code and a message."""

    value: Any = None
    code: str | None = None
    message: str = ""


class Evaluator:
    def __init__(self) -> None:
        from cel_expr_python import cel  # type: ignore[import-untyped] # noqa: PLC0415 - an extra, and large

        self._cel: Any = cel
        self._compile = lru_cache(_KEPT)(self._compiled)

    def answer(self, asked: ExpressionRequest) -> Evaluated:
        """Answer a request; whatever an expression does, the answer says it."""
        try:
            program = self._compile(asked.text, asked.names)
        except RuntimeError as error:
            return Evaluated(code="invalid-expression", message=_first_line(error))
        if asked.rows is not None:
            return Evaluated([self._evaluate(program, row) for row in asked.rows])
        if asked.variables is None:
            return Evaluated()
        value, failure = self._evaluate(program, asked.variables)
        return Evaluated(value) if failure is None else Evaluated(code="expression-failed", message=failure)

    def _evaluate(self, program: Any, variables: dict[str, Any]) -> tuple[Any, str | None]:
        """Return the value of a program, or why it has none."""
        try:
            found = program.eval(data=variables)
            if found.type() == self._cel.Type.ERROR:
                return None, _first_line(found.value())
            return plain(found.plain_value()), None
        except (RuntimeError, ValueError, TypeError) as error:
            return None, _first_line(error)

    def _compiled(self, text: str, names: tuple[str, ...]) -> Any:
        return self._cel.NewEnv(variables=dict.fromkeys(names, self._cel.Type.DYN)).compile(text)


def plain(value: Any, depth: int = 0) -> Any:
    """Return a result as JSON has it, as CEL's mapping to JSON says; raises ValueError if that is not possible."""
    if depth > _DEEPEST:
        raise ValueError(f"the result is nested more than {_DEEPEST} levels deep")
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"the result {value} is not a number in JSON")
        return value
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        names = [str(name).lower() if isinstance(name, bool) else str(name) for name in value]
        return {name: plain(one, depth + 1) for name, one in zip(names, value.values(), strict=True)}
    if isinstance(value, Sequence):
        return [plain(one, depth + 1) for one in value]
    return str(value)  # a type, such as int


def _first_line(error: Any) -> str:
    """Return the first line of a message of the library, without the words that it puts around it."""
    line = str(error).partition("\n")[0].removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
    return line.removeprefix("ERROR: <input>:")[:500]


def respond(evaluator: Evaluator, message: bytes) -> tuple[bytes, bool]:
    """Return the answer to a message, and whether this process can go on."""
    goes_on = True
    try:
        answer = msgspec.json.encode(evaluator.answer(msgspec.json.decode(message, type=ExpressionRequest)))
        if len(answer) <= MOST_RESULT:
            return answer, goes_on
        told = Evaluated(code="expression-failed", message=f"the result is larger than {MOST_RESULT // 1024} KiB")
    except MemoryError:
        # The rest of what it took may stay taken, so that this process ends.
        told, goes_on = Evaluated(code="expression-memory", message="it needs too much memory"), False
    except (msgspec.MsgspecError, RecursionError, OverflowError) as error:
        told = Evaluated(code="expression-failed", message=_first_line(error))
    return msgspec.json.encode(told), goes_on


def main() -> None:
    """Answer messages on standard input, a socket, until the server closes it or dies."""
    import resource  # noqa: PLC0415 - not on every platform

    evaluator = Evaluator()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=os.dup(0)) as server:
        send(server, READY)
        while (message := receive(server)) is not None:
            answer, goes_on = respond(evaluator, message)
            send(server, answer)
            if not goes_on:
                break


def send(server: socket.socket, message: bytes) -> None:
    server.sendall(HEAD.pack(len(message)) + message)


def receive(server: socket.socket) -> bytes | None:
    head = server.recv(HEAD.size, socket.MSG_WAITALL)
    if len(head) < HEAD.size:
        return None
    (size,) = HEAD.unpack(head)
    message = server.recv(size, socket.MSG_WAITALL)
    return message if len(message) == size else None


if __name__ == "__main__":
    try:
        main()
    except (OSError, KeyboardInterrupt):
        sys.exit(0)  # the server is gone
