"""Calls of steps: what a composition and the dispatcher know of each other."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from bespeak.runtime.route import Route

if TYPE_CHECKING:
    from bespeak.runtime.call import RoutedCall, StepCall

JOURNALED: Final = 1  # the answer is kept under the caller's idempotency key although the step changes nothing
APART: Final = 2  # the coroutine is awaited in a task of its own
UNDOES: Final = 4  # the step undoes an earlier one, because the composition has failed
AUTHORIZED: Final = 8  # the scopes of the composition include those of the step, so that its caller has them
VALID: Final = 16  # the input of the composition is also that of the step, and both have one schema
UNLIMITED: Final = 32  # the request has no Budget-Limit


class Steps(Protocol):
    """Calls endpoints for a composition; the dispatcher does it."""

    # Returns the step with its answer.
    def run_step(
        self, parent: RoutedCall, route: Route, given: dict[str, Any], path: str, number: str, *, flags: int = 0
    ) -> StepCall | Coroutine[Any, Any, StepCall]: ...
    async def recall(self, call: RoutedCall) -> bytes | None: ...  # what an earlier run with the same key has noted
    async def note(self, call: RoutedCall, verdict: bytes) -> None: ...  # the end, before the steps are undone


@dataclass(frozen=True, slots=True)
class ComposingMethod:
    """A built-in method that calls endpoints for its caller, as a composition does."""

    run: Callable[[Any, Steps], Coroutine[Any, Any, Any]]

    def __call__(self, call: Any, steps: Steps) -> Coroutine[Any, Any, Any]:
        return self.run(call, steps)
