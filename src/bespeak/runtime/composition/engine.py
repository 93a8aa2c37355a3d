"""The engine: runs programs, which ask for calls and waits and are sent what becomes of them.

A program is a coroutine that awaits nothing but what it asks the engine for. The steps of a recipe, of CHAIN and BATCH,
and the functions of workflows are programs. How something is answered is up to the subclass: recipes call endpoints and
remember nothing; workflows look into their journal first.

The engine steps a program itself, so that a program needs no task, one that need not wait is not even a coroutine of
the event loop, and one that has to wait for days can be dropped and run again.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Generator, Sequence
from types import CoroutineType
from typing import Any, NamedTuple

import msgspec

Program = Coroutine["Asked", Any, Any]


class Asked(msgspec.Struct, eq=False):
    kind: str  # what answers it
    number: int  # place in the program, the same whenever the program runs again
    what: str = ""  # what is asked for, in words of the journal
    given: Any = None  # input
    more: Any = None  # whatever else its kind needs

    def __await__(self) -> Generator[Asked, Any, Any]:
        return (yield self)


class Failed(NamedTuple):
    """An answer that is raised in the program."""

    error: Exception


class Engine(ABC):
    __slots__ = ("scope",)

    scope: Any  # what the program that is being stepped belongs to: the whole, or one of several branches

    @abstractmethod
    def answer(self, asked: Asked, scope: Any) -> Any:
        """Return what becomes of something: a value, Failed, or a coroutine of either."""

    def advance(self, program: Program, scope: Any = None) -> Any:
        """Run a program; return its value, or a coroutine of it if the program has to wait."""
        given = None
        while True:
            try:
                asked = self._send(program, scope, given)
            except StopIteration as end:
                return end.value
            given = self.answer(asked, scope)
            if type(given) is CoroutineType:
                return self._continue(program, scope, given)

    async def _continue(self, program: Program, scope: Any, given: Any) -> Any:
        while True:
            if type(given) is CoroutineType:
                given = await given
            try:
                asked = self._send(program, scope, given)
            except StopIteration as end:
                return end.value
            given = self.answer(asked, scope)

    def _send(self, program: Program, scope: Any, given: Any) -> Asked:
        self.scope = scope
        return program.throw(given.error) if type(given) is Failed else program.send(given)

    def together(self, branches: Sequence[tuple[Program, Any]]) -> Any:
        """Run programs side by side, each with its scope; return their values in order, or a coroutine of them."""
        found = [self.advance(*branch) for branch in branches]
        return _gather(found) if any(type(one) is CoroutineType for one in found) else found


async def _gather(found: list[Any]) -> list[Any]:
    waiting = [index for index, one in enumerate(found) if type(one) is CoroutineType]
    for index, value in zip(waiting, await asyncio.gather(*(found[index] for index in waiting)), strict=True):
        found[index] = value
    return found
