"""Validation by JSON Schema 2020-12: compiled once per content, violations as data, undeclared fields pruned."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import jsonschema_rs
import msgspec

from bespeak.contract.schema.subschemas import MAX_DEPTH, REFERENCES, Place, Steps, nodes, resolve
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.text.bounded_cache import BoundedCache
from bespeak.text.source.pointer import child, pointer

MAX_WAYS: Final = 10_000  # limit of subschemas that check one value, each time counted: about 1 ms
MAX_STEPS: Final = 200  # limit of nested subschemas for one value: some thousands overflow the native stack


def excess(nodes: Iterable[tuple[Place, dict[str, Any]]]) -> str | None:
    """Return why a schema is too expensive for a validator, which does not cache visited subschemas of a value."""
    below = Steps(list(nodes))
    ways: dict[int, int] = {}
    longest: dict[int, int] = {}
    begun: set[int] = set()
    for start in below.all():
        path = [start]
        while path:
            node = path[-1]
            me = id(node)
            if me in ways:
                path.pop()
                continue
            steps = below.of(node)
            if me not in begun:
                begun.add(me)
                ahead = [step for step in steps if id(step) not in begun]
                if ahead:
                    path.extend(ahead)
                    continue
            # A step back to a node that is still being counted is a cycle; the validator goes round it once.
            ways[me] = 1 + sum(ways.get(id(step), 0) for step in steps)
            if ways[me] > MAX_WAYS:
                return f"references multiply the schema: more than {MAX_WAYS:,} subschemas apply to one value"
            longest[me] = 1 + max((longest.get(id(step), 0) for step in steps), default=0)
            if longest[me] > MAX_STEPS:
                return f"more than {MAX_STEPS} subschemas form a chain"
            path.pop()
    return None


def is_within(value: object, *, parts: int, characters: int) -> bool:
    """Return True if a value has at most this many parts (itself, elements, members) and characters of text."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        parts -= 1
        if isinstance(part, str):
            characters -= len(part)
        elif isinstance(part, dict):
            characters -= sum(map(len, part))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        if parts < len(waiting) or characters < 0:
            return False
    return True


_LONGEST: Final = 300


class Violation(msgspec.Struct, frozen=True):
    """One violated constraint."""

    pointer: str  # JSON Pointer into the value; empty for the whole value
    schema_pointer: str  # JSON Pointer into the schema, down to the keyword
    keyword: str
    message: str


def shorten(text: str) -> str:
    """Shorten a message in the middle: a quoted value can be as long as a body, and the end states the fault."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 101]}…{text[-100:]}"


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_MAX_REPORTED: Final = 100  # limit of reported violations: a value can violate a schema once per element
_MOST_PARTS: Final = 1_000
_MOST_CHARACTERS: Final = 65_536  # size up to which all violations are listed: each takes 11 µs
_MOST_REFERENCES: Final = 10_000  # limit of chained references: this many take a third of a second
_LINEAR: Final = jsonschema_rs.RegexOptions()  # linear-time engine: slow to compile, never slow to match
_DECIMAL: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_FORMATS: Final[dict[str, Callable[..., bool]]] = {"decimal": lambda text: _DECIMAL.fullmatch(text) is not None}
"""Formats that the library does not know. Handlers could not read the value, so it is listed with the others."""
_UNCHECKED: Final = re.compile(rb'"(?:pattern|\$(?!schema":"%b"))' % re.escape(DIALECT.encode()))
"""Keywords the meta-schema cannot check: patterns, references and anchors."""


class Validator:
    """A usable schema. Values must be as a JSON decoder returns them; others raise ValueError."""

    __slots__ = ("_compiled", "_text", "is_valid")

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._compiled: jsonschema_rs.Draft202012Validator | None = None
        self.is_valid: Callable[[object], bool] = lambda value: self.compiled().is_valid(value)

    def violations(self, value: object) -> list[Violation]:
        """List all violations of a value; of a very large one, only the first."""
        found: list[Violation] = []
        if not is_within(value, parts=_MOST_PARTS, characters=_MOST_CHARACTERS):
            try:
                self.compiled().validate(value)
            except jsonschema_rs.ValidationError as first:
                found.append(_violation(first))
            return found
        for error in self.compiled().iter_errors(value):
            found += _explain(error)
            if len(found) >= _MAX_REPORTED:
                break
        # Where an alternative fails, its fields count as unevaluated too: that says nothing more.
        # Nor do alternatives of a value that has another type anyway.
        mistyped = {one.pointer for one in found if one.keyword == "type"}
        stated = [
            one
            for one in found
            if one.keyword != "unevaluatedProperties" and not (one.keyword in _UNIONS and one.pointer in mistyped)
        ]
        unique = {(one.pointer, one.message): one for one in stated or found}
        return list(unique.values())[:_MAX_REPORTED]

    def compiled(self) -> jsonschema_rs.Draft202012Validator:
        """Compile the schema. This happens on first use: a server may load thousands and use few at first."""
        if self._compiled is None:
            self._compiled = jsonschema_rs.Draft202012Validator(
                msgspec.json.decode(self._text),
                validate_formats=True,
                formats=_FORMATS,
                pattern_options=_LINEAR,
                offline=True,
            )
            self.is_valid = self._compiled.is_valid
        return self._compiled


_cache: Final = BoundedCache["Validator"](64_000_000)


def compile_schema(schema: Mapping[str, Any]) -> Validator | Fault:
    """Return the validator of a schema, or its fault. Equal schemas share one validator."""
    try:
        key = msgspec.json.encode(schema)
        known = _cache.get(key)
        if known is not None:
            return known
        plain = msgspec.json.decode(key)
    except (TypeError, ValueError, RecursionError) as error:
        return Fault(f"the schema is not JSON: {error}")
    fault = _check(plain, key)
    if fault is not None:
        return fault
    validator = Validator(key)
    if _UNCHECKED.search(key) is not None or not jsonschema_rs.meta.is_valid(plain):
        try:
            validator.compiled()
        except jsonschema_rs.ValidationError as error:
            return Fault(shorten(error.message), pointer(error.instance_path))
        except ValueError as error:
            return Fault(shorten(str(error)))
    return _cache.put(key, validator)


def _check(schema: object, text: bytes) -> Fault | None:
    """Check what the compiler misses or reports too late: dialect, depth, references to other documents."""
    if not isinstance(schema, dict):
        return Fault(f"a schema must be an object; got {type(schema).__name__}")
    dialect = schema.get("$schema", DIALECT)
    if dialect not in (DIALECT, DIALECT + "#"):
        return Fault(f"the dialect must be {DIALECT}; got {dialect!r}", "/$schema")
    if b"$ref" not in text and b"$dynamicRef" not in text and text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return None  # the fast path for most schemas: no references, and too short to be deep
    found = list(nodes(schema))
    references = 0
    for at, node in found:
        if len(at) > MAX_DEPTH:
            return Fault(f"the schema is nested more than {MAX_DEPTH} levels deep")
        for name in node.keys() & REFERENCES:
            references += 1
            target = node[name]
            if not isinstance(target, str) or not target.startswith("#"):
                message = f"a {name} must stay inside its schema ('#...'); got {shorten(repr(target))}"
                return Fault(message, pointer((*at, name)))
    if references > _MOST_REFERENCES:
        return Fault(f"the schema has more than {_MOST_REFERENCES:,} references")
    too_much = excess(found) if references else None
    return Fault(too_much) if too_much else None


IN_WORDS: Final = {
    r"^[^\x00-\x1f\x7f-\x9f]*$": "be one line without control characters",
    r"^[^\x00-\x08\x0a-\x1f\x7f]*$": "be one line without control characters but tabs",
    "^plan-[0-9a-f]{32}$": "be the plan_id of a plan",
    "^[!-~]{1,128}$": "be 1 to 128 characters of ASCII without spaces",
    "^/[!-~]{0,1023}$": "begin with / and have at most 1,024 characters of ASCII without spaces",
    "^[0-9a-f]{64}$": "be 64 lower-case hexadecimal digits, as an Agent-ID is",
    "^[A-Z][A-Z0-9_-]{0,63}$": "be the name of a method in capitals, such as BOOK",
    "^[a-z][a-z0-9_-]{0,63}$": "begin with a small letter and have small letters, digits, _ and - only, at most 64",
    "^[a-z][a-z0-9]*([_-][a-z0-9]+)*$": "be words of small letters and digits, joined by _ or -, such as price-list",
    "^[A-Za-z_][A-Za-z0-9_-]{0,63}$": "begin with a letter or _ and have letters, digits, _ and - only, at most 64",
    "^[A-Za-z_][A-Za-z0-9_]{0,63}$": "begin with a letter or _ and have letters, digits and _ only, at most 64",
    "^[1-9][0-9]{0,8}$": "be a whole number from 1, such as 3",
    "^[A-Z]{3}$": "be the code of a currency in three capitals, such as EUR",
    "^[0-9]{1,15}([.][0-9]{1,6})?$": "be an amount, such as 12.50",
    "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$": "be the code of a locale, such as de or en-GB",
    "^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3})){0,4}$": (
        "be the tag of a language, such as de or pt-BR"
    ),
}
"""What the patterns of built-in methods ask for. Those of a service are shown as their author has written them."""

_SHAPE: Final = frozenset({"required", "additionalProperties", "type"})
_UNIONS: Final = frozenset({"anyOf", "oneOf"})


def _explain(error: jsonschema_rs.ValidationError) -> list[Violation]:
    """List what is wrong: of a union, a property that no alternative admits, else what one alternative says."""
    options: list[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context", None) or []
    depth = len(error.instance_path)
    kinds = [{one.instance_path[-1]: one for one in option if _is_kind(one, depth)} for option in options]
    for name in kinds[0] if kinds else ():
        if all(name in kind for kind in kinds):
            first = _violation(kinds[0][name])
            admitted = [value for kind in kinds for value in _admitted(kind[name])]
            shown = ", ".join(msgspec.json.encode(value).decode() for value in admitted)
            value = msgspec.json.encode(kinds[0][name].instance).decode()
            message = shorten(f"{shorten(value)} is not one of {shown}")
            return [Violation(first.pointer, pointer(error.schema_path), "enum", message)]
    return [_violation(one) for one in _meant(error)]


def _admitted(error: jsonschema_rs.ValidationError) -> list[Any]:
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Enum):
        return list(kind.options)
    return [kind.expected_value] if isinstance(kind, jsonschema_rs.ValidationErrorKind.Constant) else []


def _meant(error: jsonschema_rs.ValidationError, most: int = 8) -> list[jsonschema_rs.ValidationError]:
    """Replace the failure of a union by those of the alternative that the value was meant for, if one is evident."""
    options: list[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context", None) or []
    depth = len(error.instance_path)
    misfits = [sum(_misfit(one, depth) for one in option) for option in options]
    if not options or not most:
        return [error]
    if misfits.count(min(misfits)) > 1:
        # No alternative is evident. What all of them say, such as a missing discriminator, holds anyway.
        shared = set.intersection(*({(*one.instance_path, one.message) for one in option} for option in options))
        return [one for one in options[0] if (*one.instance_path, one.message) in shared] or [error]
    return [inner for one in options[misfits.index(min(misfits))] for inner in _meant(one, most - 1)]


def _misfit(error: jsonschema_rs.ValidationError, depth: int) -> int:
    """Weigh whether a value has another type, other fields or, above all, another discriminator than an alternative."""
    if _is_kind(error, depth):
        return 1_000
    return int(len(error.instance_path) == depth and error.schema_path[-1] in _SHAPE)


def _is_kind(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    return len(error.instance_path) == depth + 1 and error.schema_path[-1] in ("const", "enum")


def _violation(error: jsonschema_rs.ValidationError) -> Violation:
    schema_path = list(error.schema_path)
    keyword, message = str(schema_path[-1]) if schema_path else "false", error.message
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.FalseSchema):
        # The library's message names the schema `false`; readers need to know what is not allowed.
        if keyword == "additionalProperties":
            message = "no properties are allowed here"
        else:
            keyword, message = "false", "nothing is allowed here"
    elif isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Pattern):
        words, end = IN_WORDS.get(error.kind.pattern), f' does not match "{error.kind.pattern}"'
        message = message if words is None else f"{message.removesuffix(end)} must {words}"
    return Violation(pointer(error.instance_path), pointer(schema_path), keyword, shorten(message))


INVALID_INPUT: Final = "input-validation-failed"


def refuse_input(method: str, path: str, violations: list[Violation]) -> Refused:
    """Build the refusal: the message names the first violation, the list contains all."""
    more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    message = f"The input of {method} {path[:200]} is not valid: {violations[0].message}{more}."
    details = {"method": method, "path": path[:300], "violations": msgspec.to_builtins(violations)}
    return Refused(status.UNPROCESSABLE, INVALID_INPUT, message, details)


def non_finite(value: object) -> list[Violation]:
    """Return the place of an infinity or NaN in a value."""
    found: list[Violation] = []
    waiting = [("", value)]
    while waiting:
        at, part = waiting.pop()
        if isinstance(part, float) and not math.isfinite(part):
            found.append(Violation(at, "", "type", f"{part} is not a JSON number"))
        elif isinstance(part, dict):
            waiting += [(child(at, str(name)), item) for name, item in part.items()]
        elif isinstance(part, list | tuple):
            waiting += [(child(at, index), item) for index, item in enumerate(part)]
    return found


_Pruned = tuple[Any, frozenset[str]]  # a value without undeclared fields, and their names
_Seen = dict[tuple[int, int], _Pruned]  # values that were pruned, by the identities of value and schema


class Pruner:
    """Drops the fields that a schema refuses by `additionalProperties: false`, at every depth.

    Of alternatives (`anyOf`, `oneOf`) a value gets one: the one that keeps most of its fields, or the first of several.
    Fields of two alternatives are never mixed.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._options: dict[int, Validator | None] = {}

    def prune(self, value: Any) -> _Pruned:
        """Return the value without undeclared fields, and their names. The result need not be valid."""
        return self._prune(value, self._schema, {})

    def _prune(self, value: Any, schema: Any, seen: _Seen) -> _Pruned:
        if not isinstance(value, dict | list | tuple) or not isinstance(schema, dict):
            return value, frozenset()
        # Without the memory, alternatives inside of alternatives would take exponential time.
        key = (id(value), id(schema))
        found = seen.get(key)
        if found is None:
            node = resolve(schema, self._schema, most=8)
            options = node.get("anyOf") or node.get("oneOf")
            if options:
                found = self._choose(value, options, seen)
            elif isinstance(value, dict):
                found = self._prune_fields(value, node, seen)
            else:
                found = self._prune_items(value, node, seen)
            seen[key] = found
        return found

    def _choose(self, value: Any, options: list[Any], seen: _Seen) -> _Pruned:
        best: _Pruned | None = None
        for option in options:
            pruned = self._prune(value, option, seen)
            more = best is None or (isinstance(value, dict) and len(pruned[0]) > len(best[0]))
            if more and self._admits(option, pruned[0]):
                best = pruned
        return (value, frozenset()) if best is None else best  # not valid, with or without undeclared fields

    def _admits(self, option: Any, value: Any) -> bool:
        validator = self._options.get(id(option))
        if validator is None:
            compiled = compile_schema({**option, "$defs": self._schema.get("$defs", {})} if option is not True else {})
            if not isinstance(compiled, Validator):
                return False
            validator = self._options[id(option)] = compiled
        return validator.is_valid(value)

    def _prune_fields(self, value: dict[str, Any], node: Any, seen: _Seen) -> _Pruned:
        declared = node.get("properties", {})
        others = node.get("additionalProperties", True)
        patterns = list(node.get("patternProperties", {}).values())
        kept: dict[str, Any] = {}
        dropped: frozenset[str] = frozenset()
        for name, part in value.items():
            if name not in declared and patterns:
                kept[name], below = self._choose(part, patterns, seen)
            elif (schema := declared.get(name, others)) is not False:
                kept[name], below = self._prune(part, schema, seen)
            else:
                below = frozenset((name,))
            dropped |= below
        return kept, dropped

    def _prune_items(self, value: list[Any] | tuple[Any, ...], node: Any, seen: _Seen) -> _Pruned:
        first = node.get("prefixItems", ())
        rest = node.get("items", True)
        kept: list[Any] = []
        dropped: frozenset[str] = frozenset()
        for index, part in enumerate(value):
            schema = first[index] if index < len(first) else rest
            if schema is False:
                dropped |= {f"[{index}]"}
                continue
            pruned, below = self._prune(part, schema, seen)
            kept.append(pruned)
            dropped |= below
        return kept, dropped
