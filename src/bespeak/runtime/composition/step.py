"""Calls of steps: what a composition and the dispatcher know of each other."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bespeak.protocol.exchange.messages import Response
from bespeak.runtime.route import Route
from bespeak.runtime.route_table import RouteTable

JOURNALED: Final = 1  # the answer is kept under the caller's idempotency key although the step changes nothing
APART: Final = 2  # the coroutine is awaited in a task of its own
UNDOES: Final = 4  # the step undoes an earlier one, because the composition has failed
AUTHORIZED: Final = 8  # the scopes of the composition include those of the step, so that its caller has them
VALID: Final = 16  # the input of the composition is also that of the step, and both have one schema
UNLIMITED: Final = 32  # the request has no Budget-Limit


class Composing(Protocol):
    """What the dispatcher knows of a composition that runs."""

    is_keyed: bool  # True if what the steps do is kept under the caller's idempotency key


class ComposedCall(Protocol):
    """A call of a composition."""

    method: str
    path: str
    input: dict[str, Any]
    route: Route
    routes: RouteTable

    @property
    def composing(self) -> Composing | None:
        """The state that its steps share."""
        ...


class Step(Protocol):
    """A step that has been called."""

    output: Any
    response: Response | None


class Steps(Protocol):
    """Calls endpoints for a composition; the dispatcher does it."""

    def run_step(
        self, parent: Any, route: Route, given: dict[str, Any], path: str, number: str, *, flags: int = 0
    ) -> Step | Coroutine[Any, Any, Step]:
        """Return the step with its answer, or a coroutine of it."""
        ...

    async def recall(self, call: Any) -> bytes | None:
        """Return what an earlier run with the same key has noted; None if it has not."""
        ...

    async def note(self, call: Any, verdict: bytes) -> None:
        """Note the end of a composition, before its steps are undone."""
        ...


@dataclass(frozen=True, slots=True)
class ComposingMethod:
    """A built-in method that calls endpoints for its caller, as a composition does."""

    run: Callable[[Any, Steps], Coroutine[Any, Any, Any]]

    def __call__(self, call: Any, steps: Steps) -> Coroutine[Any, Any, Any]:
        """Answer a call."""
        return self.run(call, steps)
