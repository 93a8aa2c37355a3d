"""How to serve: everything `bespeak serve` decides before it starts, in a form a worker process can be given."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from bespeak.documents.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.transports.address import Address, parse_address
from bespeak.transports.timeouts import DEFAULT_TIMEOUTS
from bespeak.wire.limits import DEFAULT_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What, where and how. Values of the command line have gone over those of the configuration."""

    target: str
    address: Address
    workers: int = 1
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    strict: bool = False
    """Refuse to start when any endpoint is left out."""
    log_level: str = "warning"
    max_connections: int = 10_000
    idle_timeout: float = DEFAULT_TIMEOUTS.idle
    read_timeout: float = DEFAULT_TIMEOUTS.read
    drain_timeout: float = DEFAULT_TIMEOUTS.drain
    max_body: int = DEFAULT_LIMITS.body
    """Decoding a body takes the loop's time: a megabyte is some ten milliseconds that nobody else is served."""

    def check(self) -> None:
        """Refuse what must not start: plain TCP beyond this machine, half a key pair, no workers."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("TLS needs both files: --cert and --key")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise ConfigError(f"no such file: {file}")
        if self.certificate is None and not self.address.is_loopback and not self.insecure:
            raise ConfigError(
                f"AGTP on {self.address} needs TLS: give --cert and --key "
                "(or --insecure, to send everything in the clear)"
            )
        if not 1 <= self.workers <= 256:
            raise ConfigError(f"--workers is a number from 1 to 256, not {self.workers}")


def plan_settings(
    target: str,
    document: ServerDocument,
    *,
    address: str | None = None,
    workers: int | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    insecure: bool = False,
    strict: bool = False,
    log_level: str = "warning",
) -> Settings:
    """The settings for a target: what the command line says, else the configuration, else the default."""
    listen = document.listen
    limits = {name: value for name, value in asdict(document.limits).items() if value is not None}
    if certificate is None and key is None:
        certificate, key = listen.cert, listen.key
    settings = Settings(
        target=target,
        address=parse_address(address or listen.agtp or ""),
        workers=workers if workers is not None else listen.workers or 1,
        certificate=certificate,
        key=key,
        insecure=insecure or listen.insecure,
        strict=strict,
        log_level=log_level,
        **limits,
    )
    settings.check()
    return settings
