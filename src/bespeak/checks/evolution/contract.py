"""The part of a service that clients can see, from any document or server."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bespeak.contract.data_manifest import DataManifest
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies, is_of_server
from bespeak.contract.service import Service
from bespeak.contract.vocabulary import Vocabulary
from bespeak.documents.manifest_json import ManifestDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One side of a comparison. A member that is None is unknown and is not compared."""

    endpoints: tuple[Endpoint, ...] = ()
    policies: Policies | None = None
    catalog_version: str | None = None
    vocabulary: Vocabulary | None = None
    data_manifest: DataManifest | None = None
    version: str | None = None
    """Operator's own version of the contract."""


def service_contract(service: Service, policies: Policies | None = None) -> Contract:
    """Return the contract of a service; policies are None if its document cannot state them."""
    vocabulary = service.vocabulary
    return Contract(
        endpoints=service.endpoints,
        policies=policies,
        catalog_version=service.catalog if policies is not None else None,
        vocabulary=vocabulary,
        data_manifest=service.data_manifest,
        version=service.document_version or (vocabulary.version if vocabulary else None),
    )


def manifest_contract(manifest: ManifestDocument) -> Contract:
    """Return the contract of a manifest. Built-in methods are marked, because other documents do not list them."""
    methods = replace(manifest.policies.methods, custom=manifest.custom_methods or manifest.policies.methods.custom)
    return Contract(
        endpoints=tuple(
            replace(endpoint, builtin=True) if is_of_server(*endpoint.key, endpoint.namespace) else endpoint
            for endpoint in manifest.endpoints
        ),
        policies=replace(manifest.policies, methods=methods),
        catalog_version=manifest.catalog_version or None,
        version=manifest.document_version or None,
    )
