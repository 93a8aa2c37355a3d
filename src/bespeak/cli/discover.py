"""`bespeak discover`: what a service offers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from bespeak.cli.console import console, line, print_findings, print_json
from bespeak.cli.service import open_service, service_options
from bespeak.client.service import ServiceClient
from bespeak.contract.endpoint import Endpoint
from bespeak.diagnostics.diagnostic import Diagnostic, has_errors
from bespeak.diagnostics.printable import printable
from bespeak.documents.manifest_json import ManifestDocument

_METHOD = "bold cyan"
_QUIET = "dim"
_WIDEST = 60
"""Of a column. One long path must not pad every row."""


@click.command()
@click.argument("service")
@click.option("--methods", is_flag=True, help="Only the compact inventory of DISCOVER /methods.")
@service_options
def discover(service: str, methods: bool, as_json: bool, **options: Any) -> int:
    """Show what SERVICE offers: its manifest, or with --methods the list of its endpoints.

    SERVICE is agtp://HOST[:4480], or a folder, a file or module:app that is read without being served;
    what is wrong with it is shown, and the exit code is 1 if an endpoint had to be left out.

    Examples:

    \b
    bespeak discover agtp://127.0.0.1
    bespeak discover examples/hotel --json
    """
    findings: list[Diagnostic] = []

    def report(found: list[Diagnostic]) -> None:
        findings.extend(found)
        print_findings(found)

    asyncio.run(_discover(service, methods, as_json, {**options, "report": report}))
    return 1 if has_errors(findings) else 0


async def _discover(service: str, methods: bool, as_json: bool, options: dict[str, Any]) -> None:
    async with open_service(service, **options) as client:
        if methods:
            inventory = await client.methods()
            if as_json:
                print_json(inventory)
            else:
                _print_rows([(entry.method, entry.path, entry.description) for entry in inventory])
            return
        manifest = await client.discover()
        if as_json:
            print_json(manifest.raw)
            return
        out = console()
        for part in _summary(manifest, client):
            out.print(part)
        own = manifest.own_endpoints
        out.print()
        _print_rows([(endpoint.method, endpoint.path, _about(endpoint)) for endpoint in own])
        if len(own) < len(manifest.endpoints):
            out.print(
                Text(f"and {len(manifest.endpoints) - len(own)} built-in endpoints; --methods lists them too", _QUIET)
            )


def _summary(manifest: ManifestDocument, client: ServiceClient) -> Iterator[Text]:
    server = manifest.server
    yield line((server.server_id, "bold"), f"  {server.operator}", (f"  {server.contact}", _QUIET))
    yield line(
        f"AGTP {manifest.agtp_version}, AGTP-API {manifest.agtp_api_version}, catalog {manifest.catalog_version}, "
        f"document {manifest.document_version}"
    )
    if client.signature is not None:
        trust = " (key not pinned)" if client.signature.state == "valid" and not client.signature.trusted else ""
        yield line(f"signature {client.signature.state}{trust}")
    for redirect in manifest.policies.methods.redirects:
        source = f"{redirect.from_method} {redirect.from_path or '*'}"
        yield line(f"redirect {source} -> {redirect.to_method} {redirect.to_path or ''}".rstrip())


def _about(endpoint: Endpoint) -> str:
    notes = [endpoint.semantic.impact, *(f"needs {scope}" for scope in endpoint.required_scopes)]
    if endpoint.cost is not None:
        notes.append(f"costs {endpoint.cost}")
    if endpoint.deprecated is not None:
        notes.append(endpoint.deprecated.warning())
    return f"{endpoint.description}  [{', '.join(notes)}]"


def _print_rows(rows: list[tuple[str, str, str]]) -> None:
    out = console()
    shown = [(printable(method), printable(path), text) for method, path, text in rows]
    first = min(max((len(method) for method, _, _ in shown), default=0), _WIDEST)
    second = min(max((len(path) for _, path, _ in shown), default=0), _WIDEST)
    for method, path, text in shown:
        out.print(line((f"{method:<{first}}", _METHOD), f"  {path:<{second}}  {text}"))
