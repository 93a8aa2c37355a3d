"""A registered endpoint, ready to be called: its coercions, token hints and deprecation warnings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Validator
from bespeak.contract.schema.view import Members, SchemaView, members_of, without_empty
from bespeak.protocol import status
from bespeak.protocol.exchange import token_hints
from bespeak.protocol.exchange.headers import HeaderBlock
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.token_hints import UNCHANGED, TokenHints, Wanted, select
from bespeak.runtime.functions.output_filter import OutputFilter

_MOST_NAMED: Final = 50  # maximum number of fields that a refusal lists
_MOST_COMPARED: Final = 100  # names compared for suggestions: a few milliseconds, whatever the caller asks for
_LONGEST: Final = 80


class Shaping:
    """Token hints at one endpoint. Nothing is computed before the first hint arrives."""

    def __init__(self, endpoint: Endpoint, output: Validator) -> None:
        self._endpoint = endpoint
        self._output = output

    @cached_property
    def members(self) -> Members:
        return members_of(self._endpoint.output_schema)

    @cached_property
    def _hints(self) -> frozenset[str]:
        """Names that are hints here: those the endpoint declares as input are not."""
        declared = members_of(self._endpoint.input_schema)
        return frozenset(name for name in token_hints.HINTS if not declared.declares(name))

    def take(self, parameters: dict[str, str]) -> TokenHints | Refused | None:
        """Remove the hints from the query parameters; return None if there are none."""
        given = {name: parameters.pop(name) for name in self._hints & parameters.keys()}
        if not given:
            return None
        if self._endpoint.builtin:
            names = ", ".join(sorted(given))
            message = f"{self._endpoint} is a built-in method and returns its complete answer; omit {names}."
            return Refused(status.BAD_REQUEST, "token-hints-not-supported", message, {"parameters": sorted(given)})
        return self.read(given)

    def read(self, given: Mapping[str, str]) -> TokenHints | Refused:
        hints = token_hints.read_hints(given)
        return hints if isinstance(hints, Refused) else self._refuse(hints) or hints

    def apply(self, hints: TokenHints, output: Any) -> Any:
        """Apply the hints to an output, which stays valid; return UNCHANGED if nothing has changed."""
        try:
            return self._shaped(hints, output)
        except RecursionError:
            return output  # nested too deeply for Python: return all of it rather than fail

    def _shaped(self, hints: TokenHints, output: Any) -> Any:
        if hints.compact:
            output = self._compact(output)
        if hints.since is not None:
            place = token_hints.read_place(self._endpoint.since or "")
            assert place is not None
            output = token_hints.keep_changed(output, place, hints.since)
        return output if hints.fields is None or output is UNCHANGED else select(output, hints.fields)

    def _compact(self, output: Any) -> Any:
        if type(output) not in (dict, list):
            return output
        less = without_empty(output, self.members)
        # Walking the schema does not reveal dependencies between members, so validate the result.
        return less if self._output.is_valid(less) else output

    def _refuse(self, hints: TokenHints) -> Refused | None:
        if hints.since is not None and self._endpoint.since is None:
            message = f"since: the contract of {self._endpoint} does not declare a time of change in its output."
            return Refused(status.BAD_REQUEST, "since-not-supported", message, {"parameter": "since"})
        unknown = list(_unknown(hints.fields, self.members)) if hints.fields else []
        return _refuse_fields(unknown) if unknown else None


def _unknown(wanted: Wanted, members: Members, around: str = "") -> Iterator[tuple[str, str, Members]]:
    """Yield the fields that an output cannot have: the full name, the wrong part, and the available members."""
    for name, inside in wanted.items():
        found = members.step(name)
        if found is None:
            yield around + name, name, members
        elif inside is not None:
            yield from _unknown(inside, found, f"{around}{name}.")


def _refuse_fields(unknown: list[tuple[str, str, Members]]) -> Refused:
    whole, name, members = unknown[0]
    there = members.reachable
    around = whole[: len(whole) - len(name)]
    choice = f"available: {', '.join(there[:_MOST_NAMED])}" if there else "it has no fields"
    suggestions: dict[str, list[str]] = {}
    for given, part, inside in unknown[:5]:
        near = get_close_matches(part[:_LONGEST], inside.reachable[:_MOST_COMPARED])
        if near:
            suggestions[given] = [given[: len(given) - len(part)] + one for one in near]
    details: Mapping[str, Any] = {
        "unknown": [given for given, _, _ in unknown],
        "available": [around + one for one in there[:_MOST_NAMED]],
        "suggestions": suggestions,
    }
    message = f"fields: {whole[:_LONGEST]!r} is not a field of the output; {choice}."
    return Refused(status.BAD_REQUEST, "unknown-fields", message, details)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One endpoint with its compiled schemas, its bound handler and its constant headers."""

    endpoint: Endpoint
    method: str
    builtin: bool  # True for a built-in method, which is called with the RoutedCall
    call: Callable[..., Any]
    """`(input, context)`, `(call)` for a built-in method or `(call, steps)` if it composes.

    It returns the output, a Refused, or a coroutine of either. A built-in method may also return an Answer, an Envelope
    or Effects.
    """
    input: Validator
    output: Validator
    block: HeaderBlock  # headers of every response: server, content type, deprecation warnings
    error_descriptions: Mapping[str, str]  # descriptions of the declared errors; no others may be raised by name
    has_parameters_field: bool  # the input has its own `parameters`, so the envelope is unwrapped second
    coercions: Mapping[str, Callable[[str], Any]]  # parsers of path and query parameters, by property
    filter: OutputFilter | None = None  # of a function's results; None if its return type admits everything
    may_return_none: bool = True  # None stands for an output without fields; else the schema must admit null
    shaping: Shaping | None = None  # token hints of the endpoint; None if no contract describes its output
    is_readable: bool = False  # True if HTTP GET may call it: it changes nothing and its input is flat
    is_hidden: bool = False  # True if callers without the authority to call it must not learn that it exists
    is_confirmed: bool = False  # True if a call waits until someone other than the caller has confirmed it
    # True if governance wants each call on record: irreversible, confirmed, or a built-in method that changes things.
    is_governed: bool = False
    needs_key: bool = False  # True if a repeated call does harm, so that an operator may require an idempotency key
    takes_body_key: bool = False  # True if the body may carry an `idempotency_key`
    takes_call: bool = False  # True if the handler gets the call itself: a built-in method, a composition or a stream
    composes: bool = False  # True if the handler calls other endpoints for its caller: a composition, or EXECUTE /
    synthesis_id: str | None = None  # synthesis behind the endpoint; None for one that an operator declared

    def fill_captures(self, given: dict[str, Any], captures: Mapping[str, str] | None) -> dict[str, Any]:
        """Return an input with the values of the path's parameters; a member of the same name takes precedence."""
        return {name: self.coercions.get(name, str)(text) for name, text in (captures or {}).items()} | given


_MOST_DIGITS = 300  # maximum length of an integer in a path or a query: covers every integer of a body, and parses fast


def read_integer(text: str) -> Any:
    """Parse an integer, `2.0` too as in JSON Schema; return other text unchanged, for the schema to refuse."""
    digits, point, zeros = text.partition(".")
    if point and (not zeros or zeros.strip("0")):
        return text
    sign = 1 if text[:1] in "+-" else 0
    return int(digits) if text.isascii() and digits[sign:].isdigit() and len(text) <= _MOST_DIGITS else text


# RFC 8259 6:  number = [ minus ] int [ frac ] [ exp ]
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def read_number(text: str) -> Any:
    """Parse a number; return other text unchanged."""
    whole = read_integer(text)
    if isinstance(whole, int) or _NUMBER.fullmatch(text) is None:
        return whole
    number = float(text)
    return number if math.isfinite(number) else text


def read_boolean(text: str) -> Any:
    """Parse 'true' or 'false'; return other text unchanged."""
    return {"true": True, "false": False}.get(text, text)


_READERS: Mapping[str, Callable[[str], Any]] = {"boolean": read_boolean, "integer": read_integer, "number": read_number}


def plan_coercions(input_schema: Mapping[str, Any]) -> dict[str, Callable[[str], Any]]:
    """Return parsers for the properties that cannot be strings; query and path only carry text."""
    properties = input_schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    found = {}
    for name, schema in properties.items():
        types = SchemaView(schema, input_schema).types
        readers = [reader for kind, reader in _READERS.items() if kind in types]
        if readers and "string" not in types:
            found[name] = readers[0] if len(readers) == 1 else partial(_read_first, readers)
    return found


def _read_first(readers: list[Callable[[str], Any]], text: str) -> Any:
    values = (read(text) for read in readers)
    return next((value for value in values if not isinstance(value, str)), text)


CATALOG_WARNING = "AGTP-Catalog-Warning"
ENDPOINT_WARNING = "AGTP-Endpoint-Warning"


def endpoint_advisories(endpoint: Endpoint, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return the deprecation warnings of an endpoint, sent with every response."""
    deprecated = None if endpoint.deprecated is None else endpoint.deprecated.warning()
    warnings = ((CATALOG_WARNING, catalog.warns_of(endpoint.method)), (ENDPOINT_WARNING, deprecated))
    return tuple((name, warning) for name, warning in warnings if warning is not None)


def catalog_warning(catalog: Catalog, requested: str, route: Route | None) -> tuple[tuple[str, str], ...]:
    """Return the warning for the requested method, unless an endpoint of that method answers."""
    if route is not None and (route.method == requested or catalog.warns_of(route.method) is not None):
        return ()
    warning = catalog.warns_of(requested)
    return ((CATALOG_WARNING, warning),) if warning is not None else ()
