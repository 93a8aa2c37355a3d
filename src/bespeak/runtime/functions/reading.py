"""Everything a handler declares about its endpoint: docstring, types, and the errors that its source names."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, Final

import msgspec

from bespeak.contract.handler import Refusal
from bespeak.contract.schema.subschemas import target
from bespeak.contract.schema.validation import DIALECT, Validator, compile_schema
from bespeak.contract.schema.view import SchemaView
from bespeak.errors import ContractError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.functions.annotations import (
    REF,
    Schema,
    close,
    close_schema,
    dump_foreign,
    reason,
    schemas_of,
    show_type,
)
from bespeak.runtime.functions.needs import is_async, plan_needs
from bespeak.runtime.functions.signature import MISSING, HandlerParameter, Signature, read_signature
from bespeak.text.source.tree import Location


def input_schema(signature: Signature, descriptions: Mapping[str, str]) -> Schema:
    """Build the schema of a handler's parameters: closed at the top and in every nested object (AGTP-API 13.3)."""
    for parameter in signature.parameters:
        if parameter.annotation is MISSING:
            raise ContractError(f"the parameter {parameter.name!r} has no annotation, so its schema is unknown")
    if signature.takes_rest:
        raise ContractError("**rest accepts any name, but an input has only declared properties: name the parameters")
    properties, definitions = _properties(signature)
    for name, text in descriptions.items():
        if name in properties and (signature.body is None or name != signature.body.name):
            properties[name].setdefault("description", text)
    required = [parameter.name for parameter in signature.parameters if parameter.default is MISSING]
    root = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if signature.body is not None:
        required.remove(signature.body.name)
        root, definitions = _whole_input(signature.body, properties, required, definitions)
    return _document(root, definitions)


def _whole_input(
    body: HandlerParameter, properties: dict[str, Schema], required: list[str], definitions: dict[str, Schema]
) -> tuple[Schema, dict[str, Schema]]:
    """Build an input that is one object, or one of several, with the other parameters among its fields."""
    own, definitions = _written_out(properties.pop(body.name), definitions)
    keyword = next((name for name in ("oneOf", "anyOf") if name in own), None)
    options = [own] if keyword is None else own[keyword]
    variants = [target(option.get("$ref"), {"$defs": definitions}, option) for option in options]
    for variant in variants:
        if variant.get("type") != "object" or "properties" not in variant:
            shown = show_type(body.annotation)
            message = f"the whole input {body.name!r} must be an object with fields, or a union of such; got {shown}"
            raise ContractError(message)
        if both := sorted(properties.keys() & variant["properties"].keys()):
            shown = ", ".join(map(repr, both))
            raise ContractError(f"{show_type(body.annotation)} has {shown}, which is also a parameter: rename one")
    if properties:
        options = [
            {
                **variant,
                "properties": {**properties, **variant["properties"]},
                "required": [*required, *variant.get("required", ())],
            }
            for variant in variants
        ]
    if keyword is None:
        return options[0], definitions
    # The discriminator refers to definitions, which lack the other parameters.
    kept: Schema = {key: own[key] for key in ("discriminator", "description") if key in own and not properties}
    root: Schema = {"type": "object", "properties": dict(properties), "required": required, keyword: options, **kept}
    return {**root, "unevaluatedProperties": False}, definitions


def _properties(signature: Signature) -> tuple[dict[str, Schema], dict[str, Schema]]:
    _ = signature.has_foreign_types  # raises an error that names the parameter without a schema
    signature.check_defaults()
    try:
        schemas, definitions = schemas_of(signature.annotations, "validation")
    except ContractError:
        signature.blame(lambda annotation: schemas_of([annotation], "validation"))
        raise
    for node in (*schemas, *definitions.values()):
        close(node)
    properties: dict[str, Schema] = {}
    for parameter, schema in zip(signature.parameters, schemas, strict=True):
        properties[parameter.name] = schema
        if parameter.default is not MISSING and parameter.default is not msgspec.UNSET:
            try:
                schema["default"] = msgspec.to_builtins(parameter.default, str_keys=True, enc_hook=dump_foreign)
            except TypeError as error:
                message = f"the default of {parameter.name!r} cannot be written as JSON: {reason(error)}"
                raise ContractError(message) from None
    return properties, definitions


def output_schema(returns: Any) -> Schema:
    """Build the schema of a return annotation: an object, open to additional fields, or an array."""
    # A class is often returned by many functions, and always hashable.
    return _class_output(returns) if isinstance(returns, type) else _output(returns)


def _output(returns: Any) -> Schema:
    if returns is MISSING:
        raise ContractError(
            "the return annotation is missing, so the output schema is unknown; write -> None if there is no result"
        )
    if returns is None or returns is type(None):
        return {"$schema": DIALECT, "type": "object", "properties": {}, "additionalProperties": True}
    try:
        root, definitions = _written_out(*_returned(returns))
    except ContractError as error:
        raise ContractError(f"the return annotation {show_type(returns)} {error}") from None
    types = SchemaView(root, {"$defs": definitions}).types
    if not types or not types <= {"object", "array"}:
        raise ContractError(
            f"{show_type(returns)} is not a valid result of an endpoint: return an object (a dataclass, a Struct, "
            "a TypedDict, a model, a dict) or a list of them, and declare an error for a missing result"
        )
    if root.get("type") == "object":
        root.setdefault("additionalProperties", True)
    return _document(root, definitions)


def items_schema(item: Any) -> Schema:
    """Build the schema of a collected stream: an object with the items."""
    try:
        schema, definitions = _returned(item)
    except ContractError as error:
        raise ContractError(f"the type of the items, {show_type(item)}, {error}") from None
    items = {"type": "array", "items": schema}
    return _document({"type": "object", "properties": {"items": items}, "required": ["items"]}, definitions)


def closed_output(returns: Any) -> tuple[Schema, Validator]:
    """Build the schema of a return annotation, closed except where its type is open. Raises ContractError."""
    return close_schema(*_returned(returns))


def _returned(returns: Any) -> tuple[Schema, dict[str, Schema]]:
    try:
        text = _returned_text(returns)
    except TypeError:  # a part of it is not hashable
        text = _returned_text.__wrapped__(returns)
    schema, definitions = msgspec.json.decode(text)
    return schema, definitions


@lru_cache(maxsize=1024)
def _returned_text(returns: Any) -> bytes:
    # Kept as text, also because the names in annotations may be gone later: a module can be imported for a while.
    (schema,), definitions = schemas_of([returns], "serialization")
    return msgspec.json.encode((schema, definitions))


_class_output: Final = lru_cache(maxsize=1024)(_output)


def _written_out(root: Schema, definitions: dict[str, Schema]) -> tuple[Schema, dict[str, Schema]]:
    reference = root.get("$ref", "")
    if not reference:
        return root, definitions
    name = reference.removeprefix(REF)
    root = dict(definitions[name])
    if f'"{reference}"'.encode() not in msgspec.json.encode(definitions):
        del definitions[name]
    return root, definitions


def _document(root: Schema, definitions: Mapping[str, Schema]) -> Schema:
    schema = {"$schema": DIALECT, **root}
    if definitions:
        schema["$defs"] = dict(definitions)
    fault = compile_schema(schema)
    if isinstance(fault, Fault):
        raise ContractError(f"the schema of the annotations is not valid: {fault.message} (at {fault.at})")
    return schema


_HEADINGS: Final = {
    "outcome": "outcome",
    "errors": "errors",
    **dict.fromkeys(("args", "arguments", "parameters"), "parameters"),
    **dict.fromkeys(("returns", "raises", "example", "examples", "note", "notes"), "other"),
}
_HEADING: Final = re.compile(r"([A-Za-z]+):(?:\s+(.*))?")
_ENTRY: Final = re.compile(r"(\s*)([A-Za-z_][A-Za-z0-9_.-]*)(?:\s*\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Prose:
    intent: str = ""  # the first paragraph
    outcome: str = ""  # the paragraph that begins with `Outcome:`
    parameters: dict[str, str] = field(default_factory=dict)  # the entries under `Args:`
    errors: dict[str, str] = field(default_factory=dict)  # the entries under `Errors:`


@lru_cache(maxsize=1024)
def parse_docstring(text: str | None) -> Prose:
    """Parse a docstring. Other text is for people. Cached: functions made by a factory share one docstring."""
    parts: dict[str, list[str]] = {"intent": [], "outcome": [], "parameters": [], "errors": [], "other": []}
    current = "intent"
    for line in inspect.cleandoc(text or "").splitlines():
        heading = _HEADING.fullmatch(line)
        if heading and heading[1].lower() in _HEADINGS:
            current = _HEADINGS[heading[1].lower()]
            parts[current].append(heading[2] or "")
        elif not line.strip() and current in ("intent", "outcome") and any(parts[current]):
            current = "other"
        else:
            parts[current].append(line)
    return Prose(
        intent=_joined(parts["intent"]),
        outcome=_joined(parts["outcome"]),
        parameters=_entries(parts["parameters"]),
        errors=_entries(parts["errors"]),
    )


def _joined(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _entries(lines: Iterable[str]) -> dict[str, str]:
    """Parse `name: text` entries; a line indented deeper than the first entry continues the one before."""
    found: dict[str, list[str]] = {}
    margin: int | None = None
    name = ""
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry and (margin is None or len(entry[1]) <= margin):
            margin, name = len(entry[1]), entry[2]
            found[name] = [entry[3]]
        elif name and line.strip():
            found[name].append(line)
    return {name: _joined(texts) for name, texts in found.items()}


def refused_names(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    """Return each literal name in a `Refusal("name", ...)` of a handler or its providers, with a line of its file."""
    yield from _refused_by(function)
    place = locate(function)
    for provider in plan_needs(read_signature(function).needs).providers:
        there = locate(provider.function)
        for name, line in _refused_by(provider.function):
            if place is not None:
                yield name, line if there and there.file == place.file else place.line


def _refused_by(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    plain = inspect.unwrap(function)
    plain = getattr(plain, "__func__", plain)
    if not isinstance(plain, FunctionType):
        return
    called = {name for name in _names(plain.__code__) if plain.__globals__.get(name) is Refusal or name == "Refusal"}
    if not called:
        return
    try:
        lines, first = inspect.getsourcelines(plain)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if (getattr(node.func, "attr", None) or getattr(node.func, "id", None)) in called:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, first + node.lineno - 1


def _names(code: CodeType) -> Iterator[str]:
    """Return the names used in code, nested functions included: a cheap test before the source is read."""
    yield from code.co_names
    yield from code.co_varnames
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@dataclass(frozen=True, slots=True)
class FunctionReading:
    prose: Prose
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    streams: bool  # True if the function yields the items of its output
    refused: tuple[tuple[str, int], ...]  # error names the function refuses with, each with its line
    is_async: bool


def read_handler(function: Callable[..., Any]) -> FunctionReading:
    """Read a function. Raises ContractError if it cannot describe an endpoint."""
    prose = parse_docstring(inspect.getdoc(function))
    signature = read_signature(function)
    context = signature.context and signature.context.name
    known = {*(parameter.name for parameter in signature.parameters), context, *signature.needs}
    unknown = [name for name in prose.parameters if name not in known]
    if unknown:
        message = f"the docstring describes {', '.join(map(repr, unknown))}, which the function does not take"
        raise ContractError(message)
    return FunctionReading(
        prose=prose,
        input_schema=input_schema(signature, prose.parameters),
        output_schema=items_schema(signature.item) if signature.yields else output_schema(signature.returns),
        streams=signature.yields,
        refused=tuple(refused_names(function)),
        is_async=is_async(function),
    )


def locate(function: Callable[..., Any]) -> Location | None:
    try:
        code = getattr(inspect.unwrap(function), "__code__", None)
    except ValueError:  # it wraps itself
        code = None
    return Location(code.co_filename, code.co_firstlineno) if code else None
