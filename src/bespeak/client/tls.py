"""Whether a connection is encrypted, and whom it trusts."""

from __future__ import annotations

import ssl
from pathlib import Path

from bespeak.client.locator import Locator
from bespeak.errors import ConfigError


def choose_tls(
    locator: Locator,
    *,
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
) -> ssl.SSLContext | None:
    """The TLS settings for a host, or None for plain TCP.

    Core 1 demands TLS 1.3. Loopback hosts get plain TCP unless `tls` or `ca_file` is given, as no network stands
    between; any other host gets plain TCP only with `insecure`.
    """
    wanted = tls or ca_file is not None
    if insecure and wanted:
        raise ConfigError("insecure means plain TCP, and tls or ca_file means TLS: give one of them.")
    if insecure or (locator.is_loopback and not wanted):
        return None
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"The CA file {str(ca_file)!r} cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["agtp"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
