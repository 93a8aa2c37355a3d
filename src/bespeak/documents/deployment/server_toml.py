"""bespeak.toml: how a service is served. It also reads an agtp-server.toml, and names what has no effect here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.data_manifest import DataManifest
from bespeak.contract.policy import Policies
from bespeak.contract.rate import RateLimits
from bespeak.contract.service import UNSPECIFIED, ServerIdentity
from bespeak.contract.vocabulary import Vocabulary
from bespeak.documents.deployment.handlers_toml import HandlerEntry, read_handlers
from bespeak.documents.deployment.http_settings import HttpSettings, read_http
from bespeak.documents.deployment.policy_shape import read_policies
from bespeak.documents.deployment.rate_toml import read_rate_limits
from bespeak.documents.deployment.vocabulary_toml import read_data_manifest, read_vocabulary
from bespeak.state.audit.settings import REFERENCE_KEYS, AuditSettings, read_audit
from bespeak.state.identity.settings import AuthSettings, read_auth
from bespeak.state.store.session_settings import CaseSettings, SessionSettings, read_cases, read_sessions
from bespeak.state.store.settings import IdempotencySettings, StoreSettings, read_idempotency, read_store
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table

_SERVER_UNUSED: Final = ("amg_version",)
_POLICIES_UNUSED: Final = ("negotiable", "rcns_enabled")
_TABLES_UNUSED: Final = ("gateway", "mtls")
_POLICY_TABLES_UNUSED: Final = ("rcns", "oauth")
_SIGNING_UNUSED: Final = ("key_id",)
_SYNTHESIS_UNUSED: Final = (
    "policies",
    "session_duration",
    "persistent_default_duration",
    "persistent_max_duration",
    "async_evaluation_enabled",
    "max_evaluation_duration",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """`[listen]`: where and how connections are accepted."""

    agtp: str | None = None
    """`host:port`"""
    http: str | None = None
    """`host:port`; None for no HTTP face."""
    cert: Path | None = None
    key: Path | None = None
    workers: int | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """`[limits]`: seconds, bytes and connections; None leaves the server's default."""

    idle_timeout: float | None = None
    read_timeout: float | None = None
    drain_timeout: float | None = None
    max_connections: int | None = None
    max_body: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """`[agents]`: where the identity documents are, and who may know of them (AGTP-API 8.5)."""

    directory: Path | None = None
    disclosure: str = "public"
    disclosure_notice: str | None = None
    require_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSettings:
    """`[[resources]]`: content that QUERY / searches, given by a function."""

    name: str
    description: str
    function: str
    """Dotted path of a function that yields texts or objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDocument:
    """A configuration. Paths are absolute or start where the file stands."""

    identity: ServerIdentity | None = None
    """None when the file gives no `server_id`; an app may have one. Beside a document what is not said is empty."""
    description: str = ""
    """What the service does, for faces that say so."""
    document_version: str | None = None
    catalog: str | None = None
    """Version of a bundled catalog, or the path of a catalog document; None for the default one."""
    policies: Policies = field(default_factory=Policies)
    agents: AgentSettings = field(default_factory=AgentSettings)
    apis: tuple[Mapping[str, Any], ...] = ()
    hosted_protocols: tuple[Mapping[str, Any], ...] = ()
    auth: AuthSettings = field(default_factory=AuthSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    idempotency: IdempotencySettings = field(default_factory=IdempotencySettings)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    cases: CaseSettings = field(default_factory=CaseSettings)
    listen: ListenSettings = field(default_factory=ListenSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    rate_limits: RateLimits = field(default_factory=RateLimits)
    """`[limits.rate]`: how often one caller may call."""
    app: str | None = None
    """`module:name` of an App."""
    document: Path | None = None
    """The AGIS document whose endpoints are served."""
    handlers: tuple[HandlerEntry, ...] = ()
    """Who answers for the endpoints of the document."""
    vocabulary: Vocabulary | None = None
    data_manifest: DataManifest | None = None
    endpoints: Path | None = None
    recipes: Path | None = None
    signing_key: Path | None = None
    wildcard_handler: str | None = None
    """Dotted path of the function that answers ad-hoc invocations."""
    resources: tuple[ResourceSettings, ...] = ()
    given: frozenset[str] = frozenset()
    """The tables that stand in the file, so that an app's own settings yield only to what was written."""


def read_server(path: Path) -> tuple[ServerDocument, list[Diagnostic]]:
    """The configuration in a file, and everything that is wrong with it."""
    text = read_text(path)
    return (ServerDocument(), [text]) if isinstance(text, Diagnostic) else parse_server(text, str(path))


def parse_server(text: str, file: str) -> tuple[ServerDocument, list[Diagnostic]]:
    """The configuration a text declares; what is wrong keeps its default."""
    root = toml_table(text, file)
    return (ServerDocument(), [root]) if isinstance(root, Diagnostic) else server_of(root, Path(file).parent)


def server_of(root: Table, base: Path) -> tuple[ServerDocument, list[Diagnostic]]:
    """The configuration in the root table of a document."""
    server = _part(root, "server")
    policies = _part(root, root.either("policies", "policy"))
    synthesis = (_part(policies, "synthesis"), _part(root, "synthesis"))
    signing = _part(root, "signing")
    limits = _part(root, "limits")
    rate_limits = read_rate_limits(limits)
    recipes = [_path(server, "recipes", base), *(_path(table, "recipes_file", base) for table in synthesis)]
    signing_keys = [_path(server, "signing_key", base), _read_signing(signing, base)]
    agis = _path(root, "document", base) or _path(server, "document", base)
    document = ServerDocument(
        identity=_read_identity(server, beside_document=agis is not None),
        description=server.text("description") or "",
        document_version=server.text("document_version"),
        catalog=server.text("catalog"),
        policies=read_policies(policies),
        agents=_read_agents(_part(root, "agents"), base),
        apis=_plain_tables(root, "apis"),
        hosted_protocols=_plain_tables(root, root.either("hosted_protocols", "hosts_protocols")),
        auth=read_auth(root, base),
        audit=read_audit(root, has_key=any(signing_keys)),
        store=read_store(root),
        idempotency=read_idempotency(root),
        sessions=read_sessions(root),
        cases=read_cases(root),
        listen=_read_listen(_part(root, "listen"), base),
        http=read_http(root),
        limits=_read_limits(limits),
        rate_limits=rate_limits,
        app=server.text("app"),
        document=agis,
        handlers=read_handlers(root),
        vocabulary=read_vocabulary(root),
        data_manifest=read_data_manifest(root),
        endpoints=_path(server, "endpoints", base),
        recipes=next(filter(None, recipes), None),
        signing_key=next(filter(None, signing_keys), None),
        wildcard_handler=server.text("wildcard_handler"),
        resources=tuple(_read_resource(block) for block in root.tables("resources")),
        given=frozenset(root.data),
    )
    _report_contradictions(root, agis)
    _report_unused(root, server, policies, signing, *synthesis)
    root.has("lint")  # the linter's own settings, which it reads and checks itself
    for table in (root, server, policies, signing, *synthesis):
        table.finish()
    return document, root.findings.found


def _part(table: Table, key: str) -> Table:
    """A table that may be absent: then it is empty."""
    return table.table(key) or Table({}, table.pointer(key), table.findings)


def _path(table: Table, key: str, base: Path) -> Path | None:
    text = table.text(key)
    return base / text if text else None


def _plain_tables(root: Table, key: str) -> tuple[Mapping[str, Any], ...]:
    """Entries whose form is the operator's own (AGTP-API 8.6): passed on to the manifest as they are."""
    root.check_json(key)
    return tuple(entry.data for entry in root.tables(key))


def _read_identity(server: Table, *, beside_document: bool) -> ServerIdentity | None:
    key = server.either("server_id", "issuer")
    server_id = server.text(key)
    identity = ServerIdentity(
        server_id=server_id or "",
        operator=server.text("operator") or UNSPECIFIED,
        contact=server.text("contact") or "",
        name=server.text("name") or "",
        domain=server.text("domain") or None,
        supported_features=server.texts("supported_features"),
        issued=server.text("issued") or None,
    )
    if beside_document:
        return identity
    if not server_id:
        return None
    for name in ("operator", "contact"):
        if not server.value(name):
            message = f"`{name}` is missing, which every manifest carries (AGTP-API 8.3)"
            server.findings.warning("Y820", message, server.at)
    return identity


def _read_agents(block: Table, base: Path) -> AgentSettings:
    # The reference implementation calls the middle level `limited`.
    limited = block.value("disclosure") == "limited"
    settings = AgentSettings(
        directory=_path(block, "directory", base),
        disclosure="authenticated" if limited else block.choice("disclosure", DISCLOSURES) or "public",
        disclosure_notice=block.text("disclosure_notice"),
        require_known=block.boolean("require_known") or False,
    )
    block.finish()
    return settings


def _read_listen(block: Table, base: Path) -> ListenSettings:
    settings = ListenSettings(
        agtp=block.text("agtp"),
        http=block.text("http"),
        cert=_path(block, "cert", base),
        key=_path(block, "key", base),
        workers=block.count("workers"),
        insecure=block.boolean("insecure") or False,
    )
    if (settings.cert is None) != (settings.key is None):
        present, absent = ("cert", "key") if settings.cert else ("key", "cert")
        block.findings.error(
            "Y822", f"`{present}` is given without `{absent}`", block.pointer(present), "TLS needs both."
        )
    block.finish()
    return settings


def _read_resource(block: Table) -> ResourceSettings:
    settings = ResourceSettings(
        name=block.need_text("name"),
        description=block.text("description") or "",
        function=block.need_text("function", "Give the dotted path of a function that yields texts or objects."),
    )
    block.finish()
    return settings


def _read_limits(block: Table) -> LimitSettings:
    limits = LimitSettings(
        idle_timeout=block.positive("idle_timeout"),
        read_timeout=block.positive("read_timeout"),
        drain_timeout=block.positive("drain_timeout"),
        max_connections=block.count("max_connections"),
        max_body=block.count("max_body"),
    )
    block.finish()
    return limits


def _read_signing(block: Table, base: Path) -> Path | None:
    """`[signing]` of an agtp-server.toml, which has a switch beside the path."""
    path = _path(block, "key_path", base)
    return path if block.boolean("enabled") else None


def _report_contradictions(root: Table, agis: Path | None) -> None:
    """What an AGIS document says is not said again beside it, and handlers are for a document's endpoints."""
    for key in ("vocabulary", "data_manifest") if agis is not None else ():
        if root.has(key):
            message = f"[{key}] stands beside `document`, which says it itself"
            root.findings.error("Y822", message, root.pointer(key), f"Write it into {agis}.")
    if agis is None and root.has("handlers"):
        message = "[handlers] is for the endpoints of an AGIS document, and none is named"
        root.findings.error("Y822", message, root.pointer("handlers"), 'Write document = "NAME.agis" at the top.')


def _report_unused(root: Table, server: Table, policies: Table, signing: Table, *synthesis: Table) -> None:
    """Name each setting of the reference implementation that has no effect here."""
    for table, keys in ((server, _SERVER_UNUSED), (policies, _POLICIES_UNUSED), (signing, _SIGNING_UNUSED)):
        _report_keys(table, keys)
    for table in synthesis:
        _report_keys(table, _SYNTHESIS_UNUSED)
    _report_keys(_part(root, "audit"), REFERENCE_KEYS)
    for outer, names in ((root, _TABLES_UNUSED), (policies, _POLICY_TABLES_UNUSED)):
        for name in names:
            inner = outer.table(name)
            if inner is not None:
                _report_keys(inner, tuple(inner.data))


def _report_keys(table: Table, keys: tuple[str, ...]) -> None:
    used = [key for key in keys if table.value(key) not in (None, "")]
    if used:
        name = table.at[1:].replace("/", ".")
        message = f"this server does not act on [{name}] " + ", ".join(used[:20])
        table.findings.warning("Y821", message, table.pointer(used[0]))
