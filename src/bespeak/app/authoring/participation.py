"""Decorators by which functions of a service take part in standard methods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from bespeak.app.authoring.declarations import declaring
from bespeak.contract.endpoint import Impact
from bespeak.contract.participant import JoinedFunction, Participant, QueueOptions, WorkflowOptions
from bespeak.errors import ContractError
from bespeak.runtime.bindings.participant import bind_participant
from bespeak.runtime.functions.needs import is_async
from bespeak.runtime.functions.reading import locate

if TYPE_CHECKING:
    from bespeak.extensions.workflows.methods_run import WorkflowFunction

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Participation:
    """The part of `App` that declares participants: each decorator builds one and gives it to `_join`."""

    _participants: list[Participant]
    _overrides: dict[Hashable, Callable[..., Any]]

    def queue(
        self,
        name: str,
        *,
        concurrency: int = 4,
        retries: int = 5,
        lease: float = 60.0,
        impact: Impact = "reversible",
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as the worker of a queue, to which agents SUBMIT. It is returned unchanged.

        Its parameters are the payload. Each item runs at least once, in the authority of the agent that submitted it,
        and the Idempotency-Key in `context.request.headers` is the same in every attempt. An exception is tried again
        after a growing pause, up to `retries` times; a Refusal is final.

        - `concurrency` is the number of items that one process works on at the same time.
        - `lease` is the number of seconds after which another process takes over the item of one that has died.
        - `scopes` are those that an agent needs to use the queue.
        """

        @declaring
        def declare(function: _Function) -> _Function:
            options = QueueOptions(concurrency=concurrency, retries=retries, lease=lease, scopes=tuple(scopes))
            fault = options.find_fault()
            if fault is not None:
                raise ContractError(f"{locate(function)}: the queue {name[:80]!r} cannot be declared: {fault}")
            self._join(
                Participant(
                    kind="queue",
                    name=name,
                    functions={"run": JoinedFunction(function=function, method="SUBMIT", impact=impact)},
                    methods=("SUBMIT",),
                    description=description,
                    errors=errors or {},
                    options=options,
                )
            )
            return function

        return declare

    def workflow(
        self,
        name: str,
        *,
        timeout: float | timedelta = timedelta(days=30),
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[Callable[..., Any]], WorkflowFunction]:
        """Declare the decorated function as a workflow, which survives a crash. It takes a `Run` beside its input.

        Agents begin it with RUN, a handler with `context.start`, and it may be the handler of an endpoint:
        `app.endpoint("BOOK", "/trip", impact="reversible")(trip)`. After a crash the function runs again, and what it
        had awaited returns the noted results. It acts in the authority of whoever has begun it.

        - `timeout` is the time that a run may take. What it did is undone then.
        - `scopes` are those that an agent needs to RUN it.
        - `errors` are the names of the refusals that it raises, with what they mean.
        """

        def declare(function: Any, version: int) -> Any:
            from bespeak.extensions.workflows.methods_run import handler_of  # noqa: PLC0415 - loads the extension

            seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
            options = WorkflowOptions(timeout=seconds)
            made: Any = None
            try:
                fault = options.find_fault() or (None if is_async(function) else "it is not an `async def`")
                made = handler_of(name, function)
            except ContractError as error:
                fault = str(error)
            old = next((one for one in self._participants if (one.kind, one.name) == ("workflow", name)), None)
            if version > 1 and (old is None or str(version) in old.functions):
                fault = f"version {version} exists already"
            if fault is not None:
                raise ContractError(f"{locate(function)}: the workflow {name[:80]!r} cannot be declared: {fault}")
            functions = {} if old is None or version == 1 else old.functions
            if old is not None and version > 1:
                self._participants.remove(old)
            self._join(
                Participant(
                    kind="workflow",
                    name=name,
                    functions={**functions, str(version): JoinedFunction(function=function, method="RUN")},
                    methods=("RUN",),
                    description=description,
                    scopes=tuple(scopes),
                    errors=errors or {},
                    options=options,
                )
            )
            made.workflow, made.function = name, function
            made.version = lambda number: declaring(lambda later: declare(later, number))
            return made

        return declaring(lambda function: declare(function, 1))

    def _join(self, participant: Participant) -> None:
        """Add a participant. Raises ContractError if it cannot take part, with the place of its first function."""
        participant = replace(participant, overrides=self._overrides)
        fault = participant.find_fault(self._participants)
        for role, joined in participant.functions.items():
            bound = fault or bind_participant(participant, role, joined)
            if isinstance(bound, str):
                what = f"the {participant.kind} {participant.name[:80]!r} cannot be declared"
                raise ContractError(f"{locate(joined.function)}: {what}: {bound}")
        self._participants.append(participant)
