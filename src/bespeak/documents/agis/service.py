"""The service that an AGIS document describes. Its endpoints have no handlers until a configuration binds them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from bespeak.contract.catalog.bundled import load_bundled
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.method_syntax import is_method_name
from bespeak.contract.policy import LEGACY_VERBS, MethodPolicy, Policies
from bespeak.contract.service import UNSPECIFIED, ServerIdentity, Service
from bespeak.documents.agis.document import AgisDocument

_HOST: Final = re.compile(r"agtp://(?:[^@/?#]*+@)?(?:\[(?P<six>[^\]]*+)\]|(?P<host>[^:/?#]++))")


def agis_service(document: AgisDocument, catalog: Catalog | None = None) -> Service:
    """Build the service of a document. Verbs that are not in the catalog become custom methods, as AGIS 1.3 allows."""
    catalog = catalog or load_bundled()
    endpoints = tuple(entry.endpoint for entry in document.endpoints)
    custom = tuple(dict.fromkeys(endpoint.method for endpoint in endpoints if _is_custom(endpoint.method, catalog)))
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
    """Return the host of an AGTP address."""
    found = _HOST.match(address)
    return (found["six"] or found["host"]) if found else None


def _is_custom(method: str, catalog: Catalog) -> bool:
    return is_method_name(method) and method not in catalog.names and method not in LEGACY_VERBS


def _with_capability(endpoint: Endpoint, custom: tuple[str, ...]) -> Endpoint:
    """Add a capability to an endpoint whose custom method has no category to inherit."""
    if endpoint.semantic.capability or endpoint.method not in custom:
        return endpoint
    return replace(endpoint, semantic=replace(endpoint.semantic, capability="transaction"))
