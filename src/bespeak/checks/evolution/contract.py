"""What a client of a service can see of it, whichever document or server it was read from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bespeak.contract.data_manifest import DataManifest
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import SERVER_ENDPOINTS, Policies
from bespeak.contract.service import Service
from bespeak.contract.vocabulary import Vocabulary
from bespeak.documents.manifest_json import ManifestDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One side of a comparison. What is None was not said there, and is not compared."""

    endpoints: tuple[Endpoint, ...] = ()
    policies: Policies | None = None
    catalog_version: str | None = None
    vocabulary: Vocabulary | None = None
    data_manifest: DataManifest | None = None
    version: str | None = None
    """The operator's own version of the contract."""


def service_contract(service: Service, policies: Policies | None = None) -> Contract:
    """The contract of a service. A document that cannot speak of policies gives none."""
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
    """The contract a manifest publishes. The methods every server has are marked: other documents do not list them."""
    methods = replace(manifest.policies.methods, custom=manifest.custom_methods or manifest.policies.methods.custom)
    return Contract(
        endpoints=tuple(
            replace(endpoint, builtin=True) if endpoint.key in SERVER_ENDPOINTS else endpoint
            for endpoint in manifest.endpoints
        ),
        policies=replace(manifest.policies, methods=methods),
        catalog_version=manifest.catalog_version or None,
        version=manifest.document_version or None,
    )
