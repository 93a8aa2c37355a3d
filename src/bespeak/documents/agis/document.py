"""An AGIS document (AGIS 8), and the service it describes. Its endpoints have no handlers until they are bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import is_method_name
from bespeak.contract.policy import LEGACY_VERBS, MethodPolicy, Policies
from bespeak.contract.service import UNSPECIFIED, DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.documents.agis.references import MOST_BROUGHT, SharedSchemas
from bespeak.documents.agis.shape import declared_endpoints, read_data_manifest, read_endpoint, read_vocabulary
from bespeak.documents.agis.structure import check_structure
from bespeak.protocol.address import AUTHORITY
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.reading.table import as_mapping, as_optional_text, as_text
from bespeak.text.source.shorthand import expand_tree
from bespeak.text.source.tree import Tree


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
