"""`bespeak discover`: show the endpoints of a service."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import click
from rich.text import Text

from bespeak.agent.client.errors import NothingDiscoveredError
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.discovery.agent_card import AgentCard
from bespeak.agent.discovery.lookup import Discovered
from bespeak.agent.discovery.readers import check_producer
from bespeak.agent.discovery.web_document import FACE, Fetched
from bespeak.app.cli.service import open_service, service_options
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.ai.document import MOST_CAPABILITIES
from bespeak.documents.ai.param_notation import write_param
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.rules import CONTENT_USAGE
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import console, line, members, print_findings, print_json, print_lines, print_result
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors, printable

_IN_SUMMARY = (CONTENT_USAGE.id,)  # rules whose findings the summary already covers
_METHOD = "bold cyan"
_QUIET = "dim"
_WIDEST = 60  # maximum width of a column, so that one long path does not pad every row
_WIDEST_ID: Final = 40  # the same for ids of capabilities and skills
_KINDS: Final = {
    "agtp": "AGTP over HTTP",
    "ai": "ai-discovery",
    "agis": "AGIS over HTTP",
    "openapi": "OpenAPI",
    "a2a": "messages of A2A",
    "none": "nothing",
}


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
        raise CommandFailedError(str(error)) from error
    return 1 if has_errors(findings) else 0


def _print_web(discovered: Discovered, as_json: bool) -> None:
    if as_json:
        print_json(_web_json(discovered))
        return
    print_findings(finding for finding in discovered.findings if finding.rule not in _IN_SUMMARY)
    print_lines(_web_lines(discovered))
    if discovered.kind == "a2a" and discovered.card is not None:
        console().print()
        print_lines(_skill_lines(discovered.card))
    elif discovered.capabilities and discovered.kind != "agtp":
        console().print()
        print_lines(_capability_lines(discovered))


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


def _web_lines(discovered: Discovered) -> Iterator[Text]:
    yield line((discovered.name or str(discovered.address.origin), "bold"), f"  {discovered.description}")
    yield line(f"called by {_KINDS[discovered.kind]}")
    for step in discovered.steps:
        if step.what != FACE.what:  # a probe, not a document
            yield line((f"  {step.final_url}  {_outcome(step)}", "" if step.ok else _QUIET))
    if discovered.ai is not None:
        yield from _ai_lines(discovered)
    if discovered.card is not None:
        for interface in discovered.card.interfaces:
            yield line(f"takes messages at {interface.url}  {interface.binding} {interface.version}".rstrip())
        if discovered.card.credentials:
            yield line(f"authentication {' or '.join(discovered.card.credentials)}")
    if discovered.agtp is not None:
        yield line(f"also at {discovered.agtp}")
    yield from (line((f"content usage: {name}: {value}", "yellow")) for name, value in discovered.preferences.items())
    wrong = sum(finding.severity == "error" for step in discovered.steps for finding in check_producer(step))
    if wrong:
        yield line((f"its documents break {wrong} producer rules; run bespeak lint for details", _QUIET))


def _capability_lines(discovered: Discovered) -> Iterator[Text]:
    widest = min(max((len(each.id) for each in discovered.capabilities), default=0), _WIDEST_ID)
    for each in discovered.capabilities:
        mark = "  [deprecated]" if each.deprecated else ""
        yield line((f"{each.id:<{widest}}", _METHOD), f"  {each.method} {each.path}  {each.description}{mark}")
        taken = each.input_schema
        properties, required = taken.get("properties"), taken.get("required", ())
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            text = each.params.get(name) or write_param(schema, required=name in required, root=taken)
            yield line((f"    {name}: {text}", _QUIET))


def _skill_lines(card: AgentCard) -> Iterator[Text]:
    """List each skill of an A2A agent, and what is guessed of it. Each takes a message."""
    widest = min(max((len(each.id) for each in card.skills), default=0), _WIDEST_ID)
    for skill in card.skills:
        notes = [f"probably {skill.impact} ({skill.confidence:.1f})", *(f"needs {scope}" for scope in skill.scopes)]
        named = f"{skill.endpoint.method} {skill.endpoint.path}"
        yield line((f"{skill.id:<{widest}}", _METHOD), f"  {named}  {skill.description}  [{', '.join(notes)}]")


def _web_json(discovered: Discovered) -> dict[str, Any]:
    return {
        "kind": discovered.kind,
        "url": str(discovered.address),
        "name": discovered.name,
        "description": discovered.description,
        "agtp": discovered.agtp,
        "auth": _auth(discovered),
        "preferences": dict(discovered.preferences),
        "capabilities": [
            {
                **members(each, "id", "method", "path"),
                "url": f"{each.origin}{each.target}",
                **members(each, "description", "input_schema", "returns", "deprecated"),
            }
            for each in discovered.capabilities
        ],
        "agent": None if discovered.card is None else _card(discovered.card),
        "manifest": discovered.manifest.raw if discovered.manifest else None,
        "documents": [_step(step) for step in discovered.steps],
        "findings": [_finding(finding) for finding in discovered.findings],
        "producer_findings": [_finding(finding) for step in discovered.steps for finding in check_producer(step)],
    }


def _ai_lines(discovered: Discovered) -> Iterator[Text]:
    document = discovered.ai
    assert document is not None
    auth = _auth(discovered)
    if auth is None:
        yield line("authentication not specified; it may be required")
    else:
        header = f" in {auth['header']}" if auth["header"] else ""
        docs = f", see {auth['docs']}" if auth["docs"] else ""
        yield line(f"authentication {auth['type']}{header}{docs}")
    if document.requests_per_minute is not None:
        yield line(f"{document.requests_per_minute} requests per minute")


def _card(card: AgentCard) -> dict[str, Any]:
    return {
        "version": card.version,
        "interfaces": [members(each, "url", "binding", "version") for each in card.interfaces],
        "credentials": list(card.credentials),
        "skills": [
            {
                **members(each, "id", "description", "tags", "examples", "scopes"),
                "guessed": members(each, "impact", "confidence"),
            }
            for each in card.skills
        ],
    }


def _auth(discovered: Discovered) -> dict[str, str | None] | None:
    document = discovered.ai
    if document is None or document.auth_type is None:
        return None
    return {"type": document.auth_type, "header": document.auth_header, "docs": document.auth_docs}


def _outcome(step: Fetched) -> str:
    if step.fault is not None:
        return step.fault.message if not step.is_missing or step.source == "cache" else str(step.status)
    source = {"network": "", "cache": ", cached", "revalidated": ", unchanged"}[step.source]
    moved = f", after {len(step.hops)} redirects" if step.hops else ""
    return f"{step.status}, {len(step.body)} bytes{source}{moved}"


def _step(step: Fetched) -> dict[str, Any]:
    return {
        **members(step, "what", "url", "final_url", "status", "media_type"),
        "bytes": len(step.body),
        **members(step, "source", "attempts"),
        "seconds": round(step.seconds, 3),
        "redirects": [members(hop, "url", "status", "location") for hop in step.hops],
        "fault": None if step.fault is None else members(step.fault, "kind", "message"),
    }


def _finding(finding: Diagnostic) -> dict[str, Any]:
    location = str(finding.location) if finding.location else None
    told = members(finding, "rule", "severity", "message")
    return {**told, "location": location, **members(finding, "pointer", "help")}
