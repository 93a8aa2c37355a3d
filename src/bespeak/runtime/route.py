"""A registered endpoint, ready to be called, with everything that is known before a request."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.compile import Validator
from bespeak.contract.schema.reference import inline
from bespeak.protocol.exchange.headers import HeaderBlock
from bespeak.runtime.functions.output_filter import OutputFilter
from bespeak.runtime.shaping import Shaping


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One endpoint with its compiled schemas, its bound handler and its constant headers."""

    endpoint: Endpoint
    method: str
    builtin: bool
    """True for a built-in method, which is called with the RoutedCall."""
    call: Callable[..., Any]
    """`(input, context)`, `(call)` for a built-in method or `(call, steps)` if it composes.

    It returns the output, a Refused, or a coroutine of either. A built-in method may also return an Answer, an Envelope
    or Effects.
    """
    input: Validator
    output: Validator
    block: HeaderBlock
    """Headers of every response: server, content type, deprecation warnings."""
    error_descriptions: Mapping[str, str]
    """Descriptions of the declared errors; no others may be raised by name."""
    has_parameters_field: bool
    """True if the input has its own property `parameters`, so that unwrapping the envelope is tried second."""
    coercions: Mapping[str, Callable[[str], Any]]
    """Parsers of path and query parameters, by property."""
    filter: OutputFilter | None = None
    """Filter of a function's results by its return type; None if the type admits everything."""
    may_return_none: bool = True
    """True if None stands for an output without fields; otherwise the schema must admit null."""
    shaping: Shaping | None = None
    """Token hints of the endpoint; None if no contract describes its output."""
    is_readable: bool = False
    """True if HTTP GET may call it: it changes nothing and its input is flat."""
    is_hidden: bool = False
    """True if callers without the authority to call it must not learn that it exists."""
    is_confirmed: bool = False
    """True if a call waits until someone other than the caller has confirmed it."""
    is_governed: bool = False
    """True if governance wants each call on record: it is irreversible or confirmed, or a built-in method that changes
    something.
    """
    needs_key: bool = False
    """True if a repeated call does harm, so that an operator may require an idempotency key."""
    takes_body_key: bool = False
    """True if the body may carry an `idempotency_key`."""
    takes_call: bool = False
    """True if the handler gets the call itself: a built-in method, or a composition."""
    composes: bool = False
    """True if the handler calls other endpoints for its caller: a composition, or EXECUTE /."""
    synthesis_id: str | None = None
    """Synthesis behind the endpoint; None for one that an operator declared."""

    def fill_captures(self, given: dict[str, Any], captures: Mapping[str, str] | None) -> dict[str, Any]:
        """Return an input with the values of the path's parameters; a member of the same name takes precedence."""
        filled = dict(given)
        for name, text in (captures or {}).items():
            read = self.coercions.get(name)
            filled.setdefault(name, read(text) if read else text)
        return filled


_MOST_DIGITS = 300
"""Maximum length of an integer in a path or a query: covers every integer of a body, and parses fast."""


def read_integer(text: str) -> Any:
    """Parse an integer; return other text unchanged, for the schema to refuse. In JSON Schema `2.0` is an integer
    too.
    """
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


_READERS: Mapping[str, Callable[[str], Any]] = {
    "boolean": read_boolean,
    "integer": read_integer,
    "number": read_number,
}
_NAMES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def plan_coercions(input_schema: Mapping[str, Any]) -> dict[str, Callable[[str], Any]]:
    """Return parsers for the properties that cannot be strings; query and path only carry text."""
    properties = input_schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    found = {}
    for name, schema in properties.items():
        types = property_types(inline(schema, input_schema))
        readers = [reader for kind, reader in _READERS.items() if kind in types]
        if readers and "string" not in types:
            found[name] = readers[0] if len(readers) == 1 else partial(_read_first, readers)
    return found


def property_types(schema: object) -> set[str]:
    """Return the JSON types that a property may have by its schema: `type`, alternatives, listed values."""
    if not isinstance(schema, Mapping):
        return set()
    kind = schema.get("type", ())
    types = {kind} if isinstance(kind, str) else {one for one in kind if isinstance(one, str)}
    for keyword in ("anyOf", "oneOf"):
        for option in schema.get(keyword, ()):
            types |= property_types(option)
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    return types or {_NAMES[type(value)] for value in values if type(value) in _NAMES}


def _read_first(readers: list[Callable[[str], Any]], text: str) -> Any:
    values = (read(text) for read in readers)
    return next((value for value in values if not isinstance(value, str)), text)
