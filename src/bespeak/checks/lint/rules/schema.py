"""J6xx: the schemas are valid, inputs are closed, outputs are open, errors have names (AGTP-API 6.3, 13.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.closing import closing_keyword, is_closed
from bespeak.contract.schema.compile import SchemaFault, compile_schema
from bespeak.contract.schema.members import Members, members_of
from bespeak.protocol.exchange.token_hints import LIST, read_place
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.change import Change
from bespeak.text.source.pointer import pointer

INVALID: Final = Rule(
    "J601",
    "invalid-schema",
    "MUST",
    "AGTP-API 6.3, 13.2",
    "input_schema and output_schema are valid JSON Schema 2020-12, with no reference to another document.",
    why="Without a schema that can be used no input is checked, and no agent knows what to send.",
    bad='[endpoint.output_schema]\ntype = "object"\nproperties = { price = { type = "float" } }\n',
    good='[endpoint.output_schema]\ntype = "object"\nproperties = { price = { type = "number" } }\n',
    notation="toml",
)
NOT_OBJECT: Final = Rule(
    "J602",
    "input-not-object",
    "MUST",
    "AGTP-API 6.3",
    "input_schema has type object.",
    why="The parameters of a path and of a body come together in one object; a list or a text has no room for them.",
    bad='[endpoint.input_schema]\ntype = "array"\nitems = { type = "string" }\n',
    good=(
        '[endpoint.input_schema]\ntype = "object"\n'
        'properties = { room_ids = { type = "array", items = { type = "string" } } }\n'
        "additionalProperties = false\n"
    ),
    notation="toml",
)
OPEN_INPUT: Final = Rule(
    "J603",
    "open-input",
    "MUST",
    "AGTP-API 6.3, 13.3",
    "input_schema sets additionalProperties to false.",
    fix="safe",
    why="A misspelled field would pass unnoticed, and whatever an agent adds would reach the handler.",
    bad='[endpoint.input_schema]\ntype = "object"\nproperties = { room_id = { type = "string" } }\n',
    good=(
        '[endpoint.input_schema]\ntype = "object"\n'
        'properties = { room_id = { type = "string" } }\n'
        "additionalProperties = false\n"
    ),
    notation="toml",
)
CLOSED_OUTPUT: Final = Rule(
    "J604",
    "closed-output",
    "SHOULD",
    "AGTP-API 6.3, 13.3",
    "output_schema leaves additionalProperties true, so that a field can be added without breaking callers.",
    fix="unsafe",
    why="Callers that check what they get refuse every field that is added later.",
    bad='[endpoint.output_schema]\ntype = "object"\nadditionalProperties = false\n',
    good='[endpoint.output_schema]\ntype = "object"\nadditionalProperties = true\n',
    notation="toml",
)
ERROR_NAME: Final = Rule(
    "J605",
    "error-name",
    "MUST",
    "AGTP-API 6.3",
    "An error has a name that works as an identifier in any language.",
    why="Callers branch on the name; one with blanks or signs cannot be written in a program.",
    bad='[endpoint]\nerrors = ["room unavailable!"]\n',
    good='[endpoint]\nerrors = ["room_unavailable"]\n',
    notation="toml",
)
REPEATED_ERROR: Final = Rule(
    "J606",
    "repeated-error",
    "MUST",
    "AGTP-API 6.3",
    "An error is declared once.",
    fix="unsafe",
    why="The second tells nothing new, or something else than the first.",
    bad='[endpoint]\nerrors = ["room_unavailable", "room_unavailable"]\n',
    good='[endpoint]\nerrors = ["room_unavailable", "room_unknown"]\n',
    notation="toml",
)
UNDECLARED_ERROR: Final = Rule(
    "J607",
    "undeclared-error",
    "MUST",
    "AGTP-API 6.3",
    "A handler refuses by no name but those its endpoint declares.",
    why="Callers prepare for the errors a contract names. Another one reaches them as a failure of the server.",
    bad=(
        '@app.endpoint("BOOK", "/room", impact="irreversible")\n'
        'def book_room(room_id: str) -> str:\n    """Book a room."""\n'
        '    raise Refusal("room_unavailable", "The room is taken.")\n'
    ),
    good=(
        '@app.endpoint("BOOK", "/room", impact="irreversible")\n'
        'def book_room(room_id: str) -> str:\n    """Book a room.\n\n    Errors:\n'
        '        room_unavailable: Somebody else has it.\n    """\n'
        '    raise Refusal("room_unavailable", "The room is taken.")\n'
    ),
    notation="python",
)
DEFAULT: Final = Rule(
    "J608",
    "default-against-schema",
    "MUST",
    "AGTP-API 6.3",
    "The default of an input property keeps its own schema.",
    why="Whoever leaves the field out gets a value that the endpoint itself refuses.",
    bad=(
        '[endpoint.input_schema]\ntype = "object"\n'
        'properties = { nights = { type = "integer", default = "one" } }\n'
        "additionalProperties = false\n"
    ),
    good=(
        '[endpoint.input_schema]\ntype = "object"\n'
        'properties = { nights = { type = "integer", default = 1 } }\n'
        "additionalProperties = false\n"
    ),
    notation="toml",
)
SINCE: Final = Rule(
    "J609",
    "since-names-nothing",
    "MUST",
    "AI-Discovery 3.5",
    "since names a text in output_schema that tells when an item, or the whole output, changed.",
    why="Callers who ask for what is new would get everything, or nothing, and take it for the truth.",
    bad=(
        '[endpoint]\nsince = "rooms.changed"\n\n[endpoint.output_schema]\ntype = "object"\n\n'
        '[endpoint.output_schema.properties.rooms]\ntype = "array"\n'
        'items = { type = "object", properties = { updated_at = { type = "string", format = "date-time" } } }\n'
    ),
    good=(
        '[endpoint]\nsince = "rooms[].updated_at"\n\n[endpoint.output_schema]\ntype = "object"\n\n'
        '[endpoint.output_schema.properties.rooms]\ntype = "array"\n'
        'items = { type = "object", properties = { updated_at = { type = "string", format = "date-time" } } }\n'
    ),
    notation="toml",
)
SINCE_OF_ACTION: Final = Rule(
    "J610",
    "since-of-an-action",
    "MUST",
    "AI-Discovery 3.5",
    "since is for endpoints that only inform.",
    why="Where a call changes something, an answer that leaves out what is not new would hide what was done.",
    bad='[endpoint]\nsince = "updated_at"\n\n[endpoint.semantic]\nimpact = "reversible"\n',
    good='[endpoint]\nsince = "updated_at"\n\n[endpoint.semantic]\nimpact = "informational"\n',
    notation="toml",
)

RULES: Final = (
    *(INVALID, NOT_OBJECT, OPEN_INPUT, CLOSED_OUTPUT, ERROR_NAME, REPEATED_ERROR, UNDECLARED_ERROR, DEFAULT),
    *(SINCE, SINCE_OF_ACTION),
)
"""J607 is found where the handler's source is at hand: in contracts written in Python."""

_DEFINING: Final = frozenset({"$defs", "definitions"})
"""Where the schemas of properties may refer to."""

_ERROR_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def check(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Findings about the schemas and the declared errors of one endpoint."""
    yield from _check_valid(endpoint, "input_schema", endpoint.input_schema)
    yield from _check_valid(endpoint, "output_schema", endpoint.output_schema)
    kind = endpoint.input_schema.get("type")
    if kind != "object":
        message = f"input_schema has type {brief(kind)}, and the input of an endpoint is an object"
        yield NOT_OBJECT.at(endpoint, "/input_schema/type", message, 'Set "type": "object".')
    if not is_closed(endpoint.input_schema):
        at, key = "/input_schema", "additionalProperties"
        written = key in endpoint.input_schema
        if not written:
            key = closing_keyword(endpoint.input_schema)
        change = Change("replace", f"{at}/{key}", False) if written else Change("insert", at, False, key=key)
        fix = Fix("Take no undeclared fields", (change,))
        message = "input_schema lets undeclared fields pass"
        yield OPEN_INPUT.at(endpoint, f"{at}/{key}", message, f'Set "{key}": false.', fix)
    if endpoint.output_schema.get("additionalProperties") is False:
        message = "output_schema forbids further fields, so adding one later breaks the contract"
        at = "/output_schema/additionalProperties"
        fix = Fix("Leave room for further fields", (Change("replace", at, True),), safe=False)
        yield CLOSED_OUTPUT.at(endpoint, at, message, 'Set "additionalProperties": true.', fix)
    yield from _check_defaults(endpoint)
    yield from _check_errors(endpoint)
    if endpoint.since is not None:
        yield from _check_since(endpoint, endpoint.since)


def _check_valid(endpoint: Endpoint, name: str, schema: Mapping[str, Any]) -> Iterator[Diagnostic]:
    compiled = compile_schema(schema)
    if isinstance(compiled, SchemaFault):
        message = f"{name} is no usable JSON Schema: {compiled.message}"
        yield INVALID.at(endpoint, f"/{name}{compiled.pointer}", message)


def _check_defaults(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Defaults that their own schemas forbid: nobody could leave the property out and have a valid input."""
    properties = endpoint.input_schema.get("properties")
    if not isinstance(properties, dict):
        return
    defaults = {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, dict) and "default" in schema
    }
    if not defaults:
        return
    # What is said of the whole input, required for one, says nothing of a single default.
    kept = {name: endpoint.input_schema[name] for name in _DEFINING & endpoint.input_schema.keys()}
    compiled = compile_schema({**kept, "properties": properties})
    if isinstance(compiled, SchemaFault):
        return  # J601 has said so, or a property refers to a part of the input that is left out here
    wrong: set[str] = set()
    for violation in compiled.violations(msgspec.json.decode(msgspec.json.encode(defaults))):
        name = next(name for name in defaults if (violation.pointer + "/").startswith(pointer([name]) + "/"))
        if name not in wrong:
            wrong.add(name)
            message = f"the default of {brief(name)} is {brief(defaults[name])}, which its schema forbids"
            yield DEFAULT.at(endpoint, f"/input_schema/properties{pointer([name])}/default", message)


def _check_errors(endpoint: Endpoint) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, name in enumerate(endpoint.error_names):
        if _ERROR_NAME.fullmatch(name) is None:
            message = f"{brief(name)} is no error name: a letter, then letters, digits, '_', '-' and '.'"
            yield ERROR_NAME.at(endpoint, f"/errors/{index}", message, "Write it like room_unavailable.")
        elif name in seen:
            fix = Fix("Remove the second entry", (Change("remove", f"/errors/{index}"),), safe=False)
            yield REPEATED_ERROR.at(
                endpoint, f"/errors/{index}", f"the error {name} is declared twice", "Remove one.", fix
            )
        seen.add(name)


def _check_since(endpoint: Endpoint, since: str) -> Iterator[Diagnostic]:
    place = read_place(since)
    if endpoint.semantic.impact != "informational":
        message = f"calls of this endpoint change something, and since is {brief(since)}"
        yield SINCE_OF_ACTION.at(endpoint, "/since", message, "Remove it, or give what only informs its own endpoint.")
    if place is None:
        advice = "Write members with dots between them, and [] behind a list: rooms[].updated_at."
        yield SINCE.at(endpoint, "/since", f"since is {brief(since)}, which is no place in an output", advice)
    elif not isinstance(compile_schema(endpoint.output_schema), SchemaFault):
        wrong = _misplaced(place, members_of(endpoint.output_schema))
        if wrong is not None:
            yield SINCE.at(endpoint, "/since", f"since is {brief(since)}, and {wrong}")


def _misplaced(place: tuple[str, ...], members: Members) -> str | None:
    """Why a place leads to no moment in an output."""
    here = "the output"
    for step in place:
        if step == LIST:
            if members.element is None or "array" not in members.types:
                return f"{here} is no list"
            members, here = members.element, f"an item of {here}"
        elif step not in members.names:
            there = ", ".join(list(members.names)[:10])
            return f"{here} declares no {brief(step)}{f': there are {there}' if there else ''}"
        else:
            members, here = members.below(step), brief(step)
    return None if not members.types or "string" in members.types else f"{here} is no text"
