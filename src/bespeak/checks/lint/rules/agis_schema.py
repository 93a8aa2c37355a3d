"""J62x: every endpoint of an AGIS document has an input and an output that are JSON Schema (AGIS 7, 8.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.checks.lint.context import Context
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.change import Change
from bespeak.text.source.pointer import child
from bespeak.text.source.shorthand import KEYWORDS

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared

_BOOK: Final = "method: BOOK\npath: /room\n"
_INPUT: Final = f"{_BOOK}input:\n  type: object\n  properties:\n    room_id: {{type: string}}\n"
_OUTPUT: Final = "output:\n  type: object\n  properties:\n    reservation_id: {type: string}\n"
_REQUIRED: Final = f"{_INPUT}  required: [room_id]\n"

NO_INPUT: Final = Rule(
    "J620",
    "missing-input",
    "MUST",
    "AGIS 7, 9.1 pass 8",
    "Every endpoint has an input.",
    why="Without it an agent has to guess which parameters there are.",
    bad=f"{_BOOK}{_OUTPUT}",
    good=f"{_REQUIRED}{_OUTPUT}",
)
NO_OUTPUT: Final = Rule(
    "J621",
    "missing-output",
    "MUST",
    "AGIS 7, 9.1 pass 8",
    "Every endpoint has an output.",
    why="Without it an agent does not know what it gets, and cannot plan the next step.",
    bad=_REQUIRED,
    good=f"{_REQUIRED}{_OUTPUT}",
)
NOT_OBJECT: Final = Rule(
    "J623",
    "input-no-object",
    "MUST",
    "AGIS 7",
    "The input is the schema of an object, with a property for each parameter.",
    why="Parameters have names; a list or a single value has none.",
    bad=f"{_BOOK}input:\n  type: array\n",
    good=_REQUIRED,
)
UNKNOWN_REQUIRED: Final = Rule(
    "J624",
    "required-without-property",
    "SHOULD",
    "AGIS 7",
    "What `required` names is a property.",
    why="An agent is asked for a value of which nothing is known, not even its type.",
    bad=f"{_INPUT}  required: [room_id, arrival]\n",
    good=_REQUIRED,
)
NO_REQUIRED: Final = Rule(
    "J627",
    "no-required-list",
    "style",
    "AGIS 7",
    "An input with parameters has `required`, if only an empty list.",
    why="Without the list every parameter is optional, and nobody sees whether that is meant.",
    bad=_INPUT,
    good=f"{_INPUT}  required: []\n",
    fix="unsafe",
)
NOT_SNAKE: Final = Rule(
    "J628",
    "parameter-not-snake-case",
    "SHOULD",
    "AGIS 7",
    "The names of parameters are in snake_case.",
    why="Agents fill in parameters of many services; one way of writing their names saves them slips.",
    bad=f"{_BOOK}input:\n  type: object\n  properties:\n    roomId: {{type: string}}\n",
    good=_REQUIRED,
    fix="unsafe",
)
PATH_PARAMETER: Final = Rule(
    "J629",
    "path-parameter-not-in-input",
    "SHOULD",
    "AGIS 5(f), 7",
    "A parameter of the path is a property of the input.",
    why="The input is where an agent reads what to send; a name in braces has no type and no description.",
    bad="method: CANCEL\npath: /room/{room_id}\ninput:\n  type: object\n  properties:\n    reason: {type: string}\n",
    good="method: CANCEL\npath: /room/{room_id}\ninput:\n  type: object\n  properties:\n    room_id: {type: string}\n",
    fix="unsafe",
)

RULES: Final = (NO_INPUT, NO_OUTPUT, NOT_OBJECT, UNKNOWN_REQUIRED, NO_REQUIRED, NOT_SNAKE, PATH_PARAMETER)
"""Values of a wrong type are found when the document is read."""

_COMPOSING: Final = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties"})
"""Beside these a schema may have properties that it does not list."""
_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_SNAKE: Final = re.compile(r"[^a-z0-9]+")
_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]{1,64})\}")
_MOST: Final = 50
"""Names of one schema that are spoken of."""


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Findings about the input and the output of one endpoint."""
    written = declared.written
    schema = written.get("input" if context.agis else "input_schema")
    if context.agis:
        if schema is None:
            advice = (
                "Write input: {type: object, properties: {...}, required: [...]}; without properties if it takes none."
            )
            yield NO_INPUT.at(declared.endpoint, "/input_schema", "there is no input", advice)
        output = written.get("output")
        if output is None:
            advice = "Write output: {type: object, properties: {...}} with what a successful call returns."
            yield NO_OUTPUT.at(declared.endpoint, "/output_schema", "there is no output", advice)
        elif isinstance(output, dict):
            yield from _check_required(declared, output, "/output_schema")
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if context.agis and kind is not None and kind != "object" and not (isinstance(kind, list) and "object" in kind):
        message = f"the input has type {brief(kind)}, and parameters need the names of an object"
        yield NOT_OBJECT.at(declared.endpoint, "/input_schema/type", message, "Write type: object.")
        return
    bare = _bare_parameter(schema) if context.agis else None
    if bare is not None:
        message = f"{brief(bare)} stands where keywords of JSON Schema stand, and is no parameter there"
        advice = f"Write properties: {{{brief(bare)[1:-1]}: {{type: ...}}}}, and type: object."
        yield NOT_OBJECT.at(declared.endpoint, child("/input_schema", bare), message, advice)
        return
    yield from _check_parameters(declared, context, schema)


def _bare_parameter(schema: Mapping[str, Any]) -> str | None:
    """A name that was written without `properties` around it."""
    if "properties" in schema or not _COMPOSING.isdisjoint(schema):
        return None
    for key, value in schema.items():
        described = isinstance(value, str) or (isinstance(value, dict) and not {"type", "$ref"}.isdisjoint(value))
        # Keywords of others are allowed in JSON Schema; OpenAPI's `example` may be a text.
        if described and key not in KEYWORDS and key != "example" and not key.startswith("x-"):
            return key
    return None


def _check_parameters(declared: Declared, context: Context, schema: Mapping[str, Any]) -> Iterator[Diagnostic]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        yield from _check_names(declared, properties, schema.get("required"))
        if "required" not in schema and _COMPOSING.isdisjoint(schema):
            message = "the input does not say which parameters are required"
            advice = "Add required: [...], or required: [] if none is."
            fix = Fix("Say that none is", (Change("insert", "/input_schema", [], key="required"),), safe=False)
            yield NO_REQUIRED.at(declared.endpoint, "/input_schema", message, advice, fix)
    yield from _check_required(declared, schema, "/input_schema")
    if context.agis and "{" in declared.endpoint.path and _COMPOSING.isdisjoint(schema):
        known = properties if isinstance(properties, dict) else {}
        for name in _PARAMETER.findall(declared.endpoint.path)[:_MOST]:
            if name not in known:
                message = f"the path parameter {{{name}}} is no property of the input"
                fix = Fix(f"Add the property {name}", _with_property(schema, name), safe=False)
                yield PATH_PARAMETER.at(declared.endpoint, "/path", message, f"Add the property {name}.", fix)


def _with_property(schema: Mapping[str, Any], name: str) -> tuple[Change, ...]:
    """A text that has to be given, added to an input."""
    made, at = {"type": "string"}, "/input_schema"
    if not schema:
        whole = {"type": "object", "properties": {name: made}, "required": [name]}
        return (Change("replace", at, whole),)
    if "properties" in schema:
        described = Change("insert", f"{at}/properties", made, key=name)
    else:
        described = Change("insert", at, {name: made}, key="properties")
    required = schema.get("required")
    if required is None:
        return described, Change("insert", at, [name], key="required")
    if isinstance(required, list) and name in required:
        return (described,)
    return described, Change("append", f"{at}/required", name)


def _check_required(declared: Declared, schema: Mapping[str, Any], at: str) -> Iterator[Diagnostic]:
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict) or not _COMPOSING.isdisjoint(schema):
        return
    for index, name in enumerate(required[:_MOST]):
        if isinstance(name, str) and name not in properties:
            message = f"`required` names {brief(name)}, which is no property"
            advice = "Describe it under properties, or take it off the list."
            yield UNKNOWN_REQUIRED.at(declared.endpoint, f"{at}/required/{index}", message, advice)


def _check_names(declared: Declared, properties: Mapping[str, Any], required: object) -> Iterator[Diagnostic]:
    for name in list(properties)[:_MOST]:
        if _SNAKE.fullmatch(name) is None:
            meant = _NO_SNAKE.sub("_", _HUMP.sub("_", name[:100]).lower()).strip("_")
            advice, fix = "Write it like party_size.", None
            pointer = child("/input_schema/properties", name)
            if _SNAKE.fullmatch(meant):
                advice = f"Write {meant}."
                changes = [Change("rename", pointer, key=meant)]
                if isinstance(required, list) and name in required:
                    changes.append(Change("replace", f"/input_schema/required/{required.index(name)}", meant))
                # Where the path or a hint has the name as well, an author has to change them together.
                if (
                    f"{{{name}}}" not in declared.endpoint.path
                    and name not in declared.endpoint.semantic.parameter_hints
                ):
                    fix = Fix(f"Rename it to {meant}", tuple(changes), safe=False)
            message = f"the parameter {brief(name)} is not in snake_case"
            yield NOT_SNAKE.at(declared.endpoint, pointer, message, advice, fix, on_key=True)
