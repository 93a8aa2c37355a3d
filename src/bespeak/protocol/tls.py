"""TLS contexts for AGTP: version 1.3 only (core 1), ALPN offered but not required."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError

ALPN: Final = "agtp"


def server_context(
    cert: str | Path,
    key: str | Path | None = None,
    *,
    client_ca: str | Path | None = None,
    required: bool = False,
    alpn: str = ALPN,
) -> ssl.SSLContext:
    """Build a server context from PEM files; without `key`, the certificate file must contain the private key.

    With `client_ca`, clients are asked for a certificate of these authorities, which may be `required`; any other ends
    the handshake. An elliptic-curve key makes handshakes about twice as cheap as RSA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, alpn)
    _load_pair(context, cert, key)
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"Cannot read the authorities of client certificates from {client_ca}: {error}."
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def client_context(
    ca_file: str | Path | None = None,
    *,
    verify: bool = True,
    cert: str | Path | None = None,
    key: str | Path | None = None,
) -> ssl.SSLContext:
    """Build a client context with the system's authorities, or those in `ca_file`; `cert` is for servers that ask."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot read certificate authorities from {ca_file}: {error}.") from error
    _restrict(context)
    if cert is not None:
        _load_pair(context, cert, key)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def peer_certificate(tls: ssl.SSLObject) -> bytes | None:
    """Return the peer's certificate in DER, if it presented one that was verified."""
    return None if tls.context.verify_mode is ssl.CERT_NONE else tls.getpeercert(binary_form=True)


def _load_pair(context: ssl.SSLContext, cert: str | Path, key: str | Path | None) -> None:
    def refuse() -> str:
        # Without this OpenSSL would prompt for the password on the terminal.
        raise ConfigError(f"The key {key or cert} is protected by a password; use one without a password.")

    try:
        context.load_cert_chain(cert, key, refuse)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot use certificate {cert} with key {key or cert}: {error}.") from error


def _restrict(context: ssl.SSLContext, alpn: str = ALPN) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([alpn])
