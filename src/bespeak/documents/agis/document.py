"""An AGIS document (AGIS 8): one file with the whole contract of a service. It does not bind endpoints to code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bespeak.contract.data_manifest import DataManifest
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.vocabulary import Vocabulary
from bespeak.documents.agis.references import MOST_BROUGHT, SharedSchemas
from bespeak.documents.agis.shape import declared_endpoints, read_data_manifest, read_endpoint, read_vocabulary
from bespeak.documents.agis.structure import check_structure
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.reading.untyped import as_mapping, as_optional_text, as_text
from bespeak.text.source.expansion import expand_tree
from bespeak.text.source.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class AgisEndpoint:
    """An endpoint with its declaration in the document."""

    endpoint: Endpoint
    at: str
    """Pointer of its declaration, `/endpoints/0`."""
    declared: Mapping[str, Any]
    """Declaration as written, without defaults."""
    proposed: bool = False
    """True if it came from a negotiation (AGIS 2)."""


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
    """Read the document in a tree, with the findings of pass 1. Return None only if it is not an object. Never raises.

    Fields in short notation are expanded to JSON Schemas in the tree's data.
    """
    if not tree.origins:
        expand_tree(tree)
    findings = check_structure(tree)
    data = tree.data
    if not isinstance(data, dict):
        return None, findings
    schemas = as_mapping(data.get("schemas"))
    shared = SharedSchemas(schemas)
    document = AgisDocument(
        agis=as_text(data.get("agis")),
        service=as_text(data.get("service")),
        agtp=as_text(data.get("agtp")),
        description=as_text(data.get("description")),
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
