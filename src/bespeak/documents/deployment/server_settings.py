"""Settings of the server itself: `[server]`, `[agents]`, `[listen]`, `[limits]`, `[upstream]` and `[[resources]]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.limits import RateLimits, StreamLimits
from bespeak.contract.service import UNSPECIFIED, ServerIdentity
from bespeak.documents.rules import CONTRADICTION
from bespeak.text.reading.settings import setting, table
from bespeak.text.reading.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Identity of the server and the files it serves. Every manifest carries the identity."""

    server_id: str = setting("", "The name of the server, usually its host.", old="issuer")
    name: str = setting("", "The name of the service, for people.")
    description: str = setting("", "What the service does, in a sentence.")
    operator: str = setting("", "The operator of the server.")
    contact: str = setting("", "The contact address of the operator.")
    domain: str = setting("", "The field of the service.")
    supported_features: tuple[str, ...] = setting((), "Features that the manifest names.")
    issued: str = setting(
        "", "When the manifest was first issued, ISO 8601. Without it: recorded in the store at the first start."
    )
    document_version: str | None = setting(None, "The version of the manifest. Without it: derived from the content.")
    catalog: str | None = setting(
        None, "A bundled version of the catalog, or the path of a catalog document. Without it: the newest."
    )
    app: str | None = setting(None, "`module:name` of an App whose endpoints join those of the files.")
    document: Path | None = setting(None, "An AGIS document whose endpoints are served.", kind="path")
    endpoints: Path | None = setting(None, "The folder of the endpoint files. Without it: `endpoints/`.", kind="path")
    recipes: Path | None = setting(None, "The file of the recipes. Without it: `agtp-recipes.toml`.", kind="path")
    signing_key: Path | None = setting(None, "The Ed25519 key that signs manifests and audit records.", kind="path")
    wildcard_handler: str | None = setting(None, "The dotted path of a function for calls of undeclared methods.")
    lifespan: str | None = setting(None, "The dotted path of a function that opens and closes what handlers share.")

    @property
    def identity(self) -> ServerIdentity:
        return ServerIdentity(
            server_id=self.server_id,
            operator=self.operator or UNSPECIFIED,
            contact=self.contact,
            name=self.name,
            domain=self.domain or None,
            supported_features=self.supported_features,
            issued=self.issued or None,
        )


def _read_disclosure(block: Table, key: str) -> str | None:
    # The reference implementation calls the middle level `limited`.
    return "authenticated" if block.value(key) == "limited" else block.choice(key, DISCLOSURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The agents that the server hosts, and who may see them (AGTP-API 8.5)."""

    directory: Path | None = setting(
        None, "The folder of their identity documents. Without it: `agents/`.", kind="path"
    )
    disclosure: str = setting("public", "Who may see them.", choices=DISCLOSURES, read=_read_disclosure, security=True)
    disclosure_notice: str | None = setting(None, "A note for callers that may not see them.")
    require_known: bool | None = setting(
        None,
        "Refuse Agent-IDs without an identity document. Without it: as soon as one agent is registered.",
        kind="boolean",
        security=True,
    )
    stale_after: float = setting(
        10.0,
        "Seconds for which a process that cannot read the shared store acts on what it last read of the agents; "
        "then calls that need authority are refused with 503.",
        kind="seconds",
        bounds=(1, 86400),
        security=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """Addresses, ports and TLS for incoming connections."""

    agtp: str | None = setting(None, "`HOST:PORT` of the AGTP face. Without it: `127.0.0.1:4480`.")
    http: str | None = setting(None, "`HOST:PORT` of the HTTP face. Without it there is none.")
    operations: str | None = setting(
        None,
        "`HOST:PORT` of `/healthz` and `/metrics`, in plain HTTP for the operator alone. Without it there is none.",
    )
    cert: Path | None = setting(None, "The TLS certificate, PEM.", kind="path", security=True)
    key: Path | None = setting(None, "The private key of the certificate, PEM.", kind="path")
    workers: int | None = setting(None, "The number of worker processes. Without it: 1.", kind="count")
    insecure: bool = setting(False, "Serve other machines without TLS or proof of identity.")

    def checked(self, block: Table) -> ListenSettings:
        """Reject a certificate without its key, and a key without its certificate."""
        if (self.cert is None) != (self.key is None):
            present, absent = ("cert", "key") if self.cert else ("key", "cert")
            message = f"`{present}` needs `{absent}`"
            block.findings.error(CONTRADICTION, message, block.pointer(present), "TLS needs both.")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificateSettings:
    """Client certificates of every connection, as the reference implementation configures them.

    They admit a connection, whatever `[auth] modes` then require of a request.
    """

    mode: str = setting(
        "disabled",
        "Whether clients must present a certificate.",
        choices=("disabled", "optional", "required"),
        security=True,
    )
    ca_bundle_path: Path | None = setting(
        None, "The authorities that issue the certificates: a PEM bundle.", kind="path"
    )

    def checked(self, block: Table) -> ClientCertificateSettings:
        """Reject client certificates without the authorities that issue them."""
        if self.mode != "disabled" and self.ca_bundle_path is None:
            message = f"`mode` is {self.mode!r}, which needs `ca_bundle_path`"
            advice = "Name the authorities that issue the certificates."
            block.findings.error(CONTRADICTION, message, block.pointer("mode"), advice)
        return self


_SECONDS: Final[dict[str, Any]] = {"kind": "seconds", "read": Table.positive, "security": True}
_COUNT: Final[dict[str, Any]] = {"kind": "count", "security": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Limits of size, number and time; SECURITY.md lists the defaults."""

    idle_timeout: float | None = setting(None, "Seconds a connection may be silent.", **_SECONDS)
    read_timeout: float | None = setting(None, "Seconds a request may take to arrive.", **_SECONDS)
    drain_timeout: float | None = setting(None, "Seconds for running requests when the server stops.", **_SECONDS)
    max_connections: int | None = setting(None, "Connections of one worker, all faces together.", **_COUNT)
    max_body: int | None = setting(None, "Bytes of one body.", **_COUNT)
    max_buffered: int | None = setting(None, "Bytes of all unfinished requests of one worker.", **_COUNT)
    rate: RateLimits = table(RateLimits)
    stream: StreamLimits = table(StreamLimits)


ALL: Final = "all"
RESULT_BOUNDS: Final = (5_000, 10_000_000)  # least and greatest value of `max_result`


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """Endpoints as MCP tools."""

    enabled: bool = setting(False, "Serve MCP at `/mcp` of the HTTP face, which needs the extra `mcp`.")
    tools_listed: int = setting(
        40,
        'The most tools that are listed; a server with more lists a search instead. `"all"` lists any number.',
        read=lambda block, key: 0 if block.value(key) == ALL else block.count(key),
    )
    max_result: int = setting(
        50_000,
        "The most characters of a result. A longer one is cut, and says how to get the rest.",
        bounds=RESULT_BOUNDS,
        security=True,
    )
    toolsets: tuple[str, ...] = setting(
        (), "The namespaces whose endpoints are tools: first segments of paths. Without it: all."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aSettings:
    """Endpoints as skills of an A2A agent."""

    enabled: bool = setting(False, "Serve A2A at `/a2a` of the HTTP face, which needs the extra `a2a`.")
    most_skills: int = setting(
        100, "Number of endpoints up to which the agent card has a skill for each; beyond it, one for each namespace."
    )
    retention: float = setting(
        86400, "Seconds for which a task is kept after its last change.", kind="seconds", read=Table.positive
    )
    most_tasks: int = setting(
        1000, "Maximum number of tasks of one caller; the one that was finished first makes room.", security=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """The console for operators and authors."""

    enabled: bool = setting(
        False,
        "Serve the console at `/console` of the HTTP face. On loopback each start has a token; elsewhere callers need "
        "`[auth]` and the scope `console:read` or `console:act`.",
        security=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """Upstreams of all external_service handlers."""

    trust_answers: bool = setting(
        False,
        "Pass on answers that break the output schema, with a warning in the log. Without it they are refused with "
        "`upstream-output-invalid`.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSettings:
    """Content that `QUERY /` searches, provided by a function."""

    name: str = setting("", "The name of the resource.", required=True)
    description: str = setting("", "What it contains, for people.")
    function: str = setting(
        "",
        "The dotted path of a function that yields strings or objects.",
        required=True,
        advice="Write the dotted path of a function that yields strings or objects.",
    )
