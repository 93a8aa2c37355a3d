"""Reader of /.well-known/ai documents for agents: callable capabilities, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from bespeak.agent.discovery.capability import (
    Capability,
    CredentialPlace,
    Placement,
    input_schema,
    may_name_header,
    resolve_template,
)
from bespeak.documents.ai.document import MOST_CAPABILITIES, AiCapability, AiDocument, consume_ai
from bespeak.documents.ai.param_notation import parse_param
from bespeak.protocol.exchange.token_hints import COMPACT, FIELDS, SINCE
from bespeak.protocol.web_address import AddressFault, WebAddress
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_text import json_table

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
    document = consume_ai(root, most=most)
    return document, root.findings.found


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
        here = origin == base.origin
        capability = Capability(
            id=entry.id,
            method=entry.method,
            path=target if here else f"{origin}{target}",
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
