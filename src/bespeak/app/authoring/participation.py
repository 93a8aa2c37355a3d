"""Decorators by which functions of a service take part in standard methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bespeak.app.authoring.declarations import declaring
from bespeak.contract.endpoint import Endpoint, Impact
from bespeak.contract.participant import (
    CANCELS,
    CHECKS,
    ENTITY,
    LETTER,
    SOLD,
    EntityOptions,
    JoinedFunction,
    Participant,
    Price,
    QueueOptions,
    WorkflowOptions,
)
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.methods import STANDARD
from bespeak.errors import ContractError
from bespeak.runtime.bindings.participant import bind_participant, method_errors
from bespeak.runtime.functions.annotations import show_type
from bespeak.runtime.functions.needs import is_async
from bespeak.runtime.functions.reading import locate, parse_docstring, read_handler
from bespeak.runtime.functions.signature import read_signature
from bespeak.text.source.tree import Location

if TYPE_CHECKING:
    from bespeak.extensions.workflows.methods_run import WorkflowFunction

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _find_letter_fault(function: Callable[..., Any]) -> str | None:
    """Return why a function cannot take what is sent to a recipient; None if it can."""
    schema = read_handler(function).input_schema
    unknown = [name for name in schema.get("properties", {}) if name not in LETTER]
    if unknown:
        return f"it takes {', '.join(unknown)}; a message has {', '.join(LETTER)}"
    compiled = compile_schema(schema)
    given = {name: value for name, value in LETTER.items() if name in schema.get("properties", {})}
    violations = compiled.violations(given) if isinstance(compiled, Validator) else []
    return f"it does not take what a message has: {violations[0].message}" if violations else None


_Seller = TypeVar("_Seller", bound=type)
_SALE: Final = {"price": "PURCHASE", "fulfil": "PURCHASE", "refund": "CANCEL"}  # methods that these take part in


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
            # Imported here, because a service without reports does not load their extension.
            from bespeak.extensions.reports.report import Report  # noqa: PLC0415
            from bespeak.extensions.reports.sources import SOURCES  # noqa: PLC0415

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

    def sale(
        self,
        name: str,
        *,
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[_Seller], _Seller]:
        """Declare the decorated class as the seller of an item, which agents PURCHASE. It is returned unchanged.

        One instance is made, without arguments. Its methods take the same parameters, which are the input of the item,
        and run in the authority of the buyer:

        - `price` returns the `Price` of the item. PURCHASE charges it if the buyer's amount covers it, QUOTE tells it.
        - `fulfil` delivers the item while the money is held. What it returns is on the receipt. A Refusal or an
          exception releases the money.
        - `refund`, if there is one, takes the item back for CANCEL. It returns the `Price` that is given back, or is
          annotated with None and gives back what the buyer asks for. A Refusal leaves the purchase as it is.

        `fulfil` and `refund` may also take `sold: Sold`, the purchase with its Idempotency-Key, which is the same in
        every attempt. `scopes` are those that an agent needs to buy the item.
        """

        @declaring
        def declare(seller: _Seller) -> _Seller:
            try:
                functions = _find_functions(seller)
            except ContractError as error:
                raise ContractError(f"{_locate(seller)}: the sale {name[:80]!r} cannot be declared: {error}") from None
            for role, function in functions.items():
                fault = _find_sale_fault(role, function, functions["price"])
                if fault is not None:
                    what = f"{locate(function)}: the sale {name[:80]!r} cannot be declared"
                    raise ContractError(f"{what}: {role}() {fault}")
            joined = {
                role: JoinedFunction(
                    function=function,
                    method=_SALE[role],
                    impact="informational" if role == "price" else "irreversible",
                )
                for role, function in functions.items()
            }
            self._join(
                Participant(
                    kind="sale",
                    name=name,
                    functions=joined,
                    methods=("QUOTE", *dict.fromkeys(_SALE[role] for role in joined)),
                    description=description or parse_docstring(seller.__doc__).intent,
                    scopes=tuple(scopes),
                    errors=errors or {},
                )
            )
            return seller

        return declare

    def cancels(
        self, name: str, *, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as what CANCEL does with things of the service. It is returned unchanged.

        CANCEL offers it every id that is not a record of the server, in the order of declaration, and `name:ID` picks
        it. Its first parameter is the id; others are parameters of CANCEL: `reason`, `notify_parties`, `refund_policy`,
        `refund_amount`. It raises `Unknown` for an id that it does not know. What it returns is `details` of the
        receipt, and a member `refund` the refund. It may refuse with the errors of CANCEL, such as `already-cancelled`,
        and with its own. It is not offered anything of an agent that lacks one of its `scopes`.
        """
        participant = Participant(
            kind=CANCELS, name=name, functions={}, methods=("CANCEL",), scopes=tuple(scopes), errors=errors or {}
        )
        return self._declare_function(participant, "run", "CANCEL", "irreversible")

    def checks(
        self, name: str, *, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as what CHECK and MONITOR know of things of the service.

        It is offered ids as the functions of `cancels` are, and raises `Unknown` for one that it does not know. Its
        first parameter is the id, and it may take `depth`. What it returns is `details` of the answer, and its member
        `status` or `state` is the state, which MONITOR observes. It must change nothing.
        """
        participant = Participant(
            kind=CHECKS, name=name, functions={}, methods=("CHECK",), scopes=tuple(scopes), errors=errors or {}
        )
        return self._declare_function(participant, "run", "CHECK", "informational")

    def entity(
        self, name: str, *, model: Any, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None
    ) -> Callable[[_Function], _Function]:
        """Declare a type of entities, which agents REGISTER and read with QUERY /entities.

        `model` is a dataclass, a msgspec Struct, a pydantic model or a TypedDict. Data that it does not accept are
        refused with 422 and their places; what is read back is the accepted value. The owner of an entity reads it,
        and whoever holds the scope `name:read`. `scopes` are those that an agent needs to register.

        The result may decorate a function, which becomes the hook of the type: it takes an `EntityChange` before an
        entity is registered, transferred or cancelled. A Refusal stops the change. What the hook adds with its Context,
        such as `context.notify`, is one transaction with it.
        """

        async def read(data: Any) -> Any:
            return data

        read.__annotations__ = {"data": model, "return": model}
        participant = Participant(
            kind=ENTITY,
            name=name,
            functions={},
            methods=("REGISTER",),
            errors=errors or {},
            options=EntityOptions(scopes=tuple(scopes)),
        )
        self._declare_function(participant, "read", "REGISTER", "informational")(read)
        return self._declare_function(participant, "changed", "REGISTER", "irreversible")

    def _declare_function(
        self, participant: Participant, role: str, method: str, impact: Impact
    ) -> Callable[[_Function], _Function]:
        """Return the decorator that adds a participant with one function, or the function to one that is there."""

        @declaring
        def declare(function: _Function) -> _Function:
            joined = {role: JoinedFunction(function=function, method=method, impact=impact)}
            whole = replace(participant, functions=joined)
            same = [one for one in self._participants if (one.kind, one.name) == (whole.kind, whole.name)]
            if same and role == "changed" and role not in same[0].functions:
                self._participants.remove(same[0])
                whole = replace(same[0], functions={**same[0].functions, **joined})
            self._join(whole)
            return function

        return declare

    def recipient(
        self,
        name: str,
        *,
        retries: int = 5,
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as the receiver of what is sent to a name. It is returned unchanged.

        ALERT, NOTIFY, ESCALATE, DELEGATE and BROADCAST reach it under that name. Its parameters are those that it needs
        of `message` (the text), `content` (as it was sent), `kind`, `severity` (`info` unless it is an alert),
        `subject`, `sender`, `recipient` and `reference`, by which it can be answered. It runs at least once, in the
        authority of the sender, and the Idempotency-Key in `context.request.headers` is the same in every attempt. An
        exception is tried again up to `retries` times; a Refusal is final. `bespeak queues show @NAME` shows what
        failed for good. If `[people.NAME]` has a mail address, a mail is sent too.

        - `scopes` are those that an agent needs to send to the name.
        """

        @declaring
        def declare(function: _Function) -> _Function:
            options = QueueOptions(concurrency=4, retries=retries, lease=60.0, scopes=tuple(scopes))
            fault = options.find_fault() or _find_letter_fault(function)
            if fault is not None:
                raise ContractError(f"{locate(function)}: the recipient {name[:80]!r} cannot be declared: {fault}")
            self._join(
                Participant(
                    kind="recipient",
                    name=name,
                    functions={"run": JoinedFunction(function=function, method="NOTIFY", impact="reversible")},
                    methods=("ALERT",),
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
        every: str | None = None,
        missed: str = "once",
        timeout: float | timedelta = timedelta(days=30),
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[Callable[..., Any]], WorkflowFunction]:
        """Declare the decorated function as a workflow, which survives a crash. It takes a `Run` beside its input.

        Agents begin it with RUN, a handler with `context.start`, and it may be the handler of an endpoint:
        `app.endpoint("BOOK", "/trip", impact="reversible")(trip)`. After a crash the function runs again, and what it
        had awaited returns the noted results. It acts in the authority of whoever has begun it.

        - `every` is a schedule on which the service runs it by itself: `15 minutes`, `1 day at 02:00 Europe/Berlin`,
          `monday at 08:30 Europe/Paris`, or a cron text such as `0 2 * * 1-5 Europe/Berlin`. A parameter `planned` is
          given the time for which it runs; others need defaults.
        - `missed` tells what is done about times at which no server was there: `skip` leaves them out, `once` begins
          one run for all of them, and `all` one for each of the last 100.
        - `timeout` is the time that a run may take. What it did is undone then.
        - `scopes` are those that an agent needs to RUN it, and those with which a scheduled run acts.
        - `errors` are the names of the refusals that it raises, with what they mean.
        """

        def declare(function: Any, version: int) -> Any:
            from bespeak.extensions.workflows.methods_run import handler_of  # noqa: PLC0415 - loads the extension
            from bespeak.extensions.workflows.schedules import find_fault  # noqa: PLC0415

            seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
            options = WorkflowOptions(timeout=seconds, every=every, missed=missed)
            made: Any = None
            try:
                fault = options.find_fault() or (None if is_async(function) else "it is not an `async def`")
                made = handler_of(name, function)
                fault = fault or find_fault(options, made)
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
        errors = dict(participant.errors)
        for role, joined in participant.functions.items():
            bound = fault or bind_participant(participant, role, joined)
            bound = (
                bound if isinstance(bound, str) else _find_parameter_fault(participant.kind, role, bound[0]) or bound
            )
            if isinstance(bound, str):
                what = f"the {participant.kind} {participant.name[:80]!r} cannot be declared"
                place = "" if role == "read" else f"{locate(joined.function)}: "  # the reader of a model is ours
                raise ContractError(f"{place}{what}: {bound}")
            known = {error.name for error in method_errors(joined)}
            errors |= {error.name: error.description for error in bound[0].errors if error.name not in known}
        self._participants.append(replace(participant, errors=errors))


def _find_parameter_fault(kind: str, role: str, endpoint: Endpoint) -> str | None:
    """Return what is wrong with the parameters of a function; None if the method can give them."""
    properties = endpoint.input_schema.get("properties", {})
    if role == "changed":
        return None if len(properties) == 1 else "a hook takes one EntityChange, and perhaps a Context"
    if kind not in (CANCELS, CHECKS):
        return None
    takes, *more = [*properties] or [""]
    if properties.get(takes, {}).get("type") != "string":
        return "its first parameter must be the id, a text: write booking_id: str"
    if endpoint.output_schema.get("type") == "array":
        return "it must return one object"
    known = list(STANDARD[endpoint.method].parameters)[1:]
    unknown = next((name for name in more if name not in known), None)
    if unknown is not None:
        return f"{endpoint.method} has no parameter {unknown!r} to give to it; it has {', '.join(known)}"
    return None


def _find_functions(seller: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of a seller by role. Raises ContractError if one is missing."""
    missing = [role for role in ("price", "fulfil") if not callable(getattr(seller, role, None))]
    if not isinstance(seller, type) or missing:
        needed = "" if not isinstance(seller, type) else f"; {' and '.join(missing)} is missing"
        raise ContractError(f"decorate a class with the methods price and fulfil, and perhaps refund{needed}")
    try:
        instance = seller()
    except Exception as error:
        raise ContractError(f"its class must be callable without arguments: {error}") from error
    return {role: getattr(instance, role) for role in _SALE if callable(getattr(seller, role, None))}


def _find_sale_fault(role: str, function: Callable[..., Any], price: Callable[..., Any]) -> str | None:
    """Return what is wrong with a function of a sale; None if it can take part."""
    try:
        own, asked = read_signature(function), read_signature(price)
    except ContractError as error:
        return f"cannot be read: {error}"
    if own.yields:
        return "must return a value; it yields"
    allowed = {"price": (Price,), "refund": (Price, NoneType)}.get(role)
    if allowed is not None and own.returns not in allowed:
        return f"must be annotated with -> Price{' or -> None' * (role == 'refund')}; got {show_type(own.returns)}"
    taken, needed = (
        {one.name: (one.annotation, one.default) for one in signature.parameters if one.name != SOLD or role == "price"}
        for signature in (own, asked)
    )
    if SOLD in needed:
        return f"must not take {SOLD!r}: nothing is sold yet"
    differing = sorted(name for name in {*taken, *needed} if taken.get(name) != needed.get(name))
    if differing:
        return f"must take the parameters of price(), with the same types and defaults; {', '.join(differing)} differ"
    return None


def _locate(seller: Any) -> Location | None:
    try:
        return Location(inspect.getsourcefile(seller) or "", inspect.getsourcelines(seller)[1])
    except (OSError, TypeError):
        return locate(seller)
