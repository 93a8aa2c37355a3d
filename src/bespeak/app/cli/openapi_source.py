"""The OpenAPI argument of a command: a file, or a URL that is fetched once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.documents.openapi.description import MOST_BYTES, Description
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from bespeak.agent.discovery.fetched import Fetched
    from bespeak.protocol.web_address import WebAddress


def open_description(source: str, *, insecure: bool) -> tuple[Description, list[Diagnostic]]:
    """Read the description at a path or a URL. Raises CommandFailedError if it cannot be used."""
    from bespeak.documents.openapi.reader import read_description  # noqa: PLC0415 - slow to load

    text, name = _fetch(source, insecure=insecure) if "://" in source else (_read(source), source)
    description, findings = read_description(text, name)
    if description is None:
        print_findings(findings)
        raise CommandFailedError(f"{brief(source)[1:-1]} cannot be imported")
    return description, findings


def _read(source: str) -> bytes:
    path = Path(source)
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path} is not a regular file. Give a JSON or YAML file.")
        if path.stat().st_size > MOST_BYTES:
            raise CommandFailedError(f"{path} is larger than {MOST_BYTES // 1_000_000} MB. Split the description.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _fetch(source: str, *, insecure: bool) -> tuple[bytes, str]:
    """Fetch a URL; return the bytes and the final URL."""
    from bespeak.protocol.web_address import AddressFault, parse_address  # noqa: PLC0415 - slow to load

    address = parse_address(source, insecure=insecure)
    if isinstance(address, AddressFault):
        raise ConfigError(str(address))
    fetched = asyncio.run(_get(address, insecure=insecure))
    if fetched.fault is not None:
        raise CommandFailedError(f"{brief(source)}: {fetched.fault.message}")
    return fetched.body, fetched.final_url


async def _get(address: WebAddress, *, insecure: bool) -> Fetched:
    from bespeak.agent.discovery.document_kind import OPENAPI  # noqa: PLC0415
    from bespeak.agent.discovery.fetcher import Fetcher  # noqa: PLC0415
    from bespeak.protocol.address_guard import AddressGuard, typed_host  # noqa: PLC0415 - slow to load

    # The user chose this address, so it may be in any network; redirect targets may not.
    fetcher = Fetcher(AddressGuard(typed_host(address.origin.host, address.origin.port)), insecure=insecure)
    try:
        return await fetcher.get(str(address), OPENAPI, robots=False)
    finally:
        await fetcher.close()
