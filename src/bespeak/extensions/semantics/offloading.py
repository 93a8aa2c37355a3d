"""Work on documents of agents beside the event loop: a big one in a process of its own, so that calls do not wait."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import Any, Final, TypeVar

import msgspec

from bespeak.extensions.semantics.terms import Ontology

SMALL: Final = 32 * 1024  # bytes of a document that a thread reads in some hundredths of a second
_DEADLINE: Final = 300.0  # seconds after which a process is killed; the largest document takes about a minute
_PART: Final = 200  # terms of an ontology that are taken over at once, in a millisecond or two
_SWITCH: Final = 0.0005  # seconds after which a thread hands over the interpreter; it is ten times as many by default

Result = TypeVar("Result")
_busy: list[float] = []  # earlier intervals of the threads that work now


async def run_beside(function: Callable[..., Result], *arguments: Any, size: int) -> Result:
    """Call a function of a module, whose arguments and result can be pickled, for documents of some bytes together.

    Raises ChildProcessError if the process ends without a result: it took too long, or had not enough memory.
    """
    if size <= SMALL:
        return await run_in_thread(function, *arguments)
    child = _WorkerProcess(pickle.dumps((function, arguments)))
    try:
        told = await asyncio.to_thread(child.run)
    except TimeoutExpired:
        raise ChildProcessError(f"{function.__name__} took longer than {_DEADLINE:g} s") from None
    finally:
        child.end()
    if told is None:
        raise ChildProcessError(f"the process of {function.__name__} ended without a result")
    return await _take_over(told)  # type: ignore[no-any-return]  # what the function returned


class _WorkerProcess:
    """One process; a thread waits for it, which costs nothing, and may outlive a call that is cancelled."""

    def __init__(self, work: bytes) -> None:
        self._work = work
        self._process: Popen[bytes] | None = None
        self._ended = False

    def run(self) -> bytes | None:
        search = os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", ""))))
        line = [sys.executable, "-P", "-m", __name__]
        with Popen(line, stdin=PIPE, stdout=PIPE, env={**os.environ, "PYTHONPATH": search}) as process:  # noqa: S603
            self._process = process
            try:
                if self._ended:
                    return None
                told, _ = process.communicate(self._work, _DEADLINE)
            finally:
                process.kill()
        return told if process.returncode == 0 else None

    def end(self) -> None:
        self._ended = True
        if self._process is not None:
            self._process.kill()


async def run_in_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a thread that hands over the interpreter often."""
    if not _busy:
        _busy.append(sys.getswitchinterval())
        sys.setswitchinterval(_SWITCH)
    _busy.append(0.0)
    try:
        return await asyncio.to_thread(function, *arguments)
    finally:
        _busy.pop()
        if len(_busy) == 1:
            sys.setswitchinterval(_busy.pop())


async def _take_over(told: bytes) -> Any:
    """Read a result part by part; between two parts, other calls go on."""
    parts = memoryview(told)
    found: Any = None
    terms: dict[str, Any] = {}
    while parts:
        size = int.from_bytes(parts[:8])
        # Our own process has written it, with no other rights than this one has.
        part = pickle.loads(parts[8 : 8 + size])  # noqa: S301
        parts = parts[8 + size :]
        if isinstance(found, Ontology):
            terms |= part
        else:
            found = part
        await asyncio.sleep(0)
    return msgspec.structs.replace(found, terms=terms) if isinstance(found, Ontology) else found


def _parts(result: Any) -> Iterator[Any]:
    if not isinstance(result, Ontology):
        yield result
        return
    yield msgspec.structs.replace(result, terms={})
    terms = list(result.terms.items())
    yield from (dict(terms[start : start + _PART]) for start in range(0, len(terms), _PART))


def main() -> None:
    """Do the work that standard input names, and write the result to standard output."""
    if hasattr(os, "nice"):
        os.nice(5)
    function, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    for part in _parts(function(*arguments)):
        written = pickle.dumps(part)
        sys.stdout.buffer.write(len(written).to_bytes(8) + written)


if __name__ == "__main__":
    main()
