"""`bespeak export`: write a service in another document format."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from bespeak.agent.client.service import ServiceClient
from bespeak.app.cli.import_ import open_agis_file
from bespeak.app.cli.service import connection_options, open_service
from bespeak.app.server.assembly import now
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_target
from bespeak.contract.catalog.document import load_bundled, open_catalog
from bespeak.contract.endpoint import Endpoint, requires_scopes
from bespeak.contract.service import Service
from bespeak.documents.agis.canonical import write_json, write_yaml
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.projections.agis_document import complete_agis, project_agis
from bespeak.documents.projections.agtp_manifest import project_manifest
from bespeak.errors import ConfigError
from bespeak.state.identity.settings import AuthSettings
from bespeak.terminal import PATH, CommandFailedError, Option
from bespeak.terminal.console import choice_option, print_findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A service with the settings its web documents need. Its endpoints are those that would be served."""

    service: Service
    version: str
    updated: str
    http: HttpSettings = field(default_factory=HttpSettings)
    auth: AuthSettings = field(default_factory=AuthSettings)
    keys_required: bool = False
    a2a: A2aSettings = field(default_factory=A2aSettings)
    mcp: bool = False  # True if the deployment serves MCP too
    catalog_warnings: Mapping[str, str] = field(default_factory=dict)

    @property
    def secured(self) -> tuple[Service, tuple[Endpoint, ...], HttpSettings, tuple[str, ...]]:
        """What every document is made of: the service, its endpoints, its place on the web and its authentication."""
        return self.service, self.service.endpoints, self.http, self.auth.modes


def open_exported(target: str, options: Mapping[str, Any], *, url: str | None = None) -> Exported:
    """Open a folder, a file, `module:app`, or a live service through its manifest. `url` is its HTTP address."""
    if "://" in target:
        service, manifest, web = asyncio.run(_live(target, options))
        found = _with_defaults(service, manifest.updated or now(), manifest.catalog_version)
        # A manifest does not describe authentication.
        found = replace(found, auth=AuthSettings(modes=()), http=HttpSettings(url=web))
    elif target.endswith(".agis"):
        found = _with_defaults(open_agis_file(Path(target)), now())
    else:
        found = _local(target)
    if not any(endpoint.is_listed for endpoint in found.service.endpoints):
        raise CommandFailedError(f"{target} has no endpoints of its own; the document needs at least one")
    return found if url is None else replace(found, http=replace(found.http, url=url.rstrip("/")))


def live_service(client: ServiceClient, manifest: ManifestDocument, uri: str) -> Service:
    """Build the service that a manifest describes. Raises CommandFailedError if it is not an AGTP contract."""
    web = client.discovered
    if web is not None and web.kind not in ("agtp", "agis"):
        raise CommandFailedError(
            f"{client.locator} has no AGTP contract, and HTTP methods do not express intent. "
            "Create a facade with `bespeak import openapi` and export that."
        )
    return Service(
        # Only web documents have the display name of the service; manifests do not.
        identity=manifest.server if web is None else replace(manifest.server, name=web.name),
        description="" if web is None else web.description,
        endpoints=manifest.own_endpoints,
        policies=manifest.policies,
        document_version=manifest.document_version or None,
        agtp=uri if web is None else web.agtp,
    )


def _local(target: str) -> Exported:
    loaded = load_target(target)
    assembled = assemble_target(loaded, now(), describes=True)
    print_findings(assembled.findings)
    registrar, document = assembled.registrar, loaded.document
    warned = {method: registrar.catalog.warns_of(method) for method, _ in registrar.endpoints}
    service = replace(registrar.service, endpoints=tuple(registrar.endpoints.values()), policies=registrar.policies)
    return replace(
        _with_defaults(service, assembled.updated, registrar.catalog.version),
        http=document.http,
        auth=document.auth,
        keys_required=document.idempotency.require,
        a2a=document.a2a,
        mcp=document.mcp.enabled,
        catalog_warnings={method: text for method, text in warned.items() if text is not None},
    )


def _with_defaults(service: Service, updated: str, catalog: str | None = None) -> Exported:
    service = replace(service, policies=service.policies.resolved(scoped=requires_scopes(service.endpoints)))
    parts = (service, service.endpoints, service.policies, catalog or service.catalog)
    manifest = project_manifest(*parts, updated=updated)
    return Exported(service=service, version=manifest["document_version"], updated=updated)


async def _live(uri: str, options: Mapping[str, Any]) -> tuple[Service, ManifestDocument, str | None]:
    """Return the service at an address, its manifest and its address on the web."""
    async with open_service(uri, **options) as client:
        manifest = await client.discover()
        return live_service(client, manifest, uri), manifest, client.locator.web


Command = TypeVar("Command", bound=Callable[..., Any])

_URL = click.option("--url", metavar="URL", help="HTTP address of the service.  [default: from its configuration]")
_PART = click.option("--part", metavar="NAME", help="Write this part of a large service's document.")
_LEGACY = click.option("--legacy", is_flag=True, help="Write the form of A2A 0.3.")


def _form(default: str) -> Option:
    return choice_option("--to", of=["yaml", "json"], default=default, help="Output format.")


def _output(command: Command) -> Command:
    command = click.option("--force", is_flag=True, help="Replace an existing file.")(command)
    return click.option("-o", "--output", type=PATH, help="Write to this file instead of standard output.")(command)


@click.group()
def export() -> None:
    """Export a service in another document format."""


def _command(*options: Callable[[Any], Any], **settings: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command that takes a service, these options and those of a connection."""

    def declare(command: Callable[..., None]) -> click.Command:
        for option in (connection_options, *reversed(options), click.argument("service")):
            command = option(command)
        return export.command(**settings)(command)

    return declare


@_command(_output, _form("yaml"))
def agis(service: str, output: Path | None, force: bool, to: str, **options: Any) -> None:
    """Export SERVICE as an AGIS document.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app. An AGIS document does not need
    handlers. For a live service the error descriptions are missing, because its manifest has none.

    What AGIS asks for and SERVICE does not say is derived: `confidence_guidance` from the impact,
    `capability` from the method, names of MCP tools, domain, description and version.

    \b
    Examples:
    bespeak export agis examples/hotel -o hotel.agis
    bespeak export agis agtp://127.0.0.1 --to json
    """
    if "://" in service:
        found, _, _ = asyncio.run(_live(service, options))
    elif service.endswith(".agis"):
        found = open_agis_file(Path(service))
    else:
        loaded = load_target(service)
        print_findings(loaded.findings)
        found = loaded.service
    if all(endpoint.is_basic for endpoint in found.endpoints):
        raise CommandFailedError(f"{service} has no endpoints of its own; an AGIS document needs at least one")
    document = project_agis(found)
    if not service.endswith(".agis"):
        # The author of an AGIS document decides what it says; other contracts lack what AGIS asks for.
        document = complete_agis(document, open_catalog(found.catalog)[0] or load_bundled())
    _write(_text(document, to), output, force=force)


@_command(_output, _form("json"), _URL, short_help="Export SERVICE as an OpenAPI 3.1 document.")
def openapi(service: str, output: Path | None, force: bool, to: str, url: str | None, **options: Any) -> None:
    """Export the HTTP API of SERVICE as an OpenAPI 3.1 document, as served at /openapi.json.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app. For a live service the
    authentication and the rate limits are missing, because its manifest has none.

    \b
    Examples:
    bespeak export openapi examples/hotel -o openapi.json
    bespeak export openapi agtp://127.0.0.1 --url https://rooms.example --to yaml
    """
    from bespeak.documents.projections.openapi.document import project_openapi  # noqa: PLC0415 - for this document only

    found = open_exported(service, options, url=url)
    warnings, required = found.catalog_warnings, found.keys_required
    document = project_openapi(*found.secured, version=found.version, keys_required=required, catalog_warnings=warnings)
    _write(_text(document, to), output, force=force)


@_command(_PART, _output, _URL, short_help="Export SERVICE as an ai-discovery document.")
def ai(service: str, part: str | None, output: Path | None, force: bool, url: str | None, **options: Any) -> None:
    """Export SERVICE as an ai-discovery document, as served at /.well-known/ai.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app.

    \b
    Examples:
    bespeak export ai examples/hotel
    bespeak export ai examples/hotel --url https://rooms.example -o ai.json
    """
    from bespeak.documents.projections.discovery import AI_PATH, project_ai  # noqa: PLC0415 - for this document only

    found = open_exported(service, options, url=url)
    documents = project_ai(*found.secured, updated=found.updated)
    assert documents is not None, "there is an endpoint"
    if part is not None and part not in documents.parts:
        advice = f"use one of {', '.join(documents.parts)}" if documents.parts else "it is a single document"
        raise ConfigError(f"{service} has no part {part!r}; {advice}")
    content = documents.main if part is None else documents.parts[part]
    _write(content.decode() + "\n", output, force=force)
    if documents.parts and part is None:
        parts = f"the other parts are at {AI_PATH}/NAME: {', '.join(documents.parts)} (use --part NAME)"
        click.echo(f"bespeak: the document is split; {parts}", err=True)


@_command(_output, _URL, short_help="Export SERVICE as llms.txt.")
def llms(service: str, output: Path | None, force: bool, url: str | None, **options: Any) -> None:
    """Export SERVICE as llms.txt, a page for language models.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app.

    \b
    Examples:
    bespeak export llms examples/hotel -o llms.txt
    """
    from bespeak.app.server.http_pages import ABOUT  # noqa: PLC0415
    from bespeak.contract.core_ontology import DOCUMENT_PATH as jsonld_path  # noqa: PLC0415, N811
    from bespeak.documents.projections import a2a_card, discovery  # noqa: PLC0415 - for this document only

    found = open_exported(service, options, url=url)
    served = {
        discovery.SERVER_CARD_PATH: found.mcp and found.http.url,
        a2a_card.PATH: found.a2a.enabled and found.http.url,
        jsonld_path: found.service.semantic is not None,
    }
    about = {path: text for path, text in ABOUT.items() if served.get(path, True)}
    _write(discovery.project_llms(found.service, found.service.endpoints, found.http, about), output, force=force)


@_command(_LEGACY, _output, _URL, short_help="Export SERVICE as an A2A agent card.")
def a2a(service: str, legacy: bool, output: Path | None, force: bool, url: str | None, **options: Any) -> None:
    """Export SERVICE as an A2A agent card, as served at /.well-known/agent-card.json.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app. A card contains the HTTP
    address of the service. For a live service the authentication is missing, because its manifest has none.

    \b
    Examples:
    bespeak export a2a examples/hotel --url https://rooms.example -o agent-card.json
    """
    from bespeak.documents.projections.a2a_card import project_card, to_legacy  # noqa: PLC0415 - for this document only

    found = open_exported(service, options, url=url)
    issuer, most = found.auth.token.issuer, found.a2a.most_skills
    card = project_card(*found.secured, version=found.version, issuer=issuer, most_skills=most)
    if card is None:
        raise ConfigError("an agent card contains the HTTP address of the service: give --url, or set url in [http]")
    _write(_text(to_legacy(card) if legacy else card, "json"), output, force=force)


@_command(_output, short_help="Export SERVICE as capabilities and intents in JSON-LD.")
def jsonld(service: str, output: Path | None, force: bool, **options: Any) -> None:
    """Export the capabilities and intents of SERVICE as JSON-LD, as served at /capabilities.jsonld.

    SERVICE is agtp://HOST[:4480], a folder, an .agis, .toml or .py file, or module:app. The document is a capability
    registration for `bespeak semantic validate`, and an ontology for `bespeak semantic register`, which needs --version
    unless the service has a version that compares with others.

    \b
    Examples:
    bespeak export jsonld examples/hotel -o hotel.jsonld
    """
    from bespeak.extensions.semantics.jsonld import project_jsonld  # noqa: PLC0415 - for this document only

    found = open_exported(service, options)
    document = project_jsonld(found.service, found.service.endpoints, version=found.version)
    _write(_text(document, "json"), output, force=force)


@export.command(short_help="Export SERVICE as tools for a language model.")
@click.argument("service")
@click.option(
    "--style",
    type=click.Choice(["openai", "openai-responses", "anthropic", "gemini"]),
    required=True,
    help="API that the tools are for; openai is Chat Completions.",
)
@click.option("--strict/--no-strict", default=True, show_default=True, help="Use strict mode where no value is lost.")
@click.option("--query", metavar="TEXT", help="Export the tools that fit best.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Number of tools for --query.  [default: 10]")
@click.option("--defer", is_flag=True, help="Let the model find the tools with the provider's own search.")
@_output
@connection_options
def tools(
    service: str,
    *,
    style: str,
    strict: bool,
    query: str | None,
    limit: int | None,
    defer: bool,
    output: Path | None,
    force: bool,
    **options: Any,
) -> None:
    """Export SERVICE as a JSON list of tools, as the API of a language model takes it.

    SERVICE is a folder, an .agis, .toml or .py file, module:app, an OpenAPI file, or the address of a live service:
    agtp://HOST or https://HOST. Schemas are converted to what the provider supports. The arguments of a call have to be
    converted back: call tools with the Python client, `service.tools(style=...)`.

    \b
    Examples:
    bespeak export tools examples/hotel --style openai
    bespeak export tools agtp://127.0.0.1 --style anthropic --query "book a room" -o tools.json
    """
    from bespeak.agent.tools.tool_runner import choose  # noqa: PLC0415 - for this document only
    from bespeak.documents.projections.model_tools.tools import DEFERRING, definitions, make_model_tools  # noqa: PLC0415

    if defer and style not in DEFERRING:
        raise click.UsageError(f"--defer is for {' and '.join(DEFERRING)}; the other APIs have no search.")

    async def offered() -> tuple[Endpoint, ...]:
        async with open_service(service, **options, describes=True) as client:
            return (await client.discover()).offered_endpoints

    endpoints = asyncio.run(offered())
    made = make_model_tools(endpoints, style, strict=strict, chosen=choose(endpoints, style, query=query, limit=limit))
    if not made:
        raise CommandFailedError(f"{service} has no endpoint {'that fits the query' if query else 'of its own'}")
    listed = json.dumps(definitions(made, style, defer=defer), ensure_ascii=False, indent=2)
    _write(f"{listed}\n", output, force=force)
    for tool in made:
        if tool.conversion.reasons:
            click.echo(f"note: {tool.name} is not strict: {tool.conversion.reasons[0]}", err=True)


def _text(document: dict[str, Any], to: str) -> str:
    return write_json(document) if to == "json" else write_yaml(document)


def _write(text: str, output: Path | None, *, force: bool) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{output} already exists. Use --force to replace it.") from None
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror or error}") from error
