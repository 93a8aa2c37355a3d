"""X90x and X92x: texts do not instruct the model that reads them, and schemas are safe to process (AGIS 13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from bespeak.checks.lint.subject import Declared, LintContext, Subject
from bespeak.contract.schema.safety import HazardKind, find_hazards
from bespeak.contract.schema.subschemas import nodes
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.language import injection
from bespeak.text.reading.table import as_list, as_mapping
from bespeak.text.source.pointer import pointer
from bespeak.text.source.tree import Change

TOO_LONG: Final = Rule("X901", "text-too-long", "SHOULD", "AGIS 13")
INJECTION: Final = Rule("X902", "instruction-to-model", "SHOULD", "AGIS 13")
ADDRESSED: Final = Rule("X903", "speaks-to-the-reader", "SHOULD", "AGIS 13")
ROLE: Final = Rule("X904", "role-marker", "SHOULD", "AGIS 13")
INVISIBLE: Final = Rule("X905", "invisible-characters", "SHOULD", "AGIS 13", fix="safe")
LINK: Final = Rule("X906", "link-in-semantics", "SHOULD", "AGIS 13")
BLOB: Final = Rule("X907", "encoded-text", "SHOULD", "AGIS 13")
LOW_GUIDANCE: Final = Rule("X908", "artificially-low-confidence", "SHOULD", "AGIS 13, 6.2")
GAP: Final = Rule("X909", "hidden-behind-blanks", "SHOULD", "AGIS 13")

_LONGEST: Final = 500
_ARTIFICIAL: Final = 0.5
_GRAVE: Final = frozenset({"EXECUTE", "CANCEL", "TRANSFER"})
_ADVICE: Final = "Describe what the endpoint does, without instructions to the reader."
_SHORT: Final = 24  # length below which a text cannot hide encoded data or padding
_LONG_NAME: Final = 3  # underscores of a name that may be a sentence
_MOST: Final = 2_000  # maximum number of texts of one endpoint to examine


def check(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    endpoint = declared.endpoint
    for name in ("intent", "outcome"):
        text: object = getattr(endpoint.semantic, name)
        if isinstance(text, str) and text:
            at = f"/semantic/{name}"
            if len(text) > _LONGEST:
                message = f"the {name} has {len(text)} characters, more than {_LONGEST}"
                yield TOO_LONG.at(endpoint, at, message, "Keep one sentence, and move the rest to description.")
            for rule, message, advice, fix in examine_text(text, at, strict=True):
                yield rule.at(endpoint, at, f"the {name} {message}", advice, fix)
    texts = list(_texts(declared))
    # It is rare that the texts must be checked separately.
    if injection.may_be_suspect(" ".join([text for _, text in texts])):
        for parts, text in texts:
            at = pointer(parts)
            for rule, message, advice, fix in examine_text(text, at, strict=False):
                yield rule.at(endpoint, at, f"the text {message}", advice, fix)
    yield from _check_guidance(declared)


def check_document(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    """Check the texts of an AGIS document outside its endpoints."""
    if subject.kind != "agis":
        return
    for parts, text in _document_texts(subject.data):
        at = pointer(parts)
        for rule, message, advice, fix in examine_text(text, at, strict=False):
            yield rule.inside(at, f"the text {message}", advice, fix)


_Found = tuple[Rule, str, str, Fix | None]


def examine_text(text: str, at: str, *, strict: bool) -> Iterator[_Found]:
    """Check a text: strictly in an intent or outcome, elsewhere only for what is never legitimate."""
    if text.isascii() and text.isidentifier() and text.islower() and text.count("_") < _LONG_NAME:
        return  # a short name says nothing, and most texts of a schema are short names
    if (clean := injection.visible(text)) is not None:
        count = len(text) - len(clean)
        fix = Fix("Remove the invisible characters", (Change("replace", at, clean),))
        yield INVISIBLE, f"holds {count} invisible character{'s' * (count > 1)}", "Remove them.", fix
    if injection.may_inject(text):
        yield from _words(text, strict=strict, field="_schema" in at or at.startswith("/schemas"))
    if (strict or at.startswith("/semantic/parameter_hints")) and (address := injection.link(text)) is not None:
        yield LINK, f"contains a link or markup: {brief(address)}", "Move addresses to description.", None
    if len(text) >= _SHORT:
        if (coded := injection.blob(text)) is not None:
            yield BLOB, f"contains encoded text: {brief(coded)}", "Write it in plain words, or remove it.", None
        if injection.gap(text):
            yield GAP, "continues after a long blank", "Remove the blank, and check the text after it.", None


def _words(text: str, *, strict: bool, field: bool) -> Iterator[_Found]:
    if (found := injection.instruction(text, field=field)) is not None:
        yield INJECTION, f"{found.kind}: {brief(found.text)}", _ADVICE, None
    elif strict and (words := injection.addressed(text)) is not None:
        yield ADDRESSED, f"addresses its reader: {brief(words)}", _ADVICE, None
    if (marker := injection.role_marker(text, strict=strict)) is not None:
        yield ROLE, f"contains a role marker: {brief(marker)}", _ADVICE, None


_Texts = Iterator[tuple[Sequence[str | int], str]]


def _texts(declared: Declared) -> _Texts:
    """Yield the other texts of an endpoint that an agent may read, with their places."""
    endpoint = declared.endpoint
    description: object = endpoint.description
    if isinstance(description, str) and description != endpoint.semantic.intent:
        # Without a description the intent is used.
        yield ("description",), description
    hints: object = endpoint.semantic.parameter_hints
    if isinstance(hints, dict):
        for name, phrases in list(hints.items())[:_MOST]:
            at = ("semantic", "parameter_hints", name)
            for index, phrase in enumerate(phrases[:_MOST] if isinstance(phrases, list) else (phrases,)):
                if isinstance(phrase, str):
                    yield ((*at, index) if isinstance(phrases, list) else at), phrase
    for index, error in enumerate(endpoint.errors[:_MOST]):
        if error.description:
            yield ("errors", index, "description"), error.description
    yield from _schema_texts(("input_schema",), endpoint.input_schema)
    yield from _schema_texts(("output_schema",), endpoint.output_schema)


def _schema_texts(at: tuple[str, ...], schema: Any) -> _Texts:
    if not isinstance(schema, dict):
        return
    for count, (parts, node) in enumerate(nodes(schema)):
        if count > _MOST:
            return
        here = (*at, *parts)
        for key in ("description", "title", "$comment", "default", "const"):
            text = node.get(key)
            if isinstance(text, str):
                yield (*here, key), text
        for key in ("enum", "examples", "required"):
            if isinstance(values := node.get(key), list):
                yield from (((*here, key, n), text) for n, text in enumerate(values[:_MOST]) if isinstance(text, str))
        if isinstance(properties := node.get("properties"), dict):
            yield from (((*here, "properties", name), name) for name in list(properties)[:_MOST])


def _document_texts(data: Any) -> _Texts:
    yield from (((key,), data[key]) for key in ("service", "description") if isinstance(data.get(key), str))
    domain = as_mapping(data.get("vocabulary")).get("domain")
    if isinstance(domain, str):
        yield ("vocabulary", "domain"), domain
    classes = as_list(as_mapping(data.get("data_manifest")).get("available_data"))
    for index, entry in enumerate(classes[:_MOST]):
        for key in ("class", "description"):
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                yield ("data_manifest", "available_data", index, key), entry[key]
    for name, schema in list(as_mapping(data.get("schemas")).items())[:_MOST]:
        yield from _schema_texts(("schemas", name), schema)


def _check_guidance(declared: Declared) -> Iterator[Diagnostic]:
    semantic = declared.semantic
    guidance = semantic.get("confidence_guidance")
    if not isinstance(guidance, int | float) or isinstance(guidance, bool) or not 0 <= guidance < _ARTIFICIAL:
        return
    impact = semantic.get("impact_tier", semantic.get("impact"))
    if impact == "irreversible" or (impact is None and declared.endpoint.method in _GRAVE):
        message = f"the endpoint is irreversible, but its confidence is only {guidance}"
        advice = "Write confidence_guidance: 0.85, or more."
        yield LOW_GUIDANCE.at(declared.endpoint, "/semantic/confidence_guidance", message, advice)


_HAZARDS: Final[dict[HazardKind, Rule]] = {
    "slow-pattern": Rule("X920", "slow-pattern", "SHOULD", "AGIS 13"),
    "backtracking": Rule("X921", "pattern-needs-backtracking", "SHOULD", "AGIS 13"),
    "alternatives": Rule("X922", "schema-explodes", "SHOULD", "AGIS 13"),
    "oversized": Rule("X923", "oversized-schema", "SHOULD", "AGIS 13"),
    "dynamic": Rule("X924", "moving-reference", "SHOULD", "AGIS 13"),
    "circle": Rule("X925", "circular-reference", "SHOULD", "AGIS 13"),
}

_SUSPECT: Final = (b'"pattern', b'Of"', b"$ref", b"$dynamic", b"$recursive", b"$id")
_LARGE: Final = 2_000  # size in bytes below which a schema without the words above is not examined
_BRACES: Final = 20  # number of opening braces from which a schema is examined


def check_schemas(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    endpoint = declared.endpoint
    for name, schema in (("/input_schema", endpoint.input_schema), ("/output_schema", endpoint.output_schema)):
        try:
            text = msgspec.json.encode(schema)
        except (TypeError, ValueError, RecursionError):
            continue  # values that are not JSON are refused elsewhere
        if len(text) > _LARGE or text.count(b"{") > _BRACES or any(word in text for word in _SUSPECT):
            for trap in find_hazards(schema):
                yield _HAZARDS[trap.kind].at(endpoint, f"{name}{trap.at}", trap.message, trap.advice)
