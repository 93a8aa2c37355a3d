"""J60x, J62x to J64x: schemas are valid, self-contained and used, tool names unique (AGTP-API 6.3, AGIS 6 to 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from bespeak.checks.lint.subject import Declared, LintContext, Subject
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import default_tool_name
from bespeak.contract.policy import is_of_server
from bespeak.contract.schema.safety import needs_backtracking
from bespeak.contract.schema.subschemas import COMPOSING, REFERENCES, closing_keyword, is_closed, nodes, rewrite, target
from bespeak.contract.schema.validation import compile_schema
from bespeak.contract.schema.view import Members, members_of
from bespeak.protocol.exchange.refusal import Fault
from bespeak.protocol.exchange.token_hints import LIST, read_place
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, unquoted
from bespeak.text.identifiers import snake
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.pointer import ABSENT, child, pointer, unescaped, value_at
from bespeak.text.source.shorthand import KEYWORDS
from bespeak.text.source.tree import Change

INVALID: Final = Rule("J601", "invalid-schema", "MUST", "AGTP-API 6.3, 13.2")
NOT_OBJECT: Final = Rule("J602", "input-not-object", "MUST", "AGTP-API 6.3")
OPEN_INPUT: Final = Rule("J603", "open-input", "MUST", "AGTP-API 6.3, 13.3", fix="safe")
CLOSED_OUTPUT: Final = Rule("J604", "closed-output", "SHOULD", "AGTP-API 6.3, 13.3", fix="unsafe")
DEFAULT: Final = Rule("J608", "default-against-schema", "MUST", "AGTP-API 6.3")
SINCE: Final = Rule("J609", "since-names-nothing", "MUST", "AI-Discovery 3.5")
SINCE_OF_ACTION: Final = Rule("J610", "since-of-an-action", "MUST", "AI-Discovery 3.5")

NO_INPUT: Final = Rule("J620", "missing-input", "MUST", "AGIS 7, 9.1 pass 8")
NO_OUTPUT: Final = Rule("J621", "missing-output", "MUST", "AGIS 7, 9.1 pass 8")
INPUT_NOT_NAMED: Final = Rule("J623", "input-no-object", "MUST", "AGIS 7")
UNKNOWN_REQUIRED: Final = Rule("J624", "required-without-property", "SHOULD", "AGIS 7")
NO_REQUIRED: Final = Rule("J627", "no-required-list", "MUST", "AGIS 7", fix="unsafe")
NOT_SNAKE: Final = Rule("J628", "parameter-not-snake-case", "SHOULD", "AGIS 7", fix="unsafe")
PATH_PARAMETER: Final = Rule("J629", "path-parameter-not-in-input", "SHOULD", "AGIS 5(f), 7", fix="unsafe")

_COMPOSING: Final = COMPOSING | {"patternProperties"}  # keywords that may add properties to those listed
_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]{1,64})\}")
_MOST: Final = 50  # maximum number of names of one schema in a message
_DEEPEST: Final = 8  # maximum depth of nested alternatives that are searched for `required`
_DEFINING: Final = frozenset({"$defs", "definitions"})  # keywords with definitions that properties may refer to


def check_endpoint(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Check the schemas of one endpoint as registration does."""
    yield from _check_valid(endpoint, "input_schema", endpoint.input_schema)
    yield from _check_valid(endpoint, "output_schema", endpoint.output_schema)
    kind = endpoint.input_schema.get("type")
    if kind != "object":
        message = f"input_schema must have type object; got {brief(kind)}"
        yield NOT_OBJECT.at(endpoint, "/input_schema/type", message, 'Set "type": "object".')
    if not is_closed(endpoint.input_schema):
        at, key = "/input_schema", "additionalProperties"
        written = key in endpoint.input_schema
        if not written:
            key = closing_keyword(endpoint.input_schema)
        change = Change("replace", f"{at}/{key}", False) if written else Change("insert", at, False, key=key)
        fix = Fix("Refuse undeclared fields", (change,))
        message = "input_schema allows undeclared fields"
        yield OPEN_INPUT.at(endpoint, f"{at}/{key}", message, f'Set "{key}": false.', fix)
    if endpoint.output_schema.get("additionalProperties") is False:
        message = "output_schema forbids further fields, so adding one later breaks the contract"
        at = "/output_schema/additionalProperties"
        fix = Fix("Allow further fields", (Change("replace", at, True),), safe=False)
        yield CLOSED_OUTPUT.at(endpoint, at, message, 'Set "additionalProperties": true.', fix)
    yield from _check_defaults(endpoint)
    if endpoint.since is not None:
        yield from _check_since(endpoint, endpoint.since)


def _check_valid(endpoint: Endpoint, name: str, schema: Mapping[str, Any]) -> Iterator[Diagnostic]:
    compiled = compile_schema(schema)
    if isinstance(compiled, Fault):
        yield INVALID.at(endpoint, f"/{name}{compiled.at}", f"{name} is not a valid JSON Schema: {compiled.message}")


def _check_defaults(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Validate each default against its own schema: otherwise omitting the property makes the input invalid."""
    properties = as_mapping(endpoint.input_schema.get("properties"))
    defaults = {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, dict) and "default" in schema
    }
    if not defaults:
        return
    # Keywords of the whole input, such as required, do not apply to a single default.
    kept = {name: endpoint.input_schema[name] for name in _DEFINING & endpoint.input_schema.keys()}
    compiled = compile_schema({**kept, "properties": properties})
    if isinstance(compiled, Fault):
        return  # J601 reports it, or a property refers to a part of the input that is omitted here
    wrong: set[str] = set()
    for violation in compiled.violations(msgspec.json.decode(msgspec.json.encode(defaults))):
        name = next(name for name in defaults if (violation.pointer + "/").startswith(pointer([name]) + "/"))
        if name not in wrong:
            wrong.add(name)
            message = f"the default of {brief(name)} is {brief(defaults[name])}, which its schema forbids"
            yield DEFAULT.at(endpoint, f"/input_schema/properties{pointer([name])}/default", message)


def _check_since(endpoint: Endpoint, since: str) -> Iterator[Diagnostic]:
    place = read_place(since)
    if endpoint.semantic.impact != "informational":
        message = f"calls of this endpoint change something, and since is {brief(since)}"
        yield SINCE_OF_ACTION.at(endpoint, "/since", message, "Remove it, or add an informational endpoint.")
    if place is None:
        advice = "Write members with dots between them, and [] behind a list: rooms[].updated_at."
        yield SINCE.at(endpoint, "/since", f"since is {brief(since)}, which is not a valid place in an output", advice)
    elif not isinstance(compile_schema(endpoint.output_schema), Fault):
        wrong = _misplaced(place, members_of(endpoint.output_schema))
        if wrong is not None:
            yield SINCE.at(endpoint, "/since", f"since is {brief(since)}, and {wrong}")


def _misplaced(place: tuple[str, ...], members: Members) -> str | None:
    """Explain why a pointer does not refer to a time in an output; return None if it does."""
    here = "the output"
    for step in place:
        if step == LIST:
            if members.element is None or "array" not in members.types:
                return f"{here} is not a list"
            members, here = members.element, f"an item of {here}"
        elif step not in members.names:
            there = ", ".join(list(members.names)[:10])
            return f"{here} declares no {brief(step)}{f': there are {there}' if there else ''}"
        else:
            members, here = members.below(step), brief(step)
    return None if not members.types or "string" in members.types else f"{here} is not a string"


def check(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    """Check the input and the output of one endpoint as pass 8 does."""
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
        message = f"the input must have type object; got {brief(kind)}"
        yield INPUT_NOT_NAMED.at(declared.endpoint, "/input_schema/type", message, "Write type: object.")
        return
    bare = _bare_parameter(schema) if context.agis else None
    if bare is not None:
        message = f"{brief(bare)} is declared outside `properties`, so it is not a parameter"
        advice = f"Write properties: {{{unquoted(bare)}: {{type: ...}}}}, and type: object."
        yield INPUT_NOT_NAMED.at(declared.endpoint, child("/input_schema", bare), message, advice)
        return
    yield from _check_parameters(declared, context, schema)


def _bare_parameter(schema: Mapping[str, Any]) -> str | None:
    if "properties" in schema or not _COMPOSING.isdisjoint(schema):
        return None
    for key, value in schema.items():
        described = isinstance(value, str) or (isinstance(value, dict) and not {"type", "$ref"}.isdisjoint(value))
        # Keywords of others are allowed in JSON Schema; OpenAPI's `example` may be a text.
        if described and key not in KEYWORDS and key != "example" and not key.startswith("x-"):
            return key
    return None


def _check_parameters(declared: Declared, context: LintContext, schema: Mapping[str, Any]) -> Iterator[Diagnostic]:
    properties = as_mapping(schema.get("properties"))
    if properties:
        yield from _check_names(declared.endpoint, properties, schema.get("required"))
        if not _names_required(schema):
            message = "the input has no `required`"
            advice = "Add required: [...], or required: [] if none is."
            fix = Fix("Add an empty list", (Change("insert", "/input_schema", [], key="required"),), safe=False)
            found = NO_REQUIRED.at(declared.endpoint, "/input_schema", message, advice, fix)
            # Elsewhere the plain meaning of JSON Schema applies: what is not required is optional.
            yield found if context.agis else replace(found, severity="info")
    yield from _check_required(declared, schema, "/input_schema")
    if context.agis and "{" in declared.endpoint.path and _COMPOSING.isdisjoint(schema):
        for name in _PARAMETER.findall(declared.endpoint.path)[:_MOST]:
            if name not in properties:
                message = f"the path parameter {{{name}}} is not a property of the input"
                fix = Fix(f"Add the property {name}", _with_property(schema, name), safe=False)
                yield PATH_PARAMETER.at(declared.endpoint, "/path", message, f"Add the property {name}.", fix)


def _names_required(schema: Mapping[str, Any], depth: int = 0) -> bool:
    """Return True if a schema, or one that it applies to the same value, has `required`; references may."""
    if "required" in schema or "$ref" in schema or "$dynamicRef" in schema or depth > _DEEPEST:
        return True
    parts = [schema[key] for key in ("if", "then", "else") if isinstance(schema.get(key), dict)]
    lists = [schema[key] for key in ("allOf", "anyOf", "oneOf") if isinstance(schema.get(key), list)]
    parts += [part for entries in lists for part in entries if isinstance(part, dict)]
    return any(_names_required(part, depth + 1) for part in parts)


def _with_property(schema: Mapping[str, Any], name: str) -> tuple[Change, ...]:
    made, at = {"type": "string"}, "/input_schema"
    if not schema:
        return (Change("replace", at, {"type": "object", "properties": {name: made}, "required": [name]}),)
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
            message = f"`required` names {brief(name)}, which is not a property"
            advice = "Declare it under properties, or remove it from the list."
            yield UNKNOWN_REQUIRED.at(declared.endpoint, f"{at}/required/{index}", message, advice)


def _check_names(endpoint: Endpoint, properties: Mapping[str, Any], required: object) -> Iterator[Diagnostic]:
    for name in list(properties)[:_MOST]:
        if _SNAKE.fullmatch(name) is None:
            meant = snake(name[:100])
            advice, fix = "Write it like party_size.", None
            pointer = child("/input_schema/properties", name)
            if _SNAKE.fullmatch(meant):
                advice = f"Write {meant}."
                changes = [Change("rename", pointer, key=meant)]
                if isinstance(required, list) and name in required:
                    changes.append(Change("replace", f"/input_schema/required/{required.index(name)}", meant))
                # If the path or a hint uses the name too, the author must change them together.
                if f"{{{name}}}" not in endpoint.path and name not in endpoint.semantic.parameter_hints:
                    fix = Fix(f"Rename it to {meant}", tuple(changes), safe=False)
            message = f"the parameter {brief(name)} is not in snake_case"
            yield NOT_SNAKE.at(endpoint, pointer, message, advice, fix, on_key=True)


TAKEN: Final = Rule("J645", "mcp-tool-name-taken", "MUST", "AGIS 6.2")
SAME_DEFAULT: Final = Rule("J646", "same-default-tool-name", "SHOULD", "AGIS 6.2, C.2(a)")


def check_document(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    """Find tool names that two endpoints share."""
    takers: dict[str, Declared] = {}
    for declared in subject.endpoints:
        endpoint = declared.endpoint
        if subject.kind == "manifest" and is_of_server(*endpoint.key, endpoint.namespace):
            continue  # every server has it, and none serves it as a tool
        chosen = endpoint.semantic.mcp_tool_name
        name = chosen or default_tool_name(endpoint.method, endpoint.path)
        first = takers.setdefault(name, declared)
        if first is declared or first.endpoint.key == endpoint.key:
            continue  # a duplicate endpoint has its own finding
        if chosen or first.endpoint.semantic.mcp_tool_name:
            at = declared if chosen else first
            message = f"{endpoint}: the MCP tool would be named {brief(name)}, as that of {first.endpoint} is"
            yield TAKEN.inside(at.pointer("/semantic/mcp_tool_name"), message, "Write another mcp_tool_name.")
        else:
            message = f"{endpoint}: its MCP tool would be named {name}, as that of {first.endpoint} is"
            yield SAME_DEFAULT.inside(declared.pointer("/path"), message, "Give one of them an mcp_tool_name.")


INVALID_SHARED: Final = Rule("J625", "invalid-json-schema", "MUST", "AGIS 7, 9.1 pass 8, 13", fix="safe")
OUTSIDE: Final = Rule("J630", "reference-outside", "MUST", "AGIS 8.1, 13")
NOWHERE: Final = Rule("J631", "reference-to-nothing", "MUST", "AGIS 8.1, 9.1 pass 8", fix="unsafe")
UNUSED: Final = Rule("J632", "unused-schema", "style", "AGIS 8.1", fix="unsafe")

_MOST_PARTS: Final = 20_000  # maximum number of parts of one schema to examine


def check_shared(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    """Check the schemas of an AGIS document and their references."""
    if subject.kind != "agis":
        return
    shared = as_mapping(subject.data.get("schemas"))
    used: set[str] = set()
    broken = False
    plain: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
    for at, schema, whole in _schemas(subject, shared):
        findings = []
        text = msgspec.json.encode(schema)
        if b"$ref" in text or b"$dynamicRef" in text:
            findings = list(_check_refs(at, schema, shared, used))
            broken = broken or bool(findings)
            yield from findings
        if not findings:
            plain.append((at, schema, whole))
    for at, schema, whole in plain:
        if broken and b"$ref" in msgspec.json.encode(whole):
            continue  # the referenced schema has its own finding
        yield from _check_shared_schema(at, schema, whole)
    for name in shared:
        if name not in used:
            place = child("/schemas", name)
            fix = Fix(f"Remove {unquoted(name)}", (Change("remove", place),), safe=False)
            message = f"no endpoint uses the schema {brief(name)}"
            advice = f"Refer to it with $ref: '#/schemas/{unquoted(name)}', or remove it."
            yield UNUSED.inside(place, message, advice, fix, on_key=True)


def _schemas(subject: Subject, shared: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield every schema of the document: its place, its source form, and its resolved form."""
    for declared in subject.endpoints:
        endpoint = declared.endpoint
        for name, whole in (("input", endpoint.input_schema), ("output", endpoint.output_schema)):
            schema = declared.written.get(name)
            if isinstance(schema, dict) and schema:
                yield declared.pointer(f"/{name}_schema"), schema, whole
    for name, schema in shared.items():
        if isinstance(schema, dict) and schema:
            # Without its references to others, which are checked themselves: following those of each schema would take
            # quadratic time for a long chain.
            alone = rewrite(schema, lambda reference: None if reference.startswith("#/schemas/") else reference)
            yield child("/schemas", name), schema, alone


def _check_refs(at: str, schema: Mapping[str, Any], shared: Mapping[str, Any], used: set[str]) -> Iterator[Diagnostic]:
    for count, (parts, node) in enumerate(nodes(dict(schema))):
        if count > _MOST_PARTS:
            return
        for keyword in REFERENCES:
            reference = node.get(keyword)
            if reference is None:
                continue
            place = at + pointer((*parts, keyword))
            if not isinstance(reference, str) or not reference.startswith("#"):
                message = f"{keyword} refers to another document: {brief(reference)}"
                yield OUTSIDE.inside(place, message, "Copy the schema to schemas, and refer to it as '#/schemas/NAME'.")
            elif reference.startswith("#/schemas/"):
                name = unescaped(unquote(reference).removeprefix("#/schemas/").partition("/")[0])
                used.add(name)
                if name not in shared or target(reference, {"schemas": shared}, ABSENT) is ABSENT:
                    yield _nowhere(place, reference, name, shared)
            elif reference.startswith("#/") and target(reference, schema, ABSENT) is ABSENT:
                yield _nowhere(place, reference, reference.rpartition("/")[2], shared)


def _nowhere(place: str, reference: str, name: str, shared: Mapping[str, Any]) -> Diagnostic:
    meant = next((other for other in list(shared)[:1_000] if other.lower() == name.lower()), None)
    message = f"{brief(reference)} has no target in the document"
    if meant is None:
        define = "Define it under schemas, and refer to it as '#/schemas/NAME'."
        known = f"The shared schemas are {', '.join(list(shared)[:8])}." if shared else define
        return NOWHERE.inside(place, message, known)
    fix = Fix(f"Refer to {meant}", (Change("replace", place, f"#/schemas/{meant}"),), safe=False)
    return NOWHERE.inside(place, message, f"Did you mean #/schemas/{meant}?", fix)


def _check_shared_schema(at: str, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[Diagnostic]:
    compiled = compile_schema(whole)
    if not isinstance(compiled, Fault):
        return
    value = value_at(schema, compiled.at, ABSENT)
    if value is ABSENT:
        return  # the fault is in a shared schema, which is checked separately
    above, _, last = compiled.at.rpartition("/")
    pattern = value if last == "pattern" else last if above.endswith("/patternProperties") else None
    if isinstance(pattern, str) and needs_backtracking(unescaped(pattern)):
        return  # JSON Schema allows it; X921 says what it costs
    place = at + compiled.at
    if isinstance(value, str) and last == "type":
        yield _no_type(place, value)
        return
    advice = "Write it as JSON Schema 2020-12 defines it."
    if isinstance(value, bool) and last == "required":
        advice = "`required` is a list of names beside `properties`."
    yield INVALID_SHARED.inside(place, f"this is not a valid JSON Schema: {compiled.message}", advice)


def _no_type(place: str, value: str) -> Diagnostic:
    message = f"{brief(value)} is not a JSON Schema type"
    from bespeak.text.language.sentence import names  # noqa: PLC0415 - a server that is not asked does without English

    types = names("json-types")
    if (kind := types.get(value.lower())) is not None:
        return INVALID_SHARED.inside(
            place, message, f"Write {kind}.", Fix(f"Write {kind}", (Change("replace", place, kind),))
        )
    known = tuple(dict.fromkeys(types.values()))
    near = get_close_matches(value[:40].lower(), known, n=1)
    advice = f"Did you mean {near[0]}?" if near else f"Write {', '.join(known[:-1])} or {known[-1]}."
    return INVALID_SHARED.inside(place, message, advice)
