"""bespeak.toml: the configuration of a server. agtp-server.toml is read too; settings without effect are reported.

It may name an AGIS document, whose endpoints it serves; its own identity and policies take precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from bespeak.contract.data_set import DataSet, bind_sources
from bespeak.contract.extensions import TABLES
from bespeak.contract.limits import read_duration
from bespeak.contract.policy import Policies
from bespeak.contract.procedure import Procedure
from bespeak.contract.service import UNSPECIFIED, DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.contract.standard.methods import MethodSettings
from bespeak.documents.deployment.endpoint_toml import HandlerEntry, read_handlers
from bespeak.documents.deployment.folder import CONFIGURATIONS, is_same, is_there, read_toml
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import (
    A2aSettings,
    AgentSettings,
    ClientCertificateSettings,
    ConsoleSettings,
    LimitSettings,
    ListenSettings,
    McpSettings,
    ResourceSettings,
    ServerSettings,
    UpstreamSettings,
)
from bespeak.documents.rules import CONTRADICTION, DATA_SET, INCOMPLETE_IDENTITY, NO_EFFECT, PROCEDURE
from bespeak.state.audit.settings import REFERENCE_KEYS, AuditSettings
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.settings import CaseSettings, IdempotencySettings, SessionSettings, StoreSettings
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import MISSING_KEY
from bespeak.text.reading.settings import (
    Setting,
    declared,
    is_guarding,
    meaning_of,
    optional_table,
    read_settings,
    setting,
    table,
    tables,
)
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import toml_table
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Location

_T = TypeVar("_T")
_SERVER_UNUSED: Final = ("amg_version",)
_POLICIES_UNUSED: Final = ("negotiable", "rcns_enabled")
_TABLES_UNUSED: Final = ("gateway",)
_POLICY_TABLES_UNUSED: Final = ("rcns", "oauth")
_SYNTHESIS_DURATIONS: Final = {  # Keys of the reference implementation, and those of `[negotiation]` that mean the same
    "persistent_default_duration": "default_duration",
    "persistent_max_duration": "max_duration",
    "max_evaluation_duration": "decision",
}
_ELSEWHERE: Final = ("lint", "signing", "synthesis", *_TABLES_UNUSED)  # not read here, but by the linter or by nobody


def _read_extensions(root: Table, key: str) -> Mapping[str, Mapping[str, Any]]:
    """Read the tables of extensions of the author; each extension checks its own when the server starts."""
    if (found := root.table(key)) is None:
        return {}
    return {name: entry.data for name in found.data if (entry := found.table(name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDocument:
    """The configuration of a server. Relative paths start at the folder of the file."""

    main: ServerSettings = table(ServerSettings, key="server", known=_SERVER_UNUSED)
    policies: Policies = table(Policies, old="policy", known=("synthesis", *_POLICIES_UNUSED, *_POLICY_TABLES_UNUSED))
    agents: AgentSettings = table(AgentSettings)
    apis: tuple[Mapping[str, Any], ...] = setting(
        (), "APIs that the manifest names (AGTP-API 8.6).", kind="tables", read=Table.json_tables
    )
    hosted_protocols: tuple[Mapping[str, Any], ...] = setting(
        (),
        "Protocols that the manifest names (AGTP-API 8.6).",
        kind="tables",
        read=Table.json_tables,
        old="hosts_protocols",
    )
    auth: AuthSettings = table(AuthSettings)
    audit: AuditSettings = table(AuditSettings, known=REFERENCE_KEYS)
    store: StoreSettings = table(StoreSettings)
    idempotency: IdempotencySettings = table(IdempotencySettings)
    sessions: SessionSettings = table(SessionSettings)
    cases: CaseSettings = table(CaseSettings)
    listen: ListenSettings = table(ListenSettings)
    mtls: ClientCertificateSettings = table(ClientCertificateSettings)
    http: HttpSettings = table(HttpSettings)
    mcp: McpSettings = table(McpSettings)
    a2a: A2aSettings = table(A2aSettings)
    console: ConsoleSettings = table(ConsoleSettings)
    methods: MethodSettings = table(MethodSettings)
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
    data_manifest: DataManifest | None = optional_table(DataManifest)  # with the sources of `data`
    data: tuple[DataSet, ...] = tables(DataSet)
    resources: tuple[ResourceSettings, ...] = tables(ResourceSettings)
    procedures: tuple[Procedure, ...] = tables(Procedure)
    recipes: Path | None = None  # file of the recipes, from `[server]` or the key of the reference implementation
    signing_key: Path | None = None  # key that signs manifests and audit records, from either place as well
    extension_tables: Mapping[str, Any] = field(default_factory=dict)
    """Settings of bundled extensions, by the names of the tables that are present."""
    given: frozenset[str] = frozenset()  # tables of the file
    source: Table | None = field(default=None, compare=False, repr=False)  # the file as it is written, with its places

    def extension_table(self, name: str, of: type[_T]) -> _T | None:
        """Return the settings in a table of a bundled extension; None if the file does not have it."""
        settings = self.extension_tables.get(name)
        assert settings is None or isinstance(settings, of)
        return settings

    @property
    def identity(self) -> ServerIdentity | None:
        """Identity of the server. None without a `server_id`, unless an AGIS document may supply it."""
        return self.main.identity if self.main.server_id or self.document is not None else None


def read_server(path: Path) -> tuple[ServerDocument, list[Diagnostic]]:
    root = read_toml(path)
    return (ServerDocument(), [root]) if isinstance(root, Diagnostic) else server_of(root, path.parent)


def parse_server(text: str, file: str) -> tuple[ServerDocument, list[Diagnostic]]:
    """Parse a configuration. A wrong value is reported and keeps its default."""
    root = toml_table(text, file)
    return (ServerDocument(), [root]) if isinstance(root, Diagnostic) else server_of(root, Path(file).parent)


def server_of(root: Table, base: Path) -> tuple[ServerDocument, list[Diagnostic]]:
    document = read_settings(ServerDocument, root, base.joinpath, (*_ELSEWHERE, *TABLES))
    extended = {
        name: read_settings(TABLES[name].load(), inner, base.joinpath)
        for name in TABLES
        if name in root.data and (inner := root.table(name)) is not None
    }
    server, policies = document.main, _part(root, "policies" if "policies" in root.data else "policy")
    signing = _reported_part(root, "signing")
    synthesis = [part for outer in (policies, root) if (part := _reported_part(outer, "synthesis")) is not None]
    signing_key = server.signing_key
    if signing is not None:
        enabled, file = signing.boolean("enabled"), signing.text("key_path")
        signing_key = signing_key or (base / file if enabled and file else None)
    recipes = [server.recipes, *(base / file for part in synthesis if (file := part.text("recipes_file")))]
    document = replace(
        document,
        document=document.document or server.document,
        recipes=next(filter(None, recipes), None),
        signing_key=signing_key,
        given=frozenset(root.data),
        source=root,
        extension_tables=extended | _read_synthesis(extended, root, synthesis),
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
    _report_unused(root, policies, signing, synthesis)
    for part in (signing, *synthesis):
        if part is not None:
            part.finish()
    return document, root.findings.found


def declared_tables() -> Iterator[tuple[str, Setting]]:
    """Yield the key and the declaration of each setting of the file, those of extensions last."""
    yield from ((key, found) for _, key, found in declared(ServerDocument))
    for name, settings in TABLES.items():
        of = settings.load()
        own: Setting | None = getattr(of, "declaration", None)  # a table whose keys the operator chooses
        yield name, own or Setting(meaning=meaning_of(of), kind="table", of=of)


def report_unread(root: Table, path: Path) -> list[Diagnostic]:
    """Warn of a file that has tables of a configuration that guard something, but is not read as one."""
    guarding = [key for key, found in declared_tables() if key in root.data and is_guarding(found)]
    if not guarding:
        return []
    message = f"{path.name} is not read here, so its [{'], ['.join(guarding)}] has no effect"
    advice = "Move it into the configuration that is served, or serve this one."
    at = root.pointer(guarding[0])
    return [NO_EFFECT.found(message, root.findings.locate(at), at, advice)]


def _part(outer: Table, key: str) -> Table | None:
    """Return a table; None if it is absent or, as another check reports, not a table."""
    value = outer.data.get(key)
    return Table(value, f"{outer.at}/{key}", outer.findings) if isinstance(value, dict) else None


def _reported_part(outer: Table | None, key: str) -> Table | None:
    """Return a table that no other check reads; None if it is absent. Anything else is reported."""
    return outer.table(key) if outer is not None and key in outer.data else None


def _read_synthesis(extended: Mapping[str, Any], root: Table, parts: Iterable[Table]) -> dict[str, Any]:
    """Return `[negotiation]` with the durations of the reference implementation's tables that it does not have."""
    own = _part(root, "negotiation")
    found: dict[str, float] = {}
    for part in parts:
        for key, name in _SYNTHESIS_DURATIONS.items():
            text = part.text(key)
            seconds = None if text is None else read_duration(text)
            if text is not None and seconds is None:
                part.wrong(key, 'a duration such as "24h" or "7d"', text)
            elif seconds is not None and (own is None or name not in own.data):
                found[name] = float(seconds)
    settings = extended.get("negotiation") or (TABLES["negotiation"].load()() if found else None)
    return {} if settings is None else {"negotiation": replace(settings, **found)}


def _check(document: ServerDocument, root: Table) -> None:
    """Report settings that contradict or require settings of another table."""
    findings, audit = root.findings, _part(root, "audit")
    if document.signing_key is None and audit is not None:
        document.audit.check_key(audit)
    if document.document is None and document.main.app is None and document.main.server_id:
        for name in ("operator", "contact"):
            if not root.data["server"].get(name):
                message = f"`{name}` is missing; every manifest has it (AGTP-API 8.3)"
                findings.warning(INCOMPLETE_IDENTITY, message, root.pointer("server"))
    for key in ("vocabulary", "data_manifest") if document.document is not None else ():
        if key in root.data:
            message = f"[{key}] and `document` exclude each other: the document has its own"
            findings.error(CONTRADICTION, message, root.pointer(key), f"Write it into {document.document}.")
    if document.document is None and "handlers" in root.data:
        message = "[handlers] needs `document`: it is for the endpoints of an AGIS document"
        findings.error(CONTRADICTION, message, root.pointer("handlers"), 'Write document = "NAME.agis" at the top.')
    negotiable = document.vocabulary is not None and document.vocabulary.negotiable
    if negotiable and document.data_manifest is None and not document.data:
        message = "`data_manifest` is missing; `negotiable = true` needs it (AGIS 8.2)"
        advice = "Write a [[data]] for each class of data agents may negotiate about."
        findings.error(MISSING_KEY, message, child(root.pointer("vocabulary"), "negotiable"), advice)


def _check_protection(document: ServerDocument, policies: Table | None, signing: Table | None, root: Table) -> None:
    """Report protection that the file names and this server would not give: it must not start without."""
    if signing is not None and signing.data.get("enabled") is True and document.signing_key is None:
        signing.error(CONTRADICTION, "enabled", "[signing] is enabled, but names no key", 'Write key_path = "FILE".')
    oauth = None if policies is None else _part(policies, "oauth")
    if oauth is not None and oauth.data.get("enabled") is True and "token" not in document.auth.modes:
        message = "[policies.oauth] is enabled, but [auth] does not require tokens"
        advice = 'Write modes = ["token"] in [auth], and the issuer\'s keys in [auth.token].'
        oauth.error(CONTRADICTION, "enabled", message, advice)
    one, other = document.mtls, document.auth.mtls
    if one.mode != "disabled" and "mtls" in document.auth.modes and one.ca_bundle_path != other.ca:
        message = "[mtls] and [auth.mtls] name different authorities of client certificates"
        at = child(root.pointer("mtls"), "ca_bundle_path")
        root.findings.error(CONTRADICTION, message, at, "Keep one of them.")


def _report_unused(root: Table, policies: Table | None, signing: Table | None, synthesis: Iterable[Table]) -> None:
    """Report each setting of the reference implementation that has no effect here."""
    parts = [(_part(root, "server"), _SERVER_UNUSED), (policies, _POLICIES_UNUSED), (signing, ("key_id",))]
    parts += [(part, ("policies", "session_duration", "async_evaluation_enabled")) for part in synthesis]
    parts.append((_part(root, "audit"), REFERENCE_KEYS[:1]))
    for outer, names in ((root, _TABLES_UNUSED), (policies, _POLICY_TABLES_UNUSED)):
        parts += [(part, tuple(part.data)) for name in names if (part := _reported_part(outer, name)) is not None]
    for block, keys in parts:
        if block is None:
            continue
        block.asked.update(keys)
        if used := [key for key in keys if block.data.get(key) not in (None, "")]:
            message = f"this server does not act on [{block.at[1:].replace('/', '.')}] {', '.join(used[:20])}"
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


def configuration_beside(folder: Path, app: str) -> Path | None:
    """Find the configuration in a folder that applies to `module:app`: it names that app, or nothing to serve."""
    path = next((folder / name for name in CONFIGURATIONS if is_there(folder / name)), None)
    if path is None:
        return None
    server, _ = read_server(path)
    named = server.main.app
    return path if server.document is None and (named is None or app in (named, f"{named}:app")) else None


def served_with(of: Service, given: ServerIdentity | None, policies: Policies | None, catalog: str | None) -> Service:
    """Apply a configuration to the service `of` a document; the configuration takes precedence."""
    identity = of.identity
    if given is not None:
        identity = replace(
            given,
            name=given.name or identity.name,
            server_id=given.server_id or identity.server_id,
            operator=given.operator if given.operator != UNSPECIFIED else identity.operator,
            contact=given.contact or identity.contact,
        )
    policies = with_custom(policies, of.policies.methods.custom) if policies else of.policies
    return replace(of, identity=identity, policies=policies, catalog=catalog or of.catalog)


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


def check_identity(identity: ServerIdentity, place: Location) -> Iterable[Diagnostic]:
    """Warn if operator or contact is missing, which every manifest carries (AGTP-API 8.3)."""
    missing = [name for name in ("operator", "contact") if getattr(identity, name) in ("", UNSPECIFIED)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"`{'` and `'.join(missing)}` {verb} missing, but required in every manifest (AGTP-API 8.3)"
        yield INCOMPLETE_IDENTITY.found(message, place, advice=f"Add them here, or to [server] of {CONFIGURATIONS[0]}.")
