"""J62x and J63x: the schemas of an AGIS document are valid, used and self-contained (AGIS 7, 8.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.contract.schema.safety import needs_backtracking
from bespeak.contract.schema.subschemas import REFERENCES, nodes, rewrite, target
from bespeak.contract.schema.validation import compile_schema
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, unquoted
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.pointer import ABSENT, child, pointer, unescaped, value_at
from bespeak.text.source.tree import Change

INVALID: Final = Rule("J625", "invalid-json-schema", "MUST", "AGIS 7, 9.1 pass 8, 13", fix="safe")
OUTSIDE: Final = Rule("J630", "reference-outside", "MUST", "AGIS 8.1, 13")
NOWHERE: Final = Rule("J631", "reference-to-nothing", "MUST", "AGIS 8.1, 9.1 pass 8", fix="unsafe")
UNUSED: Final = Rule("J632", "unused-schema", "style", "AGIS 8.1", fix="unsafe")

_TYPES: Final = {  # JSON Schema types by their names in other type systems.
    **dict.fromkeys(("int", "int32", "int64", "long", "integer32"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "real", "numeric"), "number"),
    **dict.fromkeys(("str", "text", "uuid", "date", "datetime", "date-time", "uri", "url", "email"), "string"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("dict", "map", "hash", "struct", "record"), "object"),
    **dict.fromkeys(("list", "tuple", "set", "sequence"), "array"),
    **dict.fromkeys(("none", "nil", "void"), "null"),
}
_MOST: Final = 20_000  # maximum number of parts of one schema to examine


def check_document(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
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
        yield from _check_valid(at, schema, whole)
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
        if count > _MOST:
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


def _check_valid(at: str, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[Diagnostic]:
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
    yield INVALID.inside(place, f"this is not a valid JSON Schema: {compiled.message}", advice)


def _no_type(place: str, value: str) -> Diagnostic:
    message = f"{brief(value)} is not a JSON Schema type"
    if (kind := _TYPES.get(value.lower())) is not None:
        return INVALID.inside(place, message, f"Write {kind}.", Fix(f"Write {kind}", (Change("replace", place, kind),)))
    known = tuple(dict.fromkeys(_TYPES.values()))
    near = get_close_matches(value[:40].lower(), known, n=1)
    advice = f"Did you mean {near[0]}?" if near else f"Write {', '.join(known[:-1])} or {known[-1]}."
    return INVALID.inside(place, message, advice)
