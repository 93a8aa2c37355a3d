"""Choice between TLS and plain TCP."""

from __future__ import annotations

import ssl
from pathlib import Path

from bespeak.errors import ConfigError
from bespeak.protocol.locator import Locator
from bespeak.protocol.tls import client_context


def choose_tls(
    locator: Locator,
    *,
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
    client_cert: str | Path | None = None,
    client_key: str | Path | None = None,
) -> ssl.SSLContext | None:
    """Return the TLS settings for a host, or None for plain TCP.

    Loopback hosts use plain TCP unless `tls`, `ca_file` or `client_cert` is given; any other host uses plain TCP only
    with `insecure`. The client certificate is sent to servers that request one.
    """
    if client_key is not None and client_cert is None:
        raise ConfigError("client_key (--client-key) requires client_cert (--client-cert).")
    wanted = tls or ca_file is not None or client_cert is not None
    if insecure and wanted:
        raise ConfigError("insecure (plain TCP) cannot be combined with tls, ca_file or client_cert (TLS).")
    if insecure or (locator.address.is_loopback and not wanted):
        return None
    return client_context(ca_file, verify=verify, cert=client_cert, key=client_key)
