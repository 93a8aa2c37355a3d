"""How to serve: everything `bespeak serve` decides before it starts, in a form a worker process can be given."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from bespeak.app.server.state import store_place
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.faces.timeouts import DEFAULT_TIMEOUTS
from bespeak.protocol.address import HTTP_PORT, Address, parse_address
from bespeak.protocol.wire.limits import DEFAULT_LIMITS
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.settings import MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What, where and how. Values of the command line have gone over those of the configuration."""

    target: str
    address: Address
    """Where AGTP is spoken."""
    http: Address | None = None
    """Where HTTP is spoken, if it is."""
    web: HttpSettings = field(default_factory=HttpSettings)
    """How the service appears on the web."""
    workers: int = 1
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    auth: AuthSettings = field(default_factory=AuthSettings)
    """How callers prove who they are."""
    store: str = MEMORY
    """Where state is kept: a path, `memory` or `postgresql://...`."""
    durability: str = "full"
    keys_required: bool = False
    """Whether calls that cannot be undone need an idempotency key, which documents tell."""
    strict: bool = False
    """Refuse to start when any endpoint is left out."""
    log_level: str = "warning"
    log_format: str = "text"
    max_connections: int = 10_000
    idle_timeout: float = DEFAULT_TIMEOUTS.idle
    read_timeout: float = DEFAULT_TIMEOUTS.read
    drain_timeout: float = DEFAULT_TIMEOUTS.drain
    max_body: int = DEFAULT_LIMITS.body
    """Decoding a body takes the loop's time: a megabyte is some ten milliseconds that nobody else is served."""

    def check(self) -> None:
        """Refuse what must not start: plain TCP or believed headers beyond this machine, half a key pair."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("TLS needs both files: --cert and --key")
        for file, what in ((self.certificate, "certificate (--cert)"), (self.key, "key (--key)")):
            if file is not None and not file.is_file():
                raise ConfigError(f"no such file: {file}, the {what} for TLS")
        self._check_reach("AGTP", self.address)
        if self.http is not None:
            self._check_reach("HTTP", self.http)
            if self.http.port and self.http.overlaps(self.address):
                raise ConfigError(f"AGTP on {self.address} and HTTP on {self.http} meet: give --http another port")
        if "mtls" in self.auth.modes:
            self._check_mtls()
        if not 1 <= self.workers <= 256:
            raise ConfigError(f"--workers is a number from 1 to 256, not {self.workers}")

    def _check_reach(self, protocol: str, address: Address) -> None:
        """What others can reach needs TLS and proof of who calls, unless the operator says otherwise."""
        if address.is_loopback or self.insecure:
            return
        option = "" if protocol == "AGTP" else f" (--{protocol.lower()})"
        if self.certificate is None:
            raise ConfigError(
                f"{protocol} on {address}{option} needs TLS: give --cert and --key "
                "(or --insecure, to send everything in the clear)"
            )
        if self.auth.is_open:
            raise ConfigError(
                f"callers on {address}{option} would be believed whatever they say they are: choose [auth] modes in "
                "bespeak.toml (token, mtls, signed), or give --insecure"
            )

    def _check_mtls(self) -> None:
        if self.certificate is None:
            raise ConfigError(
                "client certificates come with TLS only: give --cert and --key, or leave mtls out of [auth]"
            )
        if self.auth.mtls.ca is None or not self.auth.mtls.ca.is_file():
            raise ConfigError(f"no such file: {self.auth.mtls.ca}, the ca of [auth.mtls]")


def plan_settings(
    target: str,
    document: ServerDocument,
    *,
    address: str | None = None,
    http: str | None = None,
    workers: int | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    insecure: bool = False,
    store: str | None = None,
    strict: bool = False,
    log_level: str = "warning",
    log_format: str = "text",
) -> Settings:
    """The settings for a target: what the command line says, else the configuration, else the default."""
    listen = document.listen
    limits = {name: value for name, value in asdict(document.limits).items() if name != "rate" and value is not None}
    if certificate is None and key is None:
        certificate, key = listen.cert, listen.key
    web_address = listen.http if http is None else http
    settings = Settings(
        target=target,
        address=parse_address(address or listen.agtp or ""),
        http=None if web_address is None else parse_address(web_address, HTTP_PORT),
        web=document.http,
        workers=workers if workers is not None else listen.workers or 1,
        certificate=certificate,
        key=key,
        auth=document.auth,
        insecure=insecure or listen.insecure,
        store=store_place(target, store),
        durability=document.store.durability,
        keys_required=document.idempotency.require,
        strict=strict,
        log_level=log_level,
        log_format=log_format,
        **limits,
    )
    settings.check()
    return settings
