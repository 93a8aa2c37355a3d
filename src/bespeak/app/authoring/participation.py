"""Decorators by which functions of a service take part in standard methods."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from bespeak.app.authoring.declarations import declaring
from bespeak.contract.endpoint import Endpoint, Impact
from bespeak.contract.participant import (
    CANCELS,
    CHANNEL,
    CHECKS,
    ENTITY,
    LETTER,
    SINK,
    SOLD,
    SOURCE,
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
from bespeak.runtime.functions.reading import locate, parse_docstring
from bespeak.runtime.functions.signature import read_hints, read_signature
from bespeak.text.source.tree import Location

if TYPE_CHECKING:
    from bespeak.extensions.workflows.methods_run import WorkflowFunction

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Seller = TypeVar("_Seller", bound=type)
_SALE: Final = {"price": "PURCHASE", "fulfil": "PURCHASE", "refund": "CANCEL"}  # methods that these take part in


class Participation:
    """The part of `App` that declares participants. What each kind checks is in `_CHECKS`."""

    _participants: list[Participant]
    _overrides: dict[Hashable, Callable[..., Any]]

    def queue(
        self,
        name: str,
        *,
        model: Any = None,
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

        - `impact` is what an item does. SUBMIT has the worst one of all queues.
        - `concurrency` is the number of items that one process works on at the same time.
        - `lease` is the number of seconds after which another process takes over the item of one that has died.
        - `scopes` are those that an agent needs to use the queue.
        - `model` is the type of the payload of a queue on which agents work with PULL, if they hold the scope
          `NAME:pull`. Call `app.queue("orders", model=Order)` as it is: such a queue has no function.
        """
        options = QueueOptions(concurrency=concurrency, retries=retries, lease=lease, scopes=tuple(scopes))
        details: dict[str, Any] = {"errors": errors, "description": description, "options": options}
        if model is not None:
            pulled = {**details, "methods": ("SUBMIT", "PULL")}
            self._add_one("queue", name, "SUBMIT", "informational", role="read", **pulled)(_reader_of(model))
        return self._add_one("queue", name, "SUBMIT", impact, **details)

    def formula(self, name: str, formula: Mapping[str, Any], *, description: str = "") -> None:
        """Declare a formula for CALCULATE, which agents name as `{"formula": NAME}`; it is checked now.

        It has the form of those that agents send: `{"multiply": [{"input": "net"}, "1.19"]}`.
        """
        # Imported here, because a service without formulas does not load their extension.
        from bespeak.extensions.compute.formula import FormulaError, compute  # noqa: PLC0415

        made = Participant(kind="formula", name=name, functions={}, methods=("CALCULATE",), options=deepcopy(formula))
        fault = made.find_fault(self._participants)
        try:
            compute(formula, None)
        except FormulaError as error:
            fault = fault or str(error)
        if fault is not None:
            raise ContractError(f"the formula {name[:80]!r} cannot be declared: {fault}")
        self._participants.append(replace(made, description=description))

    def report(
        self, name: str, *, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None, description: str = ""
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as a report, which agents ask for with REPORT. It is returned unchanged.

        It returns rows (a list of dataclasses, models or dicts), or a `Report` with text, figures, charts and tables.
        Agents get it as PDF, HTML, Markdown or JSON. It runs in the authority of the agent that asks for it.

        Its parameters are the filters of the scope. Parameters `start` and `end` with dates or times are its range.

        - `scopes` are those that an agent needs to ask for the report.
        """
        return self._add_one(
            "report", name, "REPORT", "informational", errors=errors, scopes=scopes, description=description
        )

    def model(
        self,
        name: str,
        *,
        onnx: str | Path | None = None,
        input: Any = None,  # noqa: A002 - what it is for who calls it
        baseline: Mapping[str, Any] | None = None,
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as a model, which agents ask with PREDICT. It is returned unchanged.

        Its parameters are the members of one row of input. It returns a number, a label (a text, a Literal, a flag), or
        a `Prediction` with its confidence. It runs in the authority of the agent that asks, and must change nothing.

        - `onnx` is an ONNX file instead of a function. `input` is the type of a row, or the decorated class is. A
          relative path is resolved against the calling file. The file is read once, here. It needs the extra `onnx`.
        - `baseline` has values of members with which predictions are compared to explain them.
        - `scopes` are those that an agent needs to use the model.
        """
        caller = sys._getframe(1).f_globals.get("__file__", "")

        def declare(subject: Any) -> Any:
            # Imported here, because a service without models does not load their extension.
            from bespeak.extensions.compute.models import ModelOptions, in_batches, load_onnx  # noqa: PLC0415

            prose = parse_docstring(inspect.getdoc(subject) if onnx is None else None)
            try:
                made = in_batches(subject) if onnx is None else load_onnx(Path(caller).parent / onnx, subject)
            except ContractError as error:
                place = f"{locate(subject)}: " if onnx is None else ""
                raise ContractError(f"{place}the model {name[:80]!r} cannot be declared: {error}") from None
            options = ModelOptions(made[1], baseline or {})
            unknown = next((member for member in options.baseline if member not in options.members), None)
            if unknown is not None:
                raise ContractError(
                    f"the model {name[:80]!r} has a baseline for {unknown!r}, which is not in its input"
                )
            more: dict[str, Any] = {"errors": {**prose.errors, **(errors or {})}, "scopes": scopes, "options": options}
            more["description"] = description or prose.intent
            self._add_one("model", name, "PREDICT", "informational", **more)(made[0])
            return subject

        if onnx is not None and input is not None:
            declaring(declare)(input)
        return declaring(declare)

    def extractor(
        self, name: str, *, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None, description: str = ""
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as an extractor, which EXTRACT uses for this name. It is returned unchanged.

        It takes one text and returns one object, such as a dataclass; what it leaves None was not found. It runs in the
        authority of the agent that calls EXTRACT.
        """
        return self._add_one(
            "extractor", name, "EXTRACT", "informational", errors=errors, scopes=scopes, description=description
        )

    def template(
        self, name: str, *, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None, description: str = ""
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as a template, which GENERATE fills for this name. It is returned unchanged.

        Its one parameter is the source; it returns a text, or an object or a list for JSON. The same source must give
        the same result. For HTML, the texts of the source are escaped before. It runs in the authority of the agent
        that calls GENERATE.
        """

        @declaring
        def declare(function: _Function) -> _Function:
            is_text = read_signature(function).returns is str
            more: dict[str, Any] = {"description": description, "options": "text" if is_text else None}
            add = self._add_one("template", name, "GENERATE", "informational", errors=errors, scopes=scopes, **more)
            add(_returning_object(function) if is_text else function)
            return function

        return declare

    def sale(
        self, name: str, *, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None, description: str = ""
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
            joined = {
                role: JoinedFunction(
                    function=function, method=_SALE[role], impact="informational" if role == "price" else "irreversible"
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
        return self._add_one(CANCELS, name, "CANCEL", "irreversible", errors=errors, scopes=scopes)

    def checks(
        self, name: str, *, scopes: Sequence[str] = (), errors: Mapping[str, str] | None = None
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as what CHECK and MONITOR know of things of the service.

        It is offered ids as the functions of `cancels` are, and raises `Unknown` for one that it does not know. Its
        first parameter is the id, and it may take `depth`. What it returns is `details` of the answer, and its member
        `status` or `state` is the state, which MONITOR observes. It must change nothing.
        """
        return self._add_one(CHECKS, name, "CHECK", "informational", errors=errors, scopes=scopes)

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
        options, read = EntityOptions(scopes=tuple(scopes)), _reader_of(model)
        self._add_one(ENTITY, name, "REGISTER", "informational", role="read", errors=errors, options=options)(read)
        return self._add_one(ENTITY, name, "REGISTER", "irreversible", role="changed", errors=errors, options=options)

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
        queue = QueueOptions(concurrency=4, retries=retries, lease=60.0, scopes=tuple(scopes))
        more: dict[str, Any] = {"methods": ("ALERT",), "description": description, "options": queue}
        return self._add_one("recipient", name, "NOTIFY", "reversible", errors=errors, **more)

    def channel(
        self,
        name: str,
        *,
        impact: Impact = "reversible",
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        description: str = "",
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as an end of connections, `channel:NAME`. It is returned unchanged.

        A function that yields is a source. If it has a parameter `after`, it gets the last item that was delivered, or
        None, and yields what comes behind it: so nothing is lost when its process ends. A function with one parameter
        is a sink: it takes an item, runs at least once in the authority of whoever made the connection, and the
        Idempotency-Key in `context.request.headers` is the same in every attempt. A Refusal leaves the item out, any
        other exception is tried again.

        - `impact` is what an item does to a sink. CONNECT has the worst one of all sinks.
        - `scopes` are those that an agent needs to connect it.
        """

        @declaring
        def declare(function: _Function) -> _Function:
            yields = read_signature(function).yields
            role, does = (SOURCE, "informational") if yields else (SINK, impact)
            more: dict[str, Any] = {"errors": errors, "scopes": scopes, "description": description}
            return self._add_one(CHANNEL, name, "CONNECT", cast("Impact", does), role=role, **more)(function)

        return declare

    def _add_one(
        self,
        kind: str,
        name: str,
        method: str,
        impact: Impact,
        *,
        role: str = "run",
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | None = None,
        **details: Any,
    ) -> Callable[[_Function], _Function]:
        """Return the decorator that adds a participant with one function, or the hook to an entity that is there."""

        @declaring
        def declare(function: _Function) -> _Function:
            functions = {role: JoinedFunction(function=function, method=method, impact=impact)}
            same = [one for one in self._participants if (one.kind, one.name) == (kind, name)]
            if same and role == "changed" and role not in same[0].functions:
                self._participants.remove(same[0])
                functions = {**same[0].functions, **functions}
            members = {"methods": (method,), "scopes": tuple(scopes), "errors": errors or {}, **details}
            self._join(Participant(kind=kind, name=name, functions=functions, **members))
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
        """Add a participant. Raises ContractError if it cannot take part, with the place of the function at fault."""
        participant = replace(participant, overrides=self._overrides)
        fault = participant.find_fault(self._participants)
        errors = dict(participant.errors)
        for role, joined in participant.functions.items():
            bound = fault or _find_sale_fault(participant, role) or bind_participant(participant, role, joined)
            if participant.kind in _CHECKS and not isinstance(bound, str):
                bound = _CHECKS[participant.kind](participant, role, bound[0]) or bound
            if isinstance(bound, str):
                what = f"the {participant.kind} {participant.name[:80]!r} cannot be declared"
                place = "" if role == "read" else f"{locate(joined.function)}: "  # the reader of a model is ours
                raise ContractError(f"{place}{what}: {bound}")
            known = {error.name for error in method_errors(joined)}
            errors |= {error.name: error.description for error in bound[0].errors if error.name not in known}
        self._participants.append(replace(participant, errors=errors))


def _reader_of(model: Any) -> Callable[..., Any]:
    """Return a function that takes data of a model, and returns them as the model has accepted them."""

    async def read(data: Any) -> Any:
        return data

    read.__annotations__ = {"data": model, "return": model}
    return read


def _find_letter_fault(_participant: Participant, _role: str, endpoint: Endpoint) -> str | None:
    """Return why a function cannot take what is sent to a recipient; None if it can."""
    schema = endpoint.input_schema
    unknown = [name for name in schema.get("properties", {}) if name not in LETTER]
    if unknown:
        return f"it takes {', '.join(unknown)}; a message has {', '.join(LETTER)}"
    compiled = compile_schema(schema)
    given = {name: value for name, value in LETTER.items() if name in schema.get("properties", {})}
    violations = compiled.violations(given) if isinstance(compiled, Validator) else []
    return f"it does not take what a message has: {violations[0].message}" if violations else None


def _find_channel_fault(_participant: Participant, role: str, endpoint: Endpoint) -> str | None:
    taken = list(endpoint.input_schema.get("properties", {}))
    if role == SINK:
        return None if len(taken) == 1 else "a sink takes one item, and perhaps a Context; a source yields items"
    if taken not in ([], ["after"]) or endpoint.input_schema.get("required"):
        return "a source takes nothing but `after`, the last item that was delivered, with the default None"
    return None


def _find_report_fault(participant: Participant, role: str, endpoint: Endpoint) -> str | None:
    # Imported here, because a service without reports does not load their extension.
    from bespeak.extensions.reports.report import SOURCES, Report  # noqa: PLC0415

    returns = endpoint.output_schema
    is_report = read_signature(participant.functions[role].function).returns is Report
    if returns and returns.get("type") != "array" and not is_report:
        return "it must return a list of rows, or a Report"
    return "every server has a report of this name" if participant.name in SOURCES else None


def _returning_object(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose result is an object with the text of the given one, as results of calls are."""

    @wraps(function)
    def fill(*given: Any, **named: Any) -> Any:
        return {"content": function(*given, **named)}

    @wraps(function)
    async def fill_later(*given: Any, **named: Any) -> Any:
        return {"content": await function(*given, **named)}

    made: Callable[..., Any] = fill_later if is_async(function) else fill
    made.__annotations__ = {**read_hints(function), "return": dict[str, str]}
    return made


def _find_source_fault(participant: Participant, _role: str, endpoint: Endpoint) -> str | None:
    """Return why a function cannot be an extractor or a template; None if it can."""
    taken, returns = list(endpoint.input_schema.get("properties", {}).values()), endpoint.output_schema
    if len(taken) != 1 or (participant.kind == "extractor" and taken[0].get("type") != "string"):
        return "it must take one parameter" + (", a text: write text: str" * (participant.kind == "extractor"))
    if participant.kind == "extractor" and "properties" not in returns:
        return "it must return one object with declared fields, such as a dataclass"
    return None


def _find_hook_fault(_participant: Participant, role: str, endpoint: Endpoint) -> str | None:
    fits = role == "read" or len(endpoint.input_schema.get("properties", {})) == 1
    return None if fits else "a hook takes one EntityChange, and perhaps a Context"


def _find_parameter_fault(_participant: Participant, _role: str, endpoint: Endpoint) -> str | None:
    """Return what is wrong with the parameters of a function that is offered ids; None if the method has them."""
    properties = endpoint.input_schema.get("properties", {})
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


def _find_sale_fault(participant: Participant, role: str) -> str | None:
    """Return what is wrong with a function of a sale; None if it can take part, or is not one of a sale."""
    if participant.kind != "sale":
        return None
    try:
        own, asked = (read_signature(participant.functions[one].function) for one in (role, "price"))
    except ContractError as error:
        return f"{role}() cannot be read: {error}"
    if own.yields:
        return f"{role}() must return a value; it yields"
    allowed = {"price": (Price,), "refund": (Price, NoneType)}.get(role)
    if allowed is not None and own.returns not in allowed:
        either = " or -> None" * (role == "refund")
        return f"{role}() must be annotated with -> Price{either}; got {show_type(own.returns)}"
    taken, needed = (
        {one.name: (one.annotation, one.default) for one in signature.parameters if one.name != SOLD or role == "price"}
        for signature in (own, asked)
    )
    if SOLD in needed:
        return f"{role}() must not take {SOLD!r}: nothing is sold yet"
    differing = ", ".join(sorted(name for name in {*taken, *needed} if taken.get(name) != needed.get(name)))
    if differing:
        return f"{role}() must take the parameters of price(), with the same types and defaults; {differing} differ"
    return None


_CHECKS: Final[Mapping[str, Callable[[Participant, str, Endpoint], str | None]]] = {
    "recipient": _find_letter_fault,
    CHANNEL: _find_channel_fault,
    "report": _find_report_fault,
    "extractor": _find_source_fault,
    "template": _find_source_fault,
    CANCELS: _find_parameter_fault,
    CHECKS: _find_parameter_fault,
    ENTITY: _find_hook_fault,
}


def _locate(seller: Any) -> Location | None:
    try:
        return Location(inspect.getsourcefile(seller) or "", inspect.getsourcelines(seller)[1])
    except (OSError, TypeError):
        return locate(seller)
