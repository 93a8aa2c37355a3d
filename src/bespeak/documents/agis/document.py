"""An AGIS document (AGIS 8), and the service it describes. Its endpoints have no handlers until they are bound."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any, Final, Literal

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import is_method_name
from bespeak.contract.limits import read_cost
from bespeak.contract.policy import LEGACY_VERBS, MethodPolicy, Policies
from bespeak.contract.rules import COST
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.service import UNSPECIFIED, DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.documents.agis.shape import (
    MOST_BROUGHT,
    SharedSchemas,
    declared_endpoints,
    read_data_manifest,
    read_endpoint,
    read_vocabulary,
)
from bespeak.documents.rules import (
    ADDRESS,
    EMPTY_ENDPOINTS,
    ENDPOINTS_NOT_ARRAY,
    MISSING_FIELD,
    NOT_AN_OBJECT,
    RECOMMENDED_FIELD,
    UNKNOWN_FIELD,
    UNSUPPORTED_VERSION,
    WRONG_TYPE,
)
from bespeak.documents.schemas import load_schema
from bespeak.protocol.address import AUTHORITY
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, brief, unquoted
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.reading.table import as_list, as_mapping, as_optional_text, as_text, kind
from bespeak.text.source.pointer import child, unescaped, value_at
from bespeak.text.source.shorthand import expand_tree
from bespeak.text.source.tree import Change, Tree

_Block = dict[str, Any]
_MOST: Final = 100  # limit of reported findings: a broken document can break every rule in every line

_RECOMMENDED: Final = {
    "description": "Say in a sentence what the service is for.",
    "version": 'Give the version of the service: version: "1.0.0".',
}
_ADVICE: Final = {
    "agis": 'Write agis: "1.0".',
    "service": "Give the name of the service, for people.",
    "agtp": "Give the address of the service: agtp://host.",
    "endpoints": "Define at least one endpoint.",
    "vocabulary": "List the verbs of the endpoints: vocabulary: {declared_verbs: [...]}.",
    "method": "Write the verb: method: BOOK.",
    "path": "Write what the method works on: path: /room.",
    "deprecated_in": "Say since which version.",
}
_REQUIRED: Final = (  # Their empty value counts as missing, not as a wrong type; this pass or a later one reports it.
    *(*_ADVICE, "semantic", "intent", "actor", "outcome", "input", "output", "errors", "name"),
    *("declared_verbs", "available_data", "class"),
)

_OTHER_NAMES: Final = {  # Common wrong names of fields that a spelling comparison would not find.
    "impact": "impact_tier",
    "idempotent": "is_idempotent",
    **dict.fromkeys(("input_schema", "inputs", "parameters", "params"), "input"),
    **dict.fromkeys(("output_schema", "outputs", "response"), "output"),
    **dict.fromkeys(("verbs", "methods"), "declared_verbs"),
    "scopes": "required_scopes",
    **dict.fromkeys(("name", "title"), "service"),
    **dict.fromkeys(("address", "url"), "agtp"),
    "tool_name": "mcp_tool_name",
}

_NUMBER: Final = re.compile(r"[-+.:0-9A-Za-z_]+")
_PLURALS: Final = {"array": "a list", "object": "a mapping", "integer": "an integer"}


def check_structure(tree: Tree) -> list[Diagnostic]:
    """Return the findings of the first pass, in the order of the document's parts."""
    data = tree.data
    if not isinstance(data, dict):
        message = "the document is empty" if data is None else f"the document is {_kind(data)}, not a mapping"
        return [NOT_AN_OBJECT.in_tree(tree, "", message, 'It starts with agis: "1.0" and the name of the service.')]
    return list(islice(_findings(tree, data), _MOST))


def _findings(tree: Tree, data: dict[str, Any]) -> Iterator[Diagnostic]:
    yield from _check_header(tree, data)
    entries = list(declared_endpoints(data.get("endpoints")))
    if not _validator("whole").is_valid(data):
        rest = {key: value for key, value in data.items() if key not in _HEADER}
        yield from _wrong_types(tree, rest, "", _validator("head"))
        for index, entry in enumerate(as_list(data.get("endpoints"))):
            if not isinstance(entry, dict):
                yield _wrong_type(tree, f"/endpoints/{index}", f"endpoint {index + 1}", entry, ["object"])
        for at, entry in entries:
            yield from _check_entry(tree, entry, at)
    for at, entry in entries:
        for fault in read_cost(as_mapping(entry.get("cost")))[1]:
            place = child(child(at, "cost"), fault.at)
            yield COST.found(fault.message, tree.locate(place), place, 'Write it like tokens: 500 or USD: "0.02".')
    definitions = load_schema("agis")
    for at, part, schema in _known_parts(data, entries):
        yield from _unknown_fields(tree, at, part, value_at(definitions, schema)["properties"])


_HEADER: Final = ("agis", "service", "agtp", "description", "version", "endpoints")
"""Fields that are checked one by one, for findings that are more specific than a type error."""


def _check_header(tree: Tree, data: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for key in load_schema("agis")["required"]:
        if key == "endpoints" and data.get(key) in ([], {}):
            yield EMPTY_ENDPOINTS.in_tree(tree, "/endpoints", "the document defines no endpoint", _ADVICE[key])
        elif _is_empty(data.get(key)):
            yield _missing(tree, data, key, "")
    for key, advice in _RECOMMENDED.items():
        if _is_empty(data.get(key)):
            at = child("", key) if key in data else ""
            yield RECOMMENDED_FIELD.in_tree(tree, at, f"`{key}` is {'empty' if key in data else 'missing'}", advice)
    for key in ("service", "agtp", *_RECOMMENDED):
        value = data.get(key)
        if not _is_empty(value) and not isinstance(value, str):
            yield _wrong_type(tree, f"/{key}", f"`{key}`", value, ["string"])
    yield from _check_version(tree, data.get("agis"))
    address = data.get("agtp")
    if isinstance(address, str) and address.strip() and not _validator("address").is_valid(address):
        advice = "Write it as agtp://host, for example agtp://rooms.acme.example."
        message = f"`agtp` is {brief(address)}, which is not a valid AGTP address"
        yield ADDRESS.in_tree(tree, "/agtp", message, advice, _with_scheme(address))
    endpoints = data.get("endpoints")
    if not _is_empty(endpoints) and not isinstance(endpoints, list):
        message = f"`endpoints` is {_kind(endpoints)}; AGIS 8.1 requires an array of definitions"
        advice = "Make each endpoint an entry with `method` and `path`; `bespeak format` does it for a mapping."
        yield ENDPOINTS_NOT_ARRAY.in_tree(tree, "/endpoints", message, advice)


def _with_scheme(address: str) -> Fix | None:
    scheme, mark, host = address.strip().partition("://")
    meant = f"agtp://{host if mark else scheme}"
    if not _validator("address").is_valid(meant) or any(sign.isspace() for sign in meant):
        return None
    return Fix(f"Write {unquoted(meant)}", (Change("replace", "/agtp", meant),), safe=False)


def _check_version(tree: Tree, version: object) -> Iterator[Diagnostic]:
    if _is_empty(version) or version == "1.0":
        return
    if isinstance(version, int | float) and version == 1 and not isinstance(version, bool):
        fix = Fix('Write "1.0"', (Change("replace", "/agis", "1.0"),))
        message = f"`agis` is the number {version}; a version must be a string"
        yield UNSUPPORTED_VERSION.in_tree(tree, "/agis", message, 'Write it in quotes: "1.0".', fix)
    else:
        message = f'`agis` is {brief(version)}; the version must be "1.0"'
        yield UNSUPPORTED_VERSION.in_tree(tree, "/agis", message, 'Write agis: "1.0".')


def _check_entry(tree: Tree, entry: Mapping[str, Any], at: str) -> Iterator[Diagnostic]:
    yield from (_missing(tree, entry, key, at) for key in ("method", "path") if _is_empty(entry.get(key)))
    deprecated = entry.get("deprecated")
    if isinstance(deprecated, dict) and _is_empty(deprecated.get("deprecated_in")):
        yield _missing(tree, deprecated, "deprecated_in", child(at, "deprecated"))
    yield from _wrong_types(tree, entry, at, _validator("entry"))


def _wrong_types(tree: Tree, value: Any, at: str, validator: Validator) -> Iterator[Diagnostic]:
    if validator.is_valid(value):
        return
    for violation in validator.violations(value):
        wrong = value_at(value, violation.pointer)
        name = unescaped(violation.pointer.rpartition("/")[2])
        absent = wrong is None or (name in _ADVICE and _is_empty(wrong))
        if violation.keyword == "type" and not (absent and name in _REQUIRED):
            said = f"`{unquoted(name)}`" if not name.isdecimal() else f"item {int(name) + 1}"
            wanted = value_at(load_schema("agis"), violation.schema_pointer)
            kinds = [wanted] if isinstance(wanted, str) else list(wanted)
            yield _wrong_type(tree, at + violation.pointer, said, wrong, kinds)


def _wrong_type(tree: Tree, at: str, said: str, value: object, wanted: list[str]) -> Diagnostic:
    names = " or ".join(_PLURALS.get(name, f"a {name}") for name in wanted)
    advice, fix = "", None
    if wanted[0] == "string" and isinstance(value, int | float | bool):
        text = _written(tree, at, value)
        advice = f'Write it in quotes: "{text}".'
        fix = Fix(f'Write "{text}"', (Change("replace", at, text),))
    elif wanted[0] == "boolean" and isinstance(value, str) and value.lower() in _WORDS:
        meant = _WORDS[value.lower()]
        advice = f"Write {str(meant).lower()}."
        fix = Fix(f"Write {str(meant).lower()}", (Change("replace", at, meant),))
    elif value is None:
        advice = "Give it a value, or remove the key."
    else:
        advice = _FORMS.get(wanted[0], f"Write {names}.")
    return WRONG_TYPE.in_tree(tree, at, f"{said} is {_kind(value)}, not {names}: {brief(value)}", advice, fix)


_FORMS: Final = {"array": "Write a list: [...].", "object": "Write a mapping: a name and a value in each line below."}
_WORDS: Final = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


def _written(tree: Tree, at: str, value: float) -> str:
    """Return a number as written in the text: 1.20 is read as 1.2."""
    span = tree.value_span(at)
    text = tree.text[span.start : span.end] if span else ""
    if text and len(text) < 40 and _NUMBER.fullmatch(text) is not None and not isinstance(value, bool):
        return text
    return str(value).lower() if isinstance(value, bool) else str(value)


def _known_parts(data: _Block, entries: list[tuple[str, _Block]]) -> Iterator[tuple[str, _Block, str]]:
    """Yield every mapping whose keys AGIS defines: its pointer, the mapping, and its place in the schema."""
    yield "", data, ""
    blocks = ("vocabulary", "data_manifest")
    parts: list[tuple[str, object, str]] = [(f"/{key}", data.get(key), f"/$defs/{key}") for key in blocks]
    classes = as_list(as_mapping(data.get("data_manifest")).get("available_data"))
    parts += [(f"/data_manifest/available_data/{n}", item, "/$defs/data_class") for n, item in enumerate(classes)]
    for at, entry in entries:
        parts.append((at, entry, "/$defs/endpoint"))
        parts += [(f"{at}/{key}", entry.get(key), f"/$defs/{key}") for key in ("semantic", "deprecated")]
        parts += [(f"{at}/errors/{n}", item, "/$defs/error") for n, item in enumerate(as_list(entry.get("errors")))]
    yield from ((at, part, schema) for at, part, schema in parts if isinstance(part, dict))


def _unknown_fields(tree: Tree, at: str, part: dict[str, Any], known: Mapping[str, Any]) -> Iterator[Diagnostic]:
    if part.keys() <= known.keys():
        return
    for key in part:
        if key in known or key.startswith("x-"):
            continue
        meant, fix = _meant(key, part, known), None
        advice = _ADVICE_ON_OTHERS.get(key, "A key of your own starts with x-.")
        if meant:
            fix = Fix(f"Rename it to {meant}", (Change("rename", child(at, key), key=meant),), safe=False)
            advice = f"Did you mean `{meant}`?"
        message = f"`{unquoted(key)}` is not a key of AGIS and has no effect"
        finding = UNKNOWN_FIELD.in_tree(tree, child(at, key), message, advice, fix, on_key=True)
        yield replace(finding, severity="error") if meant in _GUARDS or "scope" in key.lower() else finding


_GUARDS: Final = (  # A check depends on these keys. A misspelling is an error, because that check would not happen.
    *("required_scopes", "confirm", "internal", "cost", "impact_tier", "is_idempotent"),
    *("data_manifest", "pre_auth_discovery", "requires_authorization", "sensitivity"),
)

_ADVICE_ON_OTHERS: Final = {
    "handler": "A document cannot bind a handler: do that in bespeak.toml, or with @app.handler in Python."
}


def _meant(key: str, part: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    other = _OTHER_NAMES.get(key, "")
    if other in known and other not in part:
        return other
    near = get_close_matches(key[:40].lower(), [name for name in known if name not in part], n=1)
    return near[0] if near else ""


def _missing(tree: Tree, part: Mapping[str, Any], key: str, at: str) -> Diagnostic:
    place, absence = (child(at, key), "empty") if key in part else (at, "missing")
    return MISSING_FIELD.in_tree(tree, place, f"`{key}` is {absence}", _ADVICE.get(key, ""))


def _is_empty(value: object) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else kind(value)


@cache
def _validator(part: Literal["whole", "head", "entry", "address"]) -> Validator:
    schema = load_schema("agis")
    if part == "head":  # the top level, without endpoints and the fields that are checked one by one
        properties = {name: inner for name, inner in schema["properties"].items() if name not in _HEADER}
        schema = {"properties": properties, "$defs": schema["$defs"]}
    elif part == "entry":
        schema = {"$ref": "#/$defs/endpoint", "$defs": schema["$defs"]}
    elif part == "address":
        schema = schema["properties"]["agtp"]
    compiled = compile_schema(schema)
    assert isinstance(compiled, Validator)
    return compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class AgisEndpoint:
    endpoint: Endpoint
    at: str  # pointer of its declaration, `/endpoints/0`
    declared: Mapping[str, Any]  # declaration as written, without defaults
    proposed: bool = False  # True if it came from a negotiation (AGIS 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgisDocument:
    """The readable content of a document; fields that are not declared are empty."""

    agis: str
    service: str
    agtp: str
    description: str = ""
    version: str | None = None
    operator: str | None = None
    contact: str | None = None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    data_manifest: DataManifest | None = None
    schemas: Mapping[str, Any] = field(default_factory=dict)
    endpoints: tuple[AgisEndpoint, ...] = ()
    raw: Mapping[str, Any]


def read_agis(tree: Tree) -> tuple[AgisDocument | None, list[Diagnostic]]:
    """Read the document in a tree and expand its short fields; None only if it is not an object. Never raises."""
    if not tree.origins:
        expand_tree(tree)
    findings = check_structure(tree)
    data = tree.data
    if not isinstance(data, dict):
        return None, findings
    schemas = as_mapping(data.get("schemas"))
    shared = SharedSchemas(schemas)
    document = AgisDocument(
        **{name: as_text(data.get(name)) for name in ("agis", "service", "agtp", "description")},
        version=as_optional_text(data.get("version")),
        operator=as_optional_text(data.get("operator")),
        contact=as_optional_text(data.get("contact")),
        vocabulary=read_vocabulary(data.get("vocabulary")),
        data_manifest=read_data_manifest(data.get("data_manifest")),
        schemas=schemas,
        endpoints=tuple(
            AgisEndpoint(
                endpoint=read_endpoint(declared, shared, tree.locate(at)),
                at=at,
                declared=declared,
                proposed=declared.get("proposed") is True,
            )
            for at, declared in declared_endpoints(data.get("endpoints"))
        ),
        raw=data,
    )
    if shared.spent:
        message = f"the document is too large: its endpoints use shared schemas more than {MOST_BROUGHT:,} times"
        advice = "Indirect uses count too. Use fewer, or split the document."
        findings.append(UNREADABLE.found(message, tree.locate("/schemas", key=True), "/schemas", advice))
    return document, findings


def agis_service(document: AgisDocument, catalog: Catalog | None = None) -> Service:
    """Build the service of a document. Verbs that are not in the catalog become custom methods, as AGIS 1.3 allows."""
    catalog = catalog or load_bundled()
    endpoints = tuple(entry.endpoint for entry in document.endpoints)
    known = {*catalog.names, *LEGACY_VERBS}
    methods = dict.fromkeys(endpoint.method for endpoint in endpoints)
    custom = tuple(method for method in methods if is_method_name(method) and method not in known)
    return Service(
        identity=ServerIdentity(
            server_id=host_of(document.agtp) or "localhost",
            operator=document.operator or UNSPECIFIED,
            contact=document.contact or "",
            name=document.service,
        ),
        endpoints=tuple(_with_capability(endpoint, custom) for endpoint in endpoints),
        policies=Policies(methods=MethodPolicy(custom=custom)),
        catalog=catalog.version,
        document_version=document.version,
        description=document.description,
        agtp=document.agtp or None,
        vocabulary=document.vocabulary,
        data_manifest=document.data_manifest,
        schemas=document.schemas,
    )


def host_of(address: str) -> str | None:
    found = AUTHORITY.match(address)
    return (found["host"].strip("[]") or None) if found else None


def _with_capability(endpoint: Endpoint, custom: tuple[str, ...]) -> Endpoint:
    """Add a capability to an endpoint whose custom method has no category to inherit."""
    if endpoint.semantic.capability or endpoint.method not in custom:
        return endpoint
    return replace(endpoint, semantic=replace(endpoint.semantic, capability="transaction"))
