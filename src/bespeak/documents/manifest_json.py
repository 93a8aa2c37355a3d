"""A server's manifest as received by a client (AGTP-API 8): typed where it follows the draft, raw otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.policy import Policies, is_of_server
from bespeak.contract.service import DataManifest, ServerIdentity
from bespeak.contract.standard.methods import CATEGORIES
from bespeak.documents.deployment.endpoint_toml import READERS
from bespeak.documents.rules import UNUSABLE_ENDPOINT
from bespeak.text.diagnostics.diagnostic import Diagnostic, unquoted
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.settings import Readers, optional_table, read_settings, read_values, setting
from bespeak.text.reading.table import Table, as_mapping
from bespeak.text.source.tree import Location

_FILE: Final = "manifest"
_MOST_ENTRIES: Final = 100_000  # in one array: each becomes objects many times its size, which fill the memory
_DEFAULTS: Final = Policies().resolved(scoped=True)  # AGTP-API 8.7: true unless the manifest says something else
_NAMELESS: Final = ServerIdentity(server_id="", operator="", contact="")
_EXPECTED: Final[dict[str, Any]] = {"required": True, "optional": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDocument:
    """A server's description of itself. It is not verified: the signature is checked over `raw`."""

    agtp_version: str = setting("", "The version of AGTP.", **_EXPECTED)
    agtp_api_version: str = setting("", "The version of AGTP-API.", **_EXPECTED)
    document_version: str = setting("", "The version of the manifest.", **_EXPECTED)
    catalog_version: str = setting("", "The version of the catalog.", **_EXPECTED)
    catalog_versions_supported: tuple[str, ...] = setting((), "Versions the server understands.", **_EXPECTED)
    server: ServerIdentity = setting(_NAMELESS, "The server.", kind="map", required=True)
    updated: str | None = None
    embedded_methods: tuple[str, ...] = setting((), "The methods that every server has.")
    custom_methods: tuple[str, ...] = setting((), "The methods that are not in the catalog.")
    endpoints: tuple[Endpoint, ...] = setting((), "What the server offers.", kind="tables", **_EXPECTED)
    """Endpoints with a method and a path. If the semantic block is incomplete, the cautious default applies:
    irreversible, not idempotent, no confidence.
    """
    policies: Policies = setting(_DEFAULTS, "The policies of the server.", kind="table", of=Policies, **_EXPECTED)
    agent_disclosure: str = setting("", "Who may see the agents.", suggested=DISCLOSURES)
    hosted_agents: tuple[Mapping[str, Any], ...] = setting((), "The agents of the server.", kind="tables")
    agent_disclosure_notice: str | None = setting(None, "A note for callers that may not see the agents.")
    apis: tuple[Mapping[str, Any], ...] = setting((), "Other APIs of the operator.", kind="tables")
    hosted_protocols: tuple[Mapping[str, Any], ...] = setting((), "Other protocols of the server.", kind="tables")
    data_manifest: DataManifest | None = optional_table(DataManifest)
    """Classes of data that can be negotiated about, if the server shows them (core 13)."""
    signature: str | Mapping[str, Any] | None = setting(
        None, "The signature of the manifest.", key="manifest_signature", kind="map"
    )
    raw: Mapping[str, Any]

    @property
    def own_endpoints(self) -> tuple[Endpoint, ...]:
        """Endpoints of the service itself, without the methods and documents of every server."""
        return tuple(
            endpoint
            for endpoint in self.endpoints
            if (endpoint.path not in ("/", "/methods") or endpoint.namespace in CATEGORIES)
            and not is_of_server(*endpoint.key, endpoint.namespace)
        )

    @property
    def offered_endpoints(self) -> tuple[Endpoint, ...]:
        """Endpoints to offer as tools: those of the service itself. Services on the web have no others."""
        return self.own_endpoints if self.agtp_version else self.endpoints

    def endpoint(self, method: str, path: str) -> Endpoint | None:
        """Return the endpoint with exactly this method and this path or template."""
        return next((endpoint for endpoint in self.endpoints if endpoint.key == (method, path)), None)


def parse_manifest(data: bytes) -> tuple[ManifestDocument | None, list[Diagnostic]]:
    """Parse the manifest in a reply. Return None only if it is not a JSON object or too large; others get warnings."""
    root = json_table(data, _FILE, tolerant=True)
    if isinstance(root, Diagnostic):
        return None, [root]
    for key, value in root.data.items():
        if isinstance(value, list) and len(value) > _MOST_ENTRIES:
            message = f"`{unquoted(key)}` has {len(value)} entries, more than {_MOST_ENTRIES}"
            return None, [WRONG_VALUE.found(message, Location(_FILE), root.pointer(key))]
    return read_manifest(root), root.findings.found


def parse_endpoint(data: bytes) -> tuple[Endpoint | None, list[Diagnostic]]:
    """Parse the definition of one endpoint of a manifest; None if it is not an object or has no method or path."""
    root = json_table(data, "endpoint", tolerant=True)
    return (None, [root]) if isinstance(root, Diagnostic) else (_read_endpoint(root), root.findings.found)


def read_manifest(root: Table) -> ManifestDocument:
    """Read the manifest in the root object of a document. Faults are added to its findings."""
    values = read_values(ManifestDocument, root, readers=_MEMBERS)
    updated = as_mapping(root.data.get("server")).get("updated")
    return ManifestDocument(**values, updated=updated if isinstance(updated, str) else None, raw=root.data)


def _read_server(root: Table) -> ServerIdentity | None:
    if (server := root.table("server")) is None:
        return None
    return ServerIdentity(
        server_id=server.text("server_id") or "",
        operator=server.text("operator") or "",
        contact=server.text("contact") or "",
        domain=server.text("domain"),
        supported_features=server.texts("supported_features"),
        issued=server.text("issued"),
    )


def _method_names(root: Table, key: str) -> tuple[str, ...]:
    """Return the method names; the reference implementation lists whole specifications, of which the name is used."""
    entries = root.value(key)
    if not isinstance(entries, list):
        return root.texts(key)
    names = [entry.get("method", entry.get("name")) if isinstance(entry, dict) else entry for entry in entries]
    return tuple(name for name in names if isinstance(name, str))


def _objects(root: Table, key: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(entry.data for entry in root.tables(key))


def _read_endpoints(root: Table) -> tuple[Endpoint, ...] | None:
    found = (_read_endpoint(entry) for entry in root.tables("endpoints"))
    return tuple(endpoint for endpoint in found if endpoint) if root.has("endpoints") else None


def _read_endpoint(entry: Table) -> Endpoint | None:
    method, path = entry.text("method"), entry.text("path")
    if not method or not path:
        entry.findings.warning(UNUSABLE_ENDPOINT, "an endpoint without a method and a path is left out", entry.at)
        return None
    return Endpoint(**read_values(Endpoint, entry, readers=_READERS, complete=False))


def _read_semantic(entry: Table) -> Semantic:
    if (block := entry.table("semantic")) is None:
        return _UNSAID
    semantic = read_settings(Semantic, block)
    return semantic if semantic.impact else replace(semantic, impact=_UNSAID.impact)


_UNSAID: Final = Semantic(
    intent="", actor="", outcome="", capability="", confidence=0.0, impact="irreversible", is_idempotent=False
)
_READERS: Final[Readers] = {
    **READERS,
    "semantic": _read_semantic,
    "handler": lambda entry: OpaqueHandler(type=(at.text("type") or "") if (at := entry.table("handler")) else ""),
    "internal": lambda _: False,  # what a manifest lists is not internal
}
_MEMBERS: Final[Readers] = {
    "server": _read_server,
    **{key: partial(_method_names, key=key) for key in ("embedded_methods", "custom_methods")},
    "endpoints": _read_endpoints,
    "policies": lambda root: (
        read_settings(Policies, at, known=at.data).resolved(scoped=True) if (at := root.table("policies")) else None
    ),
    **{key: partial(_objects, key=key) for key in ("hosted_agents", "apis", "hosted_protocols")},
    "signature": lambda root: found if isinstance(found := root.value("manifest_signature"), (str, dict)) else None,
}
