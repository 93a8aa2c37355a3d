"""`bespeak discover`: show the endpoints of a service."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click
from rich.text import Text

from bespeak.agent.client.errors import NothingDiscoveredError
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.discovery.lookup import Discovered
from bespeak.app.cli.service import open_service, service_options
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.ai.document import MOST_CAPABILITIES
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.rules import CONTENT_USAGE
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import console, line, print_findings, print_json, print_lines, print_result
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors, printable

_IN_SUMMARY = (CONTENT_USAGE.id,)  # rules whose findings the summary already covers
_METHOD = "bold cyan"
_QUIET = "dim"
_WIDEST = 60  # maximum width of a column, so that one long path does not pad every row


@click.command()
@click.argument("service")
@click.option("--methods", is_flag=True, help="Show only the compact list from DISCOVER /methods.")
@click.option(
    "--all", "everything", is_flag=True, help=f"Show more than {MOST_CAPABILITIES} capabilities of a web document."
)
@service_options
def discover(service: str, methods: bool, everything: bool, as_json: bool, **options: Any) -> int:
    """Show the manifest of SERVICE, or with --methods the list of its endpoints.

    SERVICE is agtp://HOST[:4480], or a folder, a file or module:app, which is loaded without being served.
    Its findings are shown, and the exit code is 1 if an endpoint is skipped.

    For https://HOST, discovery reads /.well-known/ai, the AGIS summary and document, an OpenAPI description and the
    card of an A2A agent, and respects robots.txt. The exit code is 1 if nothing is found and 2 if the host does not
    respond.

    Examples:

    \b
    bespeak discover agtp://127.0.0.1
    bespeak discover examples/hotel --json
    bespeak discover https://flights.example --refresh
    """
    findings: list[Diagnostic] = []

    def report(found: list[Diagnostic]) -> None:
        findings.extend(found)
        print_findings(found)

    whole = {**options, "report": report, "most_capabilities": None if everything else MOST_CAPABILITIES}
    try:
        asyncio.run(_discover(service, methods, as_json, whole))
    except NothingDiscoveredError as error:
        _print_web(error.discovered, as_json)
        if error.discovered.kind != "a2a":
            raise CommandFailedError(str(error)) from error
    return 1 if has_errors(findings) else 0


def _print_web(discovered: Discovered, as_json: bool) -> None:
    from bespeak.app.cli.discover_web import capability_lines, skill_lines, web_json, web_lines  # noqa: PLC0415 - AGTP does without

    if as_json:
        print_json(web_json(discovered))
        return
    print_findings(finding for finding in discovered.findings if finding.rule not in _IN_SUMMARY)
    print_lines(web_lines(discovered))
    if discovered.capabilities and discovered.kind != "agtp":
        console().print()
        print_lines(capability_lines(discovered))
    elif discovered.kind == "a2a" and discovered.card is not None:
        console().print()
        print_lines(skill_lines(discovered.card))


async def _discover(service: str, methods: bool, as_json: bool, options: dict[str, Any]) -> None:
    async with open_service(service, **options, describes=True) as client:
        if client.discovered is not None and not methods:
            discovered = client.discovered
            if discovered.kind == "agtp" and discovered.manifest is None:
                # Discovery has no manifest if the service requires authentication for it.
                discovered = replace(discovered, manifest=await client.discover())
            _print_web(discovered, as_json)
            if as_json or discovered.kind not in ("agtp", "agis"):
                return
            console().print()
        if methods:
            inventory = await client.methods()
            rows = [(entry.method, entry.path, entry.description) for entry in inventory]
            print_result(inventory, _rows(rows), as_json=as_json)
            return
        manifest = await client.discover()
        if as_json:
            print_json(manifest.raw)
            return
        out = console()
        if client.discovered is None or client.discovered.kind == "agtp":
            print_lines(_summary(manifest, client))
        own = manifest.own_endpoints
        out.print()
        if own:
            print_lines(_rows([(endpoint.method, endpoint.path, _about(endpoint)) for endpoint in own]))
        if len(own) < len(manifest.endpoints):
            rest = len(manifest.endpoints) - len(own)
            out.print(Text(f"and {rest} built-in endpoints; --methods lists them too", _QUIET))


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


def _rows(rows: list[tuple[str, str, str]]) -> Iterator[Text]:
    shown = [(printable(method), printable(path), text) for method, path, text in rows]
    first = min(max((len(method) for method, _, _ in shown), default=0), _WIDEST)
    second = min(max((len(path) for _, path, _ in shown), default=0), _WIDEST)
    yield from (line((f"{method:<{first}}", _METHOD), f"  {path:<{second}}  {text}") for method, path, text in shown)
