"""Decorators by which functions of a service take part in standard methods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bespeak.app.authoring.declarations import declaring
from bespeak.contract.endpoint import Impact
from bespeak.contract.participant import JoinedFunction, Participant, QueueOptions
from bespeak.errors import ContractError
from bespeak.extensions.reports.report import Report
from bespeak.runtime.bindings.participant import bind_participant
from bespeak.runtime.functions.reading import locate
from bespeak.runtime.functions.signature import read_signature

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

    def report(
        self,
        name: str,
        *,
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as a report, which agents ask for with REPORT. It is returned unchanged.

        It returns rows (a list of dataclasses, models or dicts), or a `Report` with text, figures, charts and tables.
        Agents get it as PDF, HTML, Markdown or JSON. It runs in the authority of the agent that asks for it.

        Its parameters are the filters of the scope. Parameters `start` and `end` with dates or times are its range.

        - `scopes` are those that an agent needs to ask for the report.
        """

        @declaring
        def declare(function: _Function) -> _Function:
            from bespeak.extensions.reports.sources import SOURCES  # noqa: PLC0415 - loads other extensions

            joined = JoinedFunction(function=function, method="REPORT", impact="informational")
            participant = Participant(
                kind="report",
                name=name,
                functions={"report": joined},
                methods=("REPORT",),
                description=description,
                scopes=tuple(scopes),
                errors=errors or {},
            )
            bound = bind_participant(participant, "report", joined)
            fault = "every server has a report of this name" if name in SOURCES else None
            returns = {} if isinstance(bound, str) else bound[0].output_schema
            if returns.get("type") != "array" and returns and read_signature(function).returns is not Report:
                fault = "it must return a list of rows, or a Report"
            if fault is not None:
                raise ContractError(f"{locate(function)}: the report {name[:80]!r} cannot be declared: {fault}")
            self._join(participant)
            return function

        return declare

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
