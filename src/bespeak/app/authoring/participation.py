"""Decorators by which functions of a service take part in standard methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, Final, TypeVar

from bespeak.app.authoring.declarations import declaring
from bespeak.contract.endpoint import Impact
from bespeak.contract.participant import SOLD, JoinedFunction, Participant, Price, QueueOptions
from bespeak.errors import ContractError
from bespeak.extensions.reports.report import Report
from bespeak.runtime.bindings.participant import bind_participant
from bespeak.runtime.functions.annotations import show_type
from bespeak.runtime.functions.reading import locate, parse_docstring
from bespeak.runtime.functions.signature import read_signature
from bespeak.text.source.tree import Location

_Function = TypeVar("_Function", bound=Callable[..., Any])

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
