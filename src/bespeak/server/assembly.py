"""From a service to something that answers: registry, built-in methods, manifest, dispatcher."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bespeak.catalog.bundled import open_catalog
from bespeak.contract.service import Service
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.errors import ConfigError
from bespeak.exchange.headers import is_header_value
from bespeak.methods.builtin import builtin_endpoints
from bespeak.methods.publication import Publication
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.registration import build_registry
from bespeak.runtime.registry import Registry
from bespeak.server.collector import collector_paused

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey


@dataclass(frozen=True, slots=True)
class Assembled:
    """A service ready to answer, and what was found on the way."""

    dispatcher: Dispatcher
    registry: Registry
    findings: list[Diagnostic]


def now() -> str:
    """The time, as manifests write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@collector_paused()
def assemble(
    service: Service,
    *,
    base: Path | None = None,
    updated: str | None = None,
    signing_key: OKPKey | None = None,
) -> Assembled:
    """Put a service together. Endpoints that are not valid are left out and reported; a missing catalog is fatal."""
    server_id = service.identity.server_id
    if not server_id.strip() or not is_header_value(server_id):
        raise ConfigError(f"server_id stands in a header of every response, so it cannot be {server_id!r}")
    findings: list[Diagnostic] = []
    catalog, found = open_catalog(service.catalog, base)
    if catalog is None:
        raise ConfigError("\n".join(str(finding) for finding in found))
    findings += found
    if service.policies.synthesis_enabled:
        findings.append(
            Diagnostic(
                "Y821",
                "warning",
                "policies.synthesis_enabled is true, but this version of bespeak does not synthesize endpoints",
                help="The manifest says false and PROPOSE answers 463 synthesis-disabled.",
            )
        )
        service = replace(service, policies=replace(service.policies, synthesis_enabled=False))
    publication = Publication(updated=updated or now(), signing_key=signing_key)
    registry, found = build_registry(service, catalog, builtin_endpoints(publication), os.environ)
    findings += found
    publication.attach(registry)
    return Assembled(Dispatcher(registry), registry, findings)
