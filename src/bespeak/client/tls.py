"""Whether a connection is encrypted."""

from __future__ import annotations

import ssl
from pathlib import Path

from bespeak.client.locator import Locator
from bespeak.errors import ConfigError
from bespeak.transports.tls import client_context


def choose_tls(
    locator: Locator,
    *,
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
) -> ssl.SSLContext | None:
    """The TLS settings for a host, or None for plain TCP.

    Loopback hosts get plain TCP unless `tls` or `ca_file` is given, as no network stands between; any other host gets
    plain TCP only with `insecure`.
    """
    wanted = tls or ca_file is not None
    if insecure and wanted:
        raise ConfigError("insecure means plain TCP, and tls or ca_file means TLS: give one of them.")
    if insecure or (locator.address.is_loopback and not wanted):
        return None
    return client_context(ca_file, verify=verify)
