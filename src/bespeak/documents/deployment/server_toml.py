"""bespeak.toml: the configuration of a server. agtp-server.toml is read too; settings without effect are reported.

A configuration may name an AGIS document. Then it serves the endpoints of the document, and its own identity and
policies take precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bespeak.contract.data_set import DataSet, bind_sources
from bespeak.contract.delivery import DeliverySettings
from bespeak.contract.limits import read_duration
from bespeak.contract.negotiation import NegotiationSettings
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.contract.payments import PaymentSettings
from bespeak.contract.policy import Policies
from bespeak.contract.procedure import Procedure
from bespeak.contract.service import UNSPECIFIED, DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.contract.standard.methods import MethodSettings
from bespeak.documents.deployment.folder import CONFIGURATIONS, is_same, is_there
from bespeak.documents.deployment.handlers import HandlerEntry, read_handlers
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.rules import CONTRADICTION, DATA_SET, INCOMPLETE_IDENTITY, NO_EFFECT, PROCEDURE
from bespeak.documents.deployment.server_settings import (
    A2aSettings,
    AgentSettings,
    ClientCertificateSettings,
    LimitSettings,
    ListenSettings,
    McpSettings,
    ResourceSettings,
    ServerSettings,
    UpstreamSettings,
)
from bespeak.state.audit.settings import REFERENCE_KEYS, AuditSettings
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.settings import CaseSettings, IdempotencySettings, SessionSettings, StoreSettings
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import MISSING_KEY
from bespeak.text.reading.settings import declared, is_guarding, optional_table, read_settings, setting, table, tables
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Location

_SERVER_UNUSED: Final = ("amg_version",)
_POLICIES_UNUSED: Final = ("negotiable", "rcns_enabled")
_TABLES_UNUSED: Final = ("gateway",)
_POLICY_TABLES_UNUSED: Final = ("rcns", "oauth")
_SIGNING_UNUSED: Final = ("key_id",)
_SYNTHESIS_UNUSED: Final = (
    "policies",
    "session_duration",
    "async_evaluation_enabled",
)
_SYNTHESIS_DURATIONS: Final = {
    "persistent_default_duration": "default_duration",
    "persistent_max_duration": "max_duration",
    "max_evaluation_duration": "decision",
}
"""Keys of the reference implementation, with those of `[negotiation]` that mean the same."""
_ELSEWHERE: Final = ("lint", "signing", "synthesis", *_TABLES_UNUSED)
"""Tables that are not read here: those of the linter, which checks its own, and of the reference implementation."""


def _read_plain(root: Table, key: str) -> tuple[Mapping[str, Any], ...]:
    """Read entries whose form the operator chooses (AGTP-API 8.6); the manifest carries them unchanged."""
    root.check_json(key)
    return tuple(entry.data for entry in root.tables(key))


def _read_extensions(root: Table, key: str) -> Mapping[str, Mapping[str, Any]]:
    """Read the tables of extensions of the author; each extension checks its own when the server starts."""
    found = root.table(key)
    if found is None:
        return {}
    return {name: entry.data for name in found.data if (entry := found.table(name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDocument:
    """The configuration of a server. Relative paths start at the folder of the file."""

    main: ServerSettings = table(ServerSettings, key="server", known=_SERVER_UNUSED)
    policies: Policies = table(Policies, old="policy", known=("synthesis", *_POLICIES_UNUSED, *_POLICY_TABLES_UNUSED))
    agents: AgentSettings = table(AgentSettings)
    apis: tuple[Mapping[str, Any], ...] = setting(
        (), "APIs that the manifest names (AGTP-API 8.6).", kind="tables", read=_read_plain
    )
    hosted_protocols: tuple[Mapping[str, Any], ...] = setting(
        (), "Protocols that the manifest names (AGTP-API 8.6).", kind="tables", read=_read_plain, old="hosts_protocols"
    )
    auth: AuthSettings = table(AuthSettings)
    audit: AuditSettings = table(AuditSettings, known=REFERENCE_KEYS)
    store: StoreSettings = table(StoreSettings)
    idempotency: IdempotencySettings = table(IdempotencySettings)
    sessions: SessionSettings = table(SessionSettings)
    cases: CaseSettings = table(CaseSettings)
    negotiation: NegotiationSettings = table(NegotiationSettings)
    listen: ListenSettings = table(ListenSettings)
    mtls: ClientCertificateSettings = table(ClientCertificateSettings)
    http: HttpSettings = table(HttpSettings)
    mcp: McpSettings = table(McpSettings)
    a2a: A2aSettings = table(A2aSettings)
    methods: MethodSettings = table(MethodSettings)
    delivery: DeliverySettings | None = optional_table(DeliverySettings)
    payments: PaymentSettings = table(PaymentSettings)
    semantic: SemanticSettings | None = optional_table(SemanticSettings)
    extensions: Mapping[str, Mapping[str, Any]] = setting(
        {}, "`[extensions.NAME]`: the settings of an extension of the author.", kind="map", read=_read_extensions
    )
    limits: LimitSettings = table(LimitSettings)
    upstream: UpstreamSettings = table(UpstreamSettings)
    document: Path | None = setting(None, "An AGIS document whose endpoints are served.", kind="path")
    handlers: tuple[HandlerEntry, ...] = setting(
        (), '`[handlers."METHOD /path"]`: the handlers of the endpoints of `document`.', kind="map", read=read_handlers
    )
    vocabulary: Vocabulary | None = optional_table(Vocabulary)
    data_manifest: DataManifest | None = optional_table(DataManifest)
    """The manifest with the sources of `data`, unless a document has the manifest."""
    data: tuple[DataSet, ...] = tables(DataSet)
    resources: tuple[ResourceSettings, ...] = tables(ResourceSettings)
    procedures: tuple[Procedure, ...] = tables(Procedure)
    recipes: Path | None = None  # file of the recipes, from `[server]` or the key of the reference implementation
    signing_key: Path | None = None  # key that signs manifests and audit records, from either place as well
    given: frozenset[str] = frozenset()
    """Tables that are present in the file; only these override an app's own settings."""

    @property
    def identity(self) -> ServerIdentity | None:
        """Identity of the server. None without a `server_id`, unless an AGIS document may supply it."""
        return self.main.identity if self.main.server_id or self.document is not None else None


def read_server(path: Path) -> tuple[ServerDocument, list[Diagnostic]]:
    """Read a configuration file and collect findings."""
    text = read_text(path)
    return (ServerDocument(), [text]) if isinstance(text, Diagnostic) else parse_server(text, str(path))


def parse_server(text: str, file: str) -> tuple[ServerDocument, list[Diagnostic]]:
    """Parse a configuration. A wrong value is reported and keeps its default."""
    root = toml_table(text, file)
    return (ServerDocument(), [root]) if isinstance(root, Diagnostic) else server_of(root, Path(file).parent)


def server_of(root: Table, base: Path) -> tuple[ServerDocument, list[Diagnostic]]:
    """Read the configuration in the root table of a document."""
    document = read_settings(ServerDocument, root, base.joinpath, _ELSEWHERE)
    server, policies = document.main, _part(root, "policies" if root.has("policies") else "policy")
    for outer, key in ((root, "signing"), (policies, "synthesis"), (root, "synthesis")):
        outer.table(key)  # reports a value that is not a table
    signing, synthesis = _part(root, "signing"), (_part(policies, "synthesis"), _part(root, "synthesis"))
    signed = signing.boolean("enabled"), signing.text("key_path")
    recipes = [server.recipes, *(base / file for part in synthesis if (file := part.text("recipes_file")))]
    document = replace(
        document,
        document=document.document or server.document,
        recipes=next(filter(None, recipes), None),
        signing_key=server.signing_key or (base / signed[1] if all(signed) and signed[1] else None),
        given=frozenset(root.data),
        negotiation=_read_synthesis(document.negotiation, _part(root, "negotiation"), synthesis),
    )
    if document.document is None:
        manifest, faults = bind_sources(document.data_manifest, document.data)
        document = replace(document, data_manifest=manifest)
        for number, fault in faults:
            root.findings.error(DATA_SET, fault, child(root.pointer("data"), number))
    for number, one in enumerate(document.procedures):
        for fault in one.faults():
            root.findings.error(PROCEDURE, fault, child(root.pointer("procedures"), number))
    _check(document, root)
    _check_protection(document, policies, signing, root)
    _report_unused(root, policies, signing, *synthesis)
    for part in (signing, *synthesis):
        part.finish()
    return document, root.findings.found


def report_unread(root: Table, path: Path) -> list[Diagnostic]:
    """Warn of a file that has tables of a configuration that guard something, but is not read as one."""
    guarding = [key for _, key, found in declared(ServerDocument) if key in root.data and is_guarding(found)]
    if not guarding:
        return []
    message = f"{path.name} is not read here, so its [{'], ['.join(guarding)}] has no effect"
    advice = "Move it into the configuration that is served, or serve this one."
    return [
        NO_EFFECT.found(message, root.findings.locate(root.pointer(guarding[0])), root.pointer(guarding[0]), advice)
    ]


def _part(outer: Table, key: str) -> Table:
    """Return a table; empty if it is absent or, as another check reports, not a table."""
    value = outer.data.get(key)
    return Table(value if isinstance(value, dict) else {}, outer.pointer(key), outer.findings)


def _read_synthesis(settings: NegotiationSettings, own: Table, parts: tuple[Table, ...]) -> NegotiationSettings:
    """Take durations from the tables of the reference implementation unless `[negotiation]` has them."""
    found: dict[str, float] = {}
    for part in parts:
        for key, name in _SYNTHESIS_DURATIONS.items():
            text = part.text(key)
            seconds = None if text is None else read_duration(text)
            if text is not None and seconds is None:
                part.wrong(key, 'a duration such as "24h" or "7d"', text)
            elif seconds is not None and not own.has(name):
                found[name] = float(seconds)
    return replace(settings, **found)  # type: ignore[arg-type]  # the names are those of seconds


def _check(document: ServerDocument, root: Table) -> None:
    """Report settings that contradict or require settings of another table."""
    findings, server = root.findings, _part(root, "server")
    if document.signing_key is None:
        document.audit.check_key(_part(root, "audit"))
    if document.document is None and document.main.server_id:
        for name in ("operator", "contact"):
            if not server.value(name):
                findings.warning(
                    INCOMPLETE_IDENTITY, f"`{name}` is missing; every manifest has it (AGTP-API 8.3)", server.at
                )
    for key in ("vocabulary", "data_manifest") if document.document is not None else ():
        if root.has(key):
            message = f"[{key}] and `document` exclude each other: the document has its own"
            findings.error(CONTRADICTION, message, root.pointer(key), f"Write it into {document.document}.")
    if document.document is None and root.has("handlers"):
        message = "[handlers] needs `document`: it is for the endpoints of an AGIS document"
        findings.error(CONTRADICTION, message, root.pointer("handlers"), 'Write document = "NAME.agis" at the top.')
    if (
        document.vocabulary is not None
        and document.vocabulary.negotiable
        and document.data_manifest is None
        and not document.data
    ):
        findings.error(
            MISSING_KEY,
            "`data_manifest` is missing; `negotiable = true` needs it (AGIS 8.2)",
            _part(root, "vocabulary").pointer("negotiable"),
            "Write a [[data]] for each class of data agents may negotiate about.",
        )


def _check_protection(document: ServerDocument, policies: Table, signing: Table, root: Table) -> None:
    """Report protection that the file names and this server would not give: it must not start without."""
    findings = root.findings
    if signing.value("enabled") is True and document.signing_key is None:
        message = "[signing] is enabled, but names no key"
        findings.error(CONTRADICTION, message, signing.pointer("enabled"), 'Write key_path = "FILE".')
    if _part(policies, "oauth").value("enabled") is True and "token" not in document.auth.modes:
        message = "[policies.oauth] is enabled, but [auth] does not require tokens"
        advice = 'Write modes = ["token"] in [auth], and the issuer\'s keys in [auth.token].'
        findings.error(CONTRADICTION, message, _part(policies, "oauth").pointer("enabled"), advice)
    one, other = document.mtls, document.auth.mtls
    if one.mode != "disabled" and "mtls" in document.auth.modes and one.ca_bundle_path != other.ca:
        message = "[mtls] and [auth.mtls] name different authorities of client certificates"
        findings.error(CONTRADICTION, message, _part(root, "mtls").pointer("ca_bundle_path"), "Keep one of them.")


def _report_unused(root: Table, policies: Table, signing: Table, *synthesis: Table) -> None:
    """Report each setting of the reference implementation that has no effect here."""
    _report_keys(_part(root, "server"), _SERVER_UNUSED)
    _report_keys(policies, _POLICIES_UNUSED)
    _report_keys(signing, _SIGNING_UNUSED)
    for part in synthesis:
        _report_keys(part, _SYNTHESIS_UNUSED)
    _report_keys(_part(root, "audit"), REFERENCE_KEYS[:1])
    for outer, names in ((root, _TABLES_UNUSED), (policies, _POLICY_TABLES_UNUSED)):
        for name in names:
            inner = outer.table(name)
            if inner is not None:
                _report_keys(inner, tuple(inner.data))


def _report_keys(block: Table, keys: tuple[str, ...]) -> None:
    used = [key for key in keys if block.value(key) not in (None, "")]
    if used:
        name = block.at[1:].replace("/", ".")
        message = f"this server does not act on [{name}] {', '.join(used[:20])}"
        block.findings.warning(NO_EFFECT, message, block.pointer(used[0]))


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
