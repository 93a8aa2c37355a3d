"""Commands that run together, and the future that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from bespeak.state.store.command import Command, Conflict, Rows, Seal, Sealed, Statement
from bespeak.state.store.store import Then


class Unit:
    """The commands of one transaction."""

    __slots__ = ("commands", "future", "outcome", "then", "topics")

    def __init__(self, commands: Sequence[Command], then: Then | None, future: asyncio.Future[Any]) -> None:
        self.commands = commands
        self.then = then
        self.future = future
        self.outcome: Sequence[Any] | Conflict | BaseException = ()
        self.topics: set[str] = set()

    @property
    def needs_savepoint(self) -> bool:
        """True if it may end in a conflict after something was written."""
        return self.then is not None or (
            len(self.commands) > 1 and any(command.guards for command in self.commands[1:])
        )

    def settle(self) -> None:
        """Settle the future, in its loop."""
        if self.future.done():  # whoever waited has gone
            return
        if isinstance(self.outcome, BaseException):
            self.future.set_exception(self.outcome)
        else:
            self.future.set_result(self.outcome)


def run_unit(
    unit: Unit, execute: Callable[[Statement], Rows], seal: Callable[[Seal], Sealed]
) -> Sequence[Any] | Conflict:
    """Run the commands of a unit on a database that answers at once."""
    topics = unit.topics
    topics.clear()  # an earlier attempt may have left some
    results = []
    for command in unit.commands:
        result = run_command(command, topics, execute, seal)
        if type(result) is Conflict:
            return result
        results.append(result)
    if unit.then is not None:
        for command in unit.then(results):
            result = run_command(command, topics, execute, seal)
            if type(result) is Conflict:
                return result
            results.append(result)
    return results


def run_command(
    command: Command, topics: set[str], execute: Callable[[Statement], Rows], seal: Callable[[Seal], Sealed]
) -> Any:
    """Run one command."""
    program = command.steps()
    given: Any = None
    try:
        while True:
            step = program.send(given)
            if isinstance(step, Statement):
                given = execute(step)
            elif isinstance(step, Seal):
                given = seal(step)
            else:
                topics.add(step.topic)
                given = None
    except StopIteration as end:
        return end.value
