"""TLS as AGTP wants it: 1.3 or nothing (core 1), ALPN `agtp` offered and never required."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError

ALPN: Final = "agtp"


def server_context(cert: str | Path, key: str | Path | None = None) -> ssl.SSLContext:
    """A server's context from PEM files; without `key` the private key stands in the certificate's file.

    Session tickets stay on. A certificate with an elliptic-curve key makes handshakes about twice as cheap as RSA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot use certificate {cert} with key {key or cert}: {error}.") from error
    return context


def client_context(ca_file: str | Path | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """A client's context. It trusts the system's authorities, or only those of `ca_file`."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot read certificate authorities from {ca_file}: {error}.") from error
    _restrict(context)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _restrict(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([ALPN])
