"""Operations of services on the web in one form, and their readers for /.well-known/ai, AGIS and OpenAPI documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from bespeak.agent.discovery.web_document import AGIS, DISCOVERY, MANIFEST, Fetched
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.handler import QUERY_METHODS
from bespeak.contract.schema.subschemas import resolve
from bespeak.documents.agis.document import AgisDocument, read_agis
from bespeak.documents.ai.document import MOST_CAPABILITIES, AiCapability, AiDocument, consume_ai
from bespeak.documents.ai.param_notation import parse_param
from bespeak.documents.openapi.description import Body, Description, Operation, SecurityScheme, list_style
from bespeak.documents.rules import UNUSABLE_DOCUMENT
from bespeak.documents.yaml_text import parse_notation
from bespeak.protocol.address_guard import AddressFault, Origin, WebAddress, resolve_address
from bespeak.protocol.exchange.headers import FORM, essence, is_header_name, is_json
from bespeak.protocol.exchange.token_hints import COMPACT, FIELDS, SINCE
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.identifiers import unused
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.source.tree import Location, Tree

Place = Literal["path", "query", "header", "cookie", "body", "whole-body"]

PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_.-]{1,200})\}")
_COLON: Final = re.compile(r"(?<=/):([A-Za-z_][A-Za-z0-9_]{0,199})(?=[/?]|$)")
_MARK: Final = "bespeak-placeholder-"
_FRAMING: Final = frozenset(  # Headers for framing and routing, which a document must not set.
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "content-type", "expect"}
)


@dataclass(frozen=True, slots=True)
class Placement:
    """Place of one member of the input in the request."""

    place: Place
    name: str  # name of the member at that place
    style: str = "repeat"  # serialisation of several values in a query, one of LIST_STYLES


@dataclass(frozen=True, slots=True)
class CredentialPlace:
    """Place where a service expects a credential: `bearer`, `basic`, or a key in a header, the query or a cookie."""

    kind: Literal["none", "bearer", "basic", "header", "query", "cookie", "unknown"]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Operation that can be called over HTTP."""

    id: str
    method: str
    path: str
    """Path with its {parameters}, or the absolute address at another host; identifies the capability besides its id."""
    origin: Origin
    target: str  # path and query at the origin, with {parameters}
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] = field(default_factory=dict)
    returns: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)  # text of the document about each parameter
    placements: Mapping[str, Placement] = field(default_factory=dict)
    """Placements of members that do not follow the default of the method."""
    media_type: str = "application/json"  # media type of the body
    form_styles: Mapping[str, str] = field(default_factory=dict)
    """Serialisation of several values of a field of a form, one of LIST_STYLES; `repeat` for the others."""
    credentials: tuple[CredentialPlace, ...] = ()
    """Places for a credential; the first supported one is used. Empty if the document names none."""
    deprecated: bool = False

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Parameters in the target, in order."""
        return tuple(dict.fromkeys(PLACEHOLDER.findall(self.target)))

    @property
    def is_idempotent(self) -> bool:
        """True if the method is idempotent (RFC 9110 9.2.2)."""
        return self.method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")

    def place_of(self, name: str) -> Placement:
        if name in self.placements:
            return self.placements[name]
        if name in self.placeholders:
            return Placement("path", name)
        return Placement("query" if self.method in QUERY_METHODS else "body", name)


def resolve_template(text: str, base: WebAddress, *, insecure: bool = False) -> tuple[Origin, str] | AddressFault:
    """Resolve an endpoint to its origin and target: `/x/:id`, `/x/{id}` or an absolute address."""
    marked = in_braces(text) if text.startswith("/") else _colons_behind_host(text)
    names = PLACEHOLDER.findall(marked)
    # Braces are not valid in an address, so parameters are masked while it is resolved.
    for index, name in enumerate(names):
        marked = marked.replace(f"{{{name}}}", f"{_MARK}{index}-")
    address = resolve_address(marked, base, insecure=insecure)
    if isinstance(address, AddressFault):
        return address
    if _MARK in address.origin.host:
        return AddressFault("address", "the host depends on the input")
    target = address.target
    for index, name in enumerate(names):
        target = target.replace(f"{_MARK}{index}-", f"{{{name}}}")
    if "{" in PLACEHOLDER.sub("", target):
        return AddressFault("address", f"{brief(text)} has a parameter with an invalid name")
    return address.origin, target


def in_braces(path: str) -> str:
    """Convert `/x/:id` to `/x/{id}`. `/:import` alone is a method at the path `/`, as services of bespeak write it."""
    return path if path.count("/") == 1 and path.startswith("/:") else _COLON.sub(r"{\1}", path)


def may_name_header(name: str) -> bool:
    """Return True if a document may set a header of this name."""
    return is_header_name(name) and name.lower() not in _FRAMING


def input_schema(
    properties: Mapping[str, Any], required: Iterable[str], placeholders: Iterable[str], *, closed: bool
) -> dict[str, Any]:
    """Build the schema of an input: path parameters are required, and strings or numbers unless declared otherwise."""
    whole = dict(properties)
    needed = dict.fromkeys(required)
    for name in placeholders:
        whole.setdefault(name, {"type": ["string", "integer"]})
        needed[name] = None
    schema: dict[str, Any] = {"type": "object", "properties": whole}
    if needed:
        schema["required"] = list(needed)
    if closed:
        schema["additionalProperties"] = False
    return schema


def _colons_behind_host(text: str) -> str:
    head, slashes, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    return f"{head}://{host}" + in_braces(f"/{path}") if slashes and slash else text


_HINTS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "compact_mode": (COMPACT, {"type": "boolean", "description": "Return a shorter response."}),
    "field_filtering": (FIELDS, {"type": "string", "description": "Comma-separated fields to return."}),
    "delta_support": (
        SINCE,
        {"type": "string", "description": "Return only items changed after this time (ISO 8601)."},
    ),
}


def read_ai_document(
    data: bytes, source: str, *, most: int | None = MOST_CAPABILITIES
) -> tuple[AiDocument | None, list[Diagnostic]]:
    """Read the document in the bytes of a response, tolerantly; return None if it is unusable. Never raises."""
    root = json_table(data, source, tolerant=True)
    if isinstance(root, Diagnostic):
        return None, [root]
    return consume_ai(root, most=most), root.findings.found


def ai_capabilities(
    document: AiDocument, base: WebAddress, *, insecure: bool = False
) -> tuple[list[Capability], list[tuple[str, str]]]:
    """Return the callable capabilities of a document, and pointers with the reason for the others."""
    usable: list[Capability] = []
    wrong: list[tuple[str, str]] = []
    credentials = _credentials(document)
    for entry in document.capabilities:
        found = resolve_template(entry.endpoint, base, insecure=insecure)
        if isinstance(found, AddressFault):
            wrong.append((f"{entry.at}/endpoint", f"{entry.id} is left out: {found.message}"))
            continue
        origin, target = found
        capability = Capability(
            id=entry.id,
            method=entry.method,
            path=target if origin == base.origin else f"{origin}{target}",
            origin=origin,
            target=target,
            description=entry.description,
            returns=entry.returns,
            params=entry.params,
            credentials=credentials,
        )
        usable.append(_with_input(capability, entry, document))
    return usable, wrong


def _with_input(capability: Capability, entry: AiCapability, document: AiDocument) -> Capability:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, text in entry.params.items():
        notation = parse_param(text)
        schema = dict(notation.schema)
        if notation.description:
            schema.setdefault("description", notation.description)
        properties[name] = schema
        if notation.required:
            required.append(name)
    placements: dict[str, Placement] = {}
    for hint, (name, schema) in _HINTS.items():
        if document.token_hints.get(hint) and name not in properties:
            properties[name] = schema
            placements[name] = Placement("query", name)
    # A document without parameters allows any.
    whole = input_schema(properties, required, capability.placeholders, closed=bool(entry.params))
    return replace(capability, input_schema=whole, placements=placements)


def _credentials(document: AiDocument) -> tuple[CredentialPlace, ...]:
    kind, header = document.auth_type, document.auth_header
    if kind == "none":
        return (CredentialPlace("none"),)
    if kind == "apikey":
        name = header or "X-API-Key"
        if not may_name_header(name):
            return (CredentialPlace("unknown"),)
        return (CredentialPlace("bearer") if name.lower() == "authorization" else CredentialPlace("header", name),)
    return (CredentialPlace("bearer"),) if kind in ("bearer", "oauth2") else ()


_WHOLE: Final = "body"
_WORD: Final = re.compile(r"[^A-Za-z0-9]+")


def openapi_capabilities(
    description: Description, base: WebAddress, *, insecure: bool = False
) -> tuple[list[Capability], list[tuple[str, str]]]:
    """Return the callable operations of a description, and pointers with the reason for the others."""
    usable: list[Capability] = []
    wrong: list[tuple[str, str]] = []
    taken: set[str] = set()
    for operation in description.operations:
        found = resolve_template(f"{operation.base}{operation.path}", base, insecure=insecure)
        if isinstance(found, AddressFault):
            wrong.append((operation.pointer, f"{_name(operation)} is left out: {found.message}"))
            continue
        origin, target = found
        own = unused(_name(operation), taken)
        taken.add(own)
        usable.append(
            Capability(
                id=own,
                method=operation.method,
                path=operation.path if origin == base.origin else f"{origin}{target}",
                origin=origin,
                target=target,
                description=operation.summary or operation.description,
                credentials=_openapi_credentials(operation, description.schemes),
                media_type=operation.body.media_type if operation.body else "application/json",
                form_styles=_form_styles(operation.body),
                output_schema=_output(operation),
                deprecated=operation.deprecated,
                **_input(operation, target),
            )
        )
    return usable, wrong


def _name(operation: Operation) -> str:
    """Return the id of an operation, or a name made of its method and path."""
    return operation.operation_id or _WORD.sub("_", f"{operation.method.lower()} {operation.path}").strip("_")


def _input(operation: Operation, target: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    placements: dict[str, Placement] = {}
    for parameter in operation.parameters:
        # If a name occurs at two places, the later one wins.
        name = parameter.name if parameter.name not in properties else f"{parameter.name}_{parameter.place}"
        properties[name] = _apart(_described(parameter.schema, parameter.description), len(properties))
        placements[name] = Placement(parameter.place, parameter.name, parameter.list_style)
        if parameter.required:
            required.append(name)
    if operation.body is not None:
        for name, schema, place, needed in _body_members(operation.body, properties):
            properties[name] = _apart(schema, len(properties))
            placements[name] = place
            if needed:
                required.append(name)
    named = {placement.name for placement in placements.values() if placement.place == "path"}
    placeholders = [name for name in PLACEHOLDER.findall(target) if name not in named]
    body = operation.body
    closed = body is None or _WHOLE in placements or body.schema.get("additionalProperties") is False
    return {"input_schema": input_schema(properties, required, placeholders, closed=closed), "placements": placements}


def _body_members(body: Body, others: Mapping[str, Any]) -> Iterable[tuple[str, Any, Placement, bool]]:
    """Return the members of a body next to the parameters; a body that is not a plain object is one member."""
    properties = body.schema.get("properties")
    plain = isinstance(properties, dict) and not (properties.keys() & others.keys()) and _is_plain(body.schema)
    if not plain or not isinstance(properties, dict):
        name = _WHOLE
        while name in others:
            name += "_"
        yield name, _described(body.schema, body.description), Placement("whole-body", name), body.required
        return
    needed = body.schema.get("required")
    for name, schema in properties.items():
        yield name, schema, Placement("body", name), body.required and isinstance(needed, list) and name in needed


def _form_styles(body: Body | None) -> dict[str, str]:
    if body is None or essence(body.media_type) != FORM:
        return {}
    properties = body.schema.get("properties", {})
    found: dict[str, str] = {}
    for name, encoding in body.encoding.items():
        schema = resolve(properties.get(name), body.schema, most=8)
        if encoding.style:
            found[name] = list_style(encoding.style, schema, explode=encoding.explode)
        elif encoding.content_types and is_json(encoding.content_types[0]):
            found[name] = "json"
    return found


def _is_plain(schema: Mapping[str, Any]) -> bool:
    """Return True if the properties describe an object completely, so that they can be merged with others."""
    combined = ("allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "$ref", "dependentRequired", "$defs")
    return schema.get("type", "object") == "object" and schema.keys().isdisjoint(combined)


def _described(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description} if description and "description" not in schema else dict(schema)


def _apart(schema: Any, number: int) -> Any:
    """Nest a schema that has definitions in another one; its own id keeps its references local."""
    if isinstance(schema, dict) and "$defs" in schema and "$id" not in schema:
        return {"$id": f"urn:bespeak:input:{number}", **schema}
    return schema


def _output(operation: Operation) -> Mapping[str, Any]:
    return next((answer.schema for answer in operation.answers if answer.status[:1] == "2" and answer.schema), {})


def _openapi_credentials(operation: Operation, schemes: Mapping[str, SecurityScheme]) -> tuple[CredentialPlace, ...]:
    """Return the places for a credential, for alternatives that need only one."""
    places: list[CredentialPlace] = []
    for alternative in operation.security:
        scheme = schemes.get(next(iter(alternative))) if len(alternative) == 1 else None
        places.append(credential_place(scheme) if scheme else CredentialPlace("unknown" if alternative else "none"))
    # Places for a credential come first, so that a configured credential is used.
    return tuple(sorted(places, key=lambda place: place.kind == "none"))


def credential_place(scheme: SecurityScheme) -> CredentialPlace:
    """Return where a service expects the credential of a scheme."""
    if scheme.kind == "apiKey":
        named = may_name_header(scheme.parameter) or scheme.place == "query"
        if scheme.place in ("header", "query", "cookie") and scheme.parameter and named:
            return CredentialPlace(scheme.place, scheme.parameter)  # type: ignore[arg-type]
    elif scheme.kind == "http":
        if scheme.scheme.lower() in ("bearer", "basic"):
            return CredentialPlace("bearer" if scheme.scheme.lower() == "bearer" else "basic")
    elif scheme.kind in ("oauth2", "openIdConnect"):
        return CredentialPlace("bearer")
    return CredentialPlace("unknown")


_MOST_WRONG: Final = 20  # maximum number of findings to report per document


def agis_tree(fetched: Fetched) -> Tree | Diagnostic | None:
    """Parse a response that is an AGIS document; return the parse error, or None if it is something else."""
    try:
        text = fetched.body.decode()
    except UnicodeDecodeError:
        return UNREADABLE.found("the document is not UTF-8", Location(fetched.final_url))
    tree = parse_notation(text, fetched.final_url)
    if isinstance(tree, Diagnostic):
        return tree
    return tree if isinstance(tree.data, dict) and "agis" in tree.data else None


def read_agis_document(fetched: Fetched) -> tuple[AgisDocument | None, list[Diagnostic]]:
    """Read the document in a response; return None if it is invalid (a failed discovery in AGIS 11 and 13)."""
    tree = agis_tree(fetched)
    if isinstance(tree, Diagnostic):
        return None, [replace(tree, severity="warning")]
    if tree is None:
        return None, [_unused("the response is not an AGIS document", fetched)]
    document, found = read_agis(tree)
    if document is None or not document.endpoints:
        return None, [*found, _unused("the AGIS document cannot be used", fetched)]
    checked = check_producer(replace(fetched, what=AGIS.what))
    if wrong := [finding for finding in checked if finding.severity == "error"]:
        return None, [*wrong[:_MOST_WRONG], _unused("the AGIS document is not valid and is not used", fetched)]
    return document, []


def _unused(message: str, fetched: Fetched) -> Diagnostic:
    return UNUSABLE_DOCUMENT.found(message, Location(fetched.final_url), severity="warning")


_KINDS: Final[dict[str, Literal["ai", "agis", "manifest"]]] = {
    DISCOVERY.what: "ai",
    AGIS.what: "agis",
    MANIFEST.what: "manifest",
}


def check_producer(fetched: Fetched) -> list[Diagnostic]:
    """Check a document by the rules of its kind; return nothing for kinds without rules. Never raises."""
    kind = _KINDS.get(fetched.what)
    if kind is None or not fetched.ok:
        return []
    from bespeak.checks.lint.document import check_text  # noqa: PLC0415 - most services have something shorter
    from bespeak.checks.lint.subject import LintContext  # noqa: PLC0415 - as above

    try:
        text = fetched.body.decode()
    except UnicodeDecodeError as error:
        message = f"the document is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
        return [UNREADABLE.found(message, Location(fetched.final_url))]
    return list(check_text(text, fetched.final_url, LintContext(catalog=load_bundled()), kind).findings)
