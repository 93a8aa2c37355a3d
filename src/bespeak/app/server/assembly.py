"""From a service to something that answers: registry, built-in methods, manifest, dispatcher."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bespeak.app.server.collector import collector_paused
from bespeak.contract.catalog.bundled import open_catalog
from bespeak.contract.service import Service
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.methods.builtin import builtin_endpoints
from bespeak.runtime.methods.publication import Publication
from bespeak.runtime.registration import build_registry
from bespeak.runtime.registry import Registry
from bespeak.text.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey


@dataclass(frozen=True, slots=True)
class Assembled:
    """A service ready to answer, and what was found on the way."""

    dispatcher: Dispatcher
    registry: Registry
    findings: list[Diagnostic]
    publication: Publication
    """What it publishes about itself over AGTP; other faces say the same."""
    updated: str
    """Since when the service is as it is; the same in every process that serves it."""


def now() -> str:
    """The time, as manifests write it."""
    return write_instant(time.time())


@collector_paused()
def assemble(
    service: Service,
    *,
    base: Path | None = None,
    updated: str | None = None,
    signing_key: OKPKey | None = None,
    verifies: bool = False,
) -> Assembled:
    """Put a service together. Endpoints that are not valid are left out and reported; a missing catalog is fatal.

    `verifies` says whether callers will have to prove who they are.
    """
    server_id = service.identity.server_id
    if not server_id.strip() or not is_header_value(server_id):
        raise ConfigError(f"server_id stands in a header of every response, so it cannot be {server_id!r}")
    findings: list[Diagnostic] = []
    catalog, found = open_catalog(service.catalog, base)
    if catalog is None:
        raise ConfigError("\n".join(str(finding) for finding in found))
    findings += found
    service, found = _without_what_is_not_there(service, verifies=verifies)
    findings += found
    updated = updated or now()
    publication = Publication(updated=updated, signing_key=signing_key)
    registry, found = build_registry(service, catalog, builtin_endpoints(publication), os.environ)
    findings += found
    publication.attach(registry)
    return Assembled(Dispatcher(registry), registry, findings, publication, updated)


def _without_what_is_not_there(service: Service, *, verifies: bool) -> tuple[Service, list[Diagnostic]]:
    """The service with the promises taken back that nothing here can keep, and a warning for each."""
    policies = service.policies
    findings = []
    if policies.synthesis_enabled:
        policies = replace(policies, synthesis_enabled=False)
        message = "policies.synthesis_enabled is true, but this version of bespeak does not synthesize endpoints"
        findings.append(_unkept(message, "The manifest says false and PROPOSE answers 463 synthesis-disabled."))
    if policies.wildcards_accepted and service.wildcard_handler is None:
        policies = replace(policies, wildcards_accepted=False)
        message = "policies.wildcards_accepted is true, but nothing answers ad-hoc calls"
        findings.append(_unkept(message, "The manifest says false; give a wildcard_handler to change that."))
    vocabulary = service.vocabulary
    if vocabulary is not None and vocabulary.negotiable:
        vocabulary = replace(vocabulary, negotiable=False)
        message = "vocabulary.negotiable is true, but this version of bespeak negotiates no endpoints"
        findings.append(_unkept(message, "The AGIS document at the root does not say negotiable."))
    if service.agents and service.agent_disclosure == "authenticated" and not verifies:
        message = "agents are disclosed to authenticated callers, but in open mode nobody is"
        findings.append(_unkept(message, "Nobody sees hosted_agents; choose [auth] modes to change that."))
    return replace(service, policies=policies, vocabulary=vocabulary), findings


def _unkept(message: str, effect: str) -> Diagnostic:
    return Diagnostic("Y821", "warning", message, help=effect)
