"""The document argument of a command: an AGIS file, or an OpenAPI description from a file or a URL."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bespeak.contract.service import Service
from bespeak.documents.agis.canonical import parse_agis
from bespeak.documents.agis.document import agis_service, read_agis
from bespeak.documents.openapi.description import MOST_BYTES, Description
from bespeak.errors import ConfigError
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import print_findings
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES


def open_agis_file(file: Path) -> Service:
    """Read the service of a document, without handlers. Raises CommandFailedError if the document has errors."""
    text = read_text(file, MAX_BYTES)
    tree = text if isinstance(text, Diagnostic) else parse_agis(text, str(file))
    if isinstance(tree, Diagnostic):
        print_findings([tree])
        raise CommandFailedError(f"{file} cannot be read")
    document, findings = read_agis(tree)
    print_findings(findings)
    if document is None or has_errors(findings):
        raise CommandFailedError(f"{file} has errors; fix them first")
    return agis_service(document)


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
    from bespeak.agent.discovery.fetcher import Fetcher  # noqa: PLC0415
    from bespeak.agent.discovery.web_document import OPENAPI, Fetched  # noqa: PLC0415
    from bespeak.protocol import address_guard as web  # noqa: PLC0415 - slow to load

    address = web.parse_web_address(source, insecure=insecure)
    if isinstance(address, web.AddressFault):
        raise ConfigError(str(address))
    # The user chose this address, so it may be in any network; redirect targets may not.
    url, guard = str(address), web.AddressGuard(web.typed_host(address.origin.host, address.origin.port))

    async def get() -> Fetched:
        fetcher = Fetcher(guard, insecure=insecure)
        try:
            return await fetcher.get(url, OPENAPI, robots=False)
        finally:
            await fetcher.close()

    fetched = asyncio.run(get())
    if fetched.fault is not None:
        raise CommandFailedError(f"{brief(source)}: {fetched.fault.message}")
    return fetched.body, fetched.final_url
