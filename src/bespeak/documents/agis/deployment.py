"""An AGIS document as a deployment: the configuration that names it, and the identity of the server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bespeak.contract.policy import Policies
from bespeak.contract.service import UNSPECIFIED, ServerIdentity, Service
from bespeak.documents.deployment.folder import CONFIGURATIONS, is_same, is_there
from bespeak.documents.deployment.rules import INCOMPLETE_IDENTITY
from bespeak.documents.deployment.server_toml import ServerDocument, read_server
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.span import Location


def configuration_naming(document: Path) -> tuple[Path | None, list[Diagnostic]]:
    """Find the configuration beside a document that serves it; return findings if that one cannot be read."""
    for name in CONFIGURATIONS:
        path = document.parent / name
        if not is_there(path):
            continue
        server, findings = read_server(path)
        if server.document is not None and is_same(server.document, document):
            return path, []
        if not server.given:
            return None, findings
    return None, []


def served_with(
    service: Service, given: ServerIdentity | None, policies: Policies | None, catalog: str | None
) -> Service:
    """Apply a configuration to the service of a document; the configuration takes precedence."""
    identity = service.identity
    if given is not None:
        said = given.operator != UNSPECIFIED
        identity = replace(
            given,
            name=given.name or identity.name,
            server_id=given.server_id or identity.server_id,
            operator=given.operator if said else identity.operator,
            contact=given.contact or identity.contact,
        )
    if policies is not None:
        policies = with_custom(policies, service.policies.methods.custom)
    return replace(
        service, identity=identity, policies=policies or service.policies, catalog=catalog or service.catalog
    )


def with_document(files: Service, described: Service, server: ServerDocument) -> Service:
    """Combine the service of a folder with that of the document its configuration names."""
    said = served_with(described, server.identity, server.policies, server.main.catalog)
    return replace(
        files,
        identity=said.identity,
        endpoints=(*said.endpoints, *files.endpoints),
        policies=said.policies,
        catalog=said.catalog,
        document_version=server.main.document_version or said.document_version,
        description=server.main.description or said.description,
        agtp=said.agtp,
        vocabulary=said.vocabulary,
        data_manifest=said.data_manifest,
        schemas=said.schemas,
    )


def with_custom(policies: Policies, verbs: Iterable[str]) -> Policies:
    """Return policies that also admit these methods, which are not in the catalog."""
    custom = tuple(dict.fromkeys((*policies.methods.custom, *verbs)))
    return replace(policies, methods=replace(policies.methods, custom=custom))


def check_identity(identity: ServerIdentity, document: Path) -> Iterable[Diagnostic]:
    """Warn if operator or contact is missing, which every manifest carries (AGTP-API 8.3)."""
    missing = [name for name in ("operator", "contact") if getattr(identity, name) in ("", UNSPECIFIED)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"`{'` and `'.join(missing)}` {verb} missing, but required in every manifest (AGTP-API 8.3)"
        advice = f"Add them to the document, or to [server] of a {CONFIGURATIONS[0]} that names it."
        yield INCOMPLETE_IDENTITY.found(message, Location(str(document)), advice=advice)
