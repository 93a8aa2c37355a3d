"""Settings of `bespeak serve`, in a form that can be passed to a worker process, and what follows from them."""

from __future__ import annotations

import logging
import secrets
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.faces.limits import DEFAULT_TIMEOUTS, MAX_BUFFERED, MAX_CONNECTIONS
from bespeak.protocol.address import HTTP_PORT, OPERATIONS_PORT, Address, parse_address
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.settings import MEMORY
from bespeak.terminal.deployment import store_place

if TYPE_CHECKING:
    from bespeak.runtime.dispatcher import Dispatcher


@dataclass(frozen=True, slots=True)
class HttpAssembly:
    """What the applications on the HTTP face of a server share."""

    dispatcher: Dispatcher
    web: HttpSettings
    auth: AuthSettings
    limits: Limits = DEFAULT_LIMITS
    loopback: bool = False  # True if the server listens on loopback only
    stateless: bool = False  # True if there are several processes, so that no session can be kept in one


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to serve, where and how. Command-line values override the configuration."""

    target: str
    address: Address  # listening address of AGTP
    http: Address | None = None  # listening address of HTTP; None if it is not served
    operations: Address | None = None  # listening address of /healthz and /metrics; None if they are not served
    web: HttpSettings = field(default_factory=HttpSettings)  # settings of the HTTP face
    mcp: McpSettings = field(default_factory=McpSettings)  # MCP on the HTTP face
    a2a: A2aSettings = field(default_factory=A2aSettings)  # A2A on the HTTP face
    console: bool = False  # True to serve the console on the HTTP face
    console_token: str | None = None  # token of this start that admits to the console; None to ask for credentials
    workers: int = 1
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    client_ca: Path | None = None  # authorities of the certificates that clients are asked for
    client_required: bool = False  # True if a connection without a client certificate is refused
    auth: AuthSettings = field(default_factory=AuthSettings)  # authentication of callers
    store: str = MEMORY  # Location of the store: a path, `memory` or `postgresql://...`
    durability: str = "full"
    keys_required: bool = False  # True if irreversible calls require an idempotency key; published documents state it
    strict: bool = False  # True to refuse to start if any endpoint is omitted
    log_level: str = "warning"
    log_format: str = "text"
    max_connections: int = MAX_CONNECTIONS
    idle_timeout: float = DEFAULT_TIMEOUTS.idle
    read_timeout: float = DEFAULT_TIMEOUTS.read
    drain_timeout: float = DEFAULT_TIMEOUTS.drain
    # Maximum bytes of a body. Decoding blocks the loop: about 10 ms per megabyte, a hostile one ten times that.
    max_body: int = DEFAULT_LIMITS.body
    max_buffered: int = MAX_BUFFERED  # maximum bytes of all unfinished requests of one process

    def check(self) -> None:
        """Refuse unsafe settings: plain TCP or unverified headers beyond loopback, half a key pair."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("TLS needs both files: --cert and --key")
        for file, what in ((self.certificate, "certificate (--cert)"), (self.key, "key (--key)")):
            if file is not None and not file.is_file():
                raise ConfigError(f"no such file: {file}, the {what} for TLS")
        self._check_reach("AGTP", self.address)
        self._check_http()
        for other in (self.address, self.http):
            if self.operations is not None and other is not None and other.port and other.overlaps(self.operations):
                raise ConfigError(f"--operations {self.operations} conflicts with {other}: give it another port")
        if self.client_ca is not None:
            if self.certificate is None:
                raise ConfigError("client certificates require TLS: give --cert and --key, or disable mtls")
            if not self.client_ca.is_file():
                raise ConfigError(f"no such file: {self.client_ca}, the authorities of client certificates")
        least = f"{self.max_body + DEFAULT_LIMITS.head}, for one request with max_body"
        if self.max_buffered < self.max_body + DEFAULT_LIMITS.head:
            raise ConfigError(f"max_buffered of [limits] must be at least {least}; got {self.max_buffered}")
        if not 1 <= self.workers <= 256:
            raise ConfigError(f"--workers must be 1 to 256; got {self.workers}")

    def _check_http(self) -> None:
        if self.http is not None:
            self._check_reach("HTTP", self.http)
            if self.http.port and self.http.overlaps(self.address):
                raise ConfigError(f"AGTP on {self.address} and HTTP on {self.http} conflict: give --http another port")
            return
        for name, enabled in (("MCP", self.mcp.enabled), ("A2A", self.a2a.enabled), ("The console", self.console)):
            if enabled:
                raise ConfigError(f"{name} is served on the HTTP face: give --http HOST:PORT too")

    def _check_reach(self, protocol: str, address: Address) -> None:
        """Require TLS and authentication on addresses that others can reach, unless the operator opts out."""
        if address.is_loopback or self.insecure:
            return
        option = "" if protocol == "AGTP" else f" (--{protocol.lower()})"
        if self.certificate is None:
            advice = "give --cert and --key (or --insecure, to send everything in the clear)"
            raise ConfigError(f"{protocol} on {address}{option} needs TLS: {advice}")
        if self.auth.is_open:
            advice = "choose [auth] modes in bespeak.toml (token, key, mtls, signed), or give --insecure"
            raise ConfigError(f"callers on {address}{option} would not be authenticated: {advice}")


def plan_settings(
    target: str,
    document: ServerDocument,
    *,
    address: str | None = None,
    http: str | None = None,
    operations: str | None = None,
    mcp: bool = False,
    a2a: bool = False,
    console: bool = False,
    workers: int | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    insecure: bool = False,
    store: str | None = None,
    **chosen: Any,
) -> Settings:
    """Return the settings of a target: command line, else configuration, else defaults. `chosen` has no other place."""
    listen = document.listen
    given = asdict(document.limits).items()
    limits = {name: value for name, value in given if name not in ("rate", "stream") and value is not None}
    limits.setdefault("max_buffered", max(MAX_BUFFERED, 4 * limits.get("max_body", 0)))
    if certificate is None and key is None:
        certificate, key = listen.cert, listen.key
    by_request, by_connection = "mtls" in document.auth.modes, document.mtls.mode != "disabled"
    web_address = listen.http if http is None else http
    monitored = listen.operations if operations is None else operations
    settings = Settings(
        target=target,
        address=parse_address(address or listen.agtp or ""),
        http=None if web_address is None else parse_address(web_address, HTTP_PORT),
        operations=None if monitored is None else parse_address(monitored, OPERATIONS_PORT),
        web=document.http,
        mcp=replace(document.mcp, enabled=mcp or document.mcp.enabled),
        a2a=replace(document.a2a, enabled=a2a or document.a2a.enabled),
        console=console or document.console.enabled,
        workers=workers if workers is not None else listen.workers or 1,
        certificate=certificate,
        key=key,
        client_ca=document.auth.mtls.ca if by_request else document.mtls.ca_bundle_path if by_connection else None,
        client_required=document.auth.modes == ("mtls",) or document.mtls.mode == "required",
        auth=document.auth,
        insecure=insecure or listen.insecure,
        store=store_place(target, store),
        durability=document.store.durability,
        keys_required=document.idempotency.require,
        **chosen,
        **limits,
    )
    settings.check()
    return _with_console(settings)


def _with_console(settings: Settings) -> Settings:
    """Choose who is admitted to the console: on loopback the holder of a token, elsewhere by credentials."""
    if not settings.console or settings.http is None:
        return settings
    url = settings.web.url
    if settings.http.is_loopback and (url is None or Address(urlsplit(url).hostname or "", 0).is_loopback):
        return replace(settings, console_token=secrets.token_urlsafe(32))
    if settings.auth.is_open:
        raise ConfigError(
            "the console beyond this machine needs credentials: choose [auth] modes, and grant the scope console:read "
            "or console:act"
        )
    return settings


_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound


def with_public_url(settings: Settings, service: Service) -> Settings:
    """Set the public URL of the HTTP face: as configured, else from its address, which port 0 leaves open."""
    address = settings.http
    if address is None or settings.web.url is not None or address.port == 0:
        return settings
    identity = service.identity
    host = (identity.domain or identity.server_id) if address.host in _EVERYWHERE else address.host
    scheme = "http" if settings.certificate is None else "https"
    return replace(settings, web=replace(settings.web, url=f"{scheme}://{Address(host, address.port)}"))


def with_http_face(service: Service, url: str) -> Service:
    """Add the HTTP face to the `apis` of the manifest (AGTP-API 8.6, 14.3), unless it is listed."""
    if any(api.get("url") == url for api in service.apis):
        return service
    face = {"name": service.identity.name or service.identity.server_id, "type": "http", "url": url}
    if is_described(service.policies, service.endpoints):
        face |= {"http_documentation": f"{url}/openapi.json", "discovery": f"{url}/.well-known/ai"}
    return replace(service, apis=(*service.apis, face))


def is_described(policies: Policies, endpoints: Iterable[Endpoint]) -> bool:
    """Return True if documents on the web describe the endpoints: discovery is public, and some are listed."""
    return policies.anonymous_discovery and any(endpoint.is_listed for endpoint in endpoints)


_logger = logging.getLogger(__name__)

RESERVE: Final = 256  # descriptors for the store, files of handlers, upstreams and peers that are being refused


def fit_connections(settings: Settings) -> Settings:
    """Raise the limit of open files for this process and its workers; lower `max_connections` if that is not enough."""
    wanted = settings.max_connections
    limit = _raise_limit(2 * wanted + RESERVE)  # a request may open one file or upstream for each connection
    possible = wanted if limit is None else limit - min(RESERVE, limit // 2)
    if possible >= wanted:
        return settings
    advice = "this process may open only %d files; raise the limit (ulimit -Hn)"
    _logger.warning(f"max_connections is lowered from %d to %d: {advice}", wanted, possible, limit)
    return replace(settings, max_connections=possible)


def _raise_limit(wanted: int) -> int | None:
    """Raise the soft limit up to the hard one; return the limit in force, None if there is none."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    aim = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):  # some systems refuse less than their hard limit
        if aim > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
            return aim
    return soft
