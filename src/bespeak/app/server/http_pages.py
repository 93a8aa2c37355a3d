"""The documents of a service on the web, each at its path, built on the first request unless that is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.app.server.collector import collector_paused
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.rules import UNLIMITED_ON_THE_WEB
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.projections import a2a_card, agis_document, discovery, jsonld
from bespeak.faces.http.site import Page, Root
from bespeak.protocol.exchange.headers import MEDIA_AGIS, MEDIA_JSON, MEDIA_MANIFEST
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.runtime.registration import Registrar
from bespeak.runtime.route_table import RouteTable
from bespeak.state.identity.settings import AuthSettings
from bespeak.text.diagnostics.diagnostic import Diagnostic

OPENAPI: Final = "/openapi.json"
ALIAS: Final = "/ai"

_JSON: Final = f"{MEDIA_JSON}; charset=utf-8"
_TEXT: Final = "text/plain; charset=utf-8"
_MARKDOWN: Final = "text/markdown; charset=utf-8"
_PARTS: Final = f"{discovery.AI_PATH}/"
_MANY: Final = 200
"""Number of endpoints from which documents are built at the start: some thousands would block the loop for a second."""
ABOUT: Final = {
    discovery.AI_PATH: "what can be called, in its shortest form",
    OPENAPI: "OpenAPI 3.1, with every schema",
    "/": "the AGIS document: intent, outcome and impact of every endpoint",
    agis_document.SUMMARY_PATH: "a summary of it",
    discovery.SERVER_CARD_PATH: "how MCP clients connect",
    a2a_card.PATH: "how A2A agents connect",
    jsonld.PATH: "capabilities and intents in JSON-LD",
}
"""Descriptions of the documents, for the pages that link to them."""
_CATALOGUED: Final = {
    discovery.SERVER_CARD_PATH: ("mcp", discovery.SERVER_CARD_TYPE),
    # The type that catalogs know it by; it is served as JSON, as clients of A2A expect.
    a2a_card.PATH: ("a2a", "application/a2a-agent-card+json"),
    discovery.AI_PATH: ("ai", MEDIA_JSON),
    OPENAPI: ("openapi", MEDIA_JSON),
    jsonld.PATH: ("ioa", jsonld.MEDIA_TYPE),
    "/": ("agis", f"{MEDIA_AGIS}+json"),
}
"""Kind and media type of the documents that the AI catalog lists if they are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """What documents state about how the service is served."""

    auth: AuthSettings = field(default_factory=AuthSettings)
    keys_required: bool = False  # True if irreversible calls require an idempotency key
    agtp_port: int | None = None  # port of the AGTP face; None if there is none, and then no document mentions it
    mcp: bool = False  # True if MCP is served
    a2a: A2aSettings = field(default_factory=A2aSettings)
    """Settings of A2A; if it is not served, there is no agent card."""


class Pages(Mapping[str, Page | Root]):
    """Pages by path. The parts of `/.well-known/ai` are only known once it is built, so they are looked up late."""

    def __init__(self, pages: Mapping[str, Page | Root], parts: Callable[[], Mapping[str, Page]]) -> None:
        self._pages = pages
        self._parts = parts

    def __contains__(self, path: object) -> bool:
        return path in self._pages or (
            isinstance(path, str) and path.startswith(_PARTS) and path[len(_PARTS) :] in self._parts()
        )

    def __getitem__(self, path: str) -> Page | Root:
        found = self._pages.get(path)
        return found if found is not None else self._parts()[path.removeprefix(_PARTS)]

    def __iter__(self) -> Iterator[str]:
        yield from self._pages
        yield from (f"{_PARTS}{name}" for name in self._parts())

    def __len__(self) -> int:
        return len(self._pages) + len(self._parts())


def make_pages(routes: RouteTable, settings: HttpSettings, publishing: Publishing, *, keeps_state: bool) -> Pages:
    """Build the documents at fixed paths.

    If discovery requires an Agent-ID (`anonymous_discovery` is false), no document about endpoints is public: there is
    only the summary, if the data manifest promises it, and `/` asks for identification.
    """
    contents = _Contents(routes, settings, publishing, keeps_state=keeps_state)
    manifest = routes.service.data_manifest
    pages: dict[str, Page | Root] = {}
    if contents.publishing.agtp_port is not None:
        pages[discovery.BOOTSTRAP_PATH] = Page(contents.bootstrap, _JSON)
    if routes.policies.anonymous_discovery or (manifest is not None and manifest.pre_auth_discovery):
        pages[agis_document.SUMMARY_PATH] = Page(contents.summary, _JSON)
    if not routes.policies.anonymous_discovery:
        return Pages({**pages, "/": Root({})}, dict)
    if any(endpoint.is_listed for endpoint in routes.endpoints.values()):
        pages[discovery.AI_PATH] = main = Page(lambda: contents.ai.main, _JSON)
        if settings.ai_alias:
            pages[ALIAS] = main
        pages[OPENAPI] = Page(contents.openapi, _JSON)
        if routes.service.semantic is not None:
            pages[jsonld.PATH] = Page(contents.meaning, jsonld.MEDIA_TYPE)
    if settings.url is not None:
        if publishing.mcp:
            pages[discovery.SERVER_CARD_PATH] = Page(contents.server_card, discovery.SERVER_CARD_TYPE)
            pages[discovery.MCP_CATALOG_PATH] = Page(contents.mcp_catalog, _JSON)
        if publishing.a2a.enabled and OPENAPI in pages:
            pages[a2a_card.PATH] = Page(lambda: msgspec.json.encode(contents.card), _JSON)
            pages[a2a_card.LEGACY_PATH] = Page(lambda: msgspec.json.encode(a2a_card.to_legacy(contents.card)), _JSON)
        pages[discovery.CATALOG_PATH] = Page(lambda: contents.catalog(pages), discovery.CATALOG_TYPE)
    pages[discovery.LLMS_PATH] = Page(lambda: contents.llms(pages), _TEXT)
    pages["/"] = Root(
        {
            MEDIA_JSON: Page(contents.agis, _JSON, vary="Accept"),
            MEDIA_AGIS: Page(contents.agis, MEDIA_AGIS, vary="Accept"),
            f"{MEDIA_AGIS}+json": Page(contents.agis, f"{MEDIA_AGIS}+json", vary="Accept"),
            "text/markdown": Page(lambda: contents.llms(pages), _MARKDOWN, vary="Accept"),
            "text/plain": (text := Page(lambda: contents.llms(pages), _TEXT, vary="Accept")),
            "text/html": text,
        }
    )
    if len(routes.endpoints) > _MANY:
        with collector_paused():
            for page in pages.values():
                page.make()
    return Pages(pages, lambda: contents.parts)


def check_publishing(registrar: Registrar) -> list[Diagnostic]:
    """Warn about endpoints that are published on the web without a rate limit."""
    rates = registrar.service.rate_limits
    listed = [endpoint for endpoint in registrar.endpoints.values() if endpoint.is_listed]
    if not listed or rates.agent or rates.address or all(endpoint.key in rates.endpoints for endpoint in listed):
        return []
    message = "endpoints are published on the web without a rate limit (AI-Discovery 6)"
    advice = 'Set [limits.rate], for example agent = "600/min" and address = "600/min".'
    return [UNLIMITED_ON_THE_WEB.found(message, advice=advice)]


def project_card_of(routes: RouteTable, settings: HttpSettings, publishing: Publishing) -> dict[str, Any] | None:
    """Build the agent card of a route table. If discovery is not public, it is for identified agents only."""
    return a2a_card.project_card(
        routes.service,
        routes.endpoints.values(),
        settings,
        publishing.auth.modes,
        version=routes.publication.version,
        issuer=publishing.auth.token.issuer,
        policies=routes.policies,
        most_skills=publishing.a2a.most_skills,
        extended=not routes.policies.anonymous_discovery,
    )


class _Contents:
    """The content of the documents, built from the registered endpoints rather than from the source files."""

    def __init__(
        self, routes: RouteTable, settings: HttpSettings, publishing: Publishing, *, keeps_state: bool
    ) -> None:
        self._routes = routes
        self._publication = routes.publication
        self._service = routes.service
        self._endpoints = tuple(routes.publication.endpoints.values())
        self._settings = settings
        self._keeps_state = keeps_state
        self.publishing = publishing

    @cached_property
    def ai(self) -> discovery.AiDocuments:
        found = discovery.project_ai(
            self._service,
            self._endpoints,
            self._settings,
            self.publishing.auth.modes,
            updated=self._routes.updated,
            policies=self._routes.policies,
        )
        assert found is not None, "there is a page only if something is listed"
        return found

    @cached_property
    def parts(self) -> Mapping[str, Page]:
        if not any(endpoint.is_listed for endpoint in self._endpoints):
            return {}
        return {name: _fixed(content) for name, content in self.ai.parts.items()}

    @cached_property
    def card(self) -> dict[str, Any]:
        found = project_card_of(self._routes, self._settings, self.publishing)
        assert found is not None, "there is a page only if something is listed and the URL is known"
        return found

    def agis(self) -> bytes:
        return self._publication.agis_for(ANONYMOUS).body

    def summary(self) -> bytes:
        return msgspec.json.encode(
            agis_document.project_summary(
                self._service,
                self._endpoints,
                self._settings,
                version=self._publication.version,
                policies=self._routes.policies,
                mcp=f"{self._settings.url}{discovery.MCP_INTERFACE}" if self._has_mcp else None,
            )
        )

    def server_card(self) -> bytes:
        auth = self.publishing.auth
        return msgspec.json.encode(
            discovery.project_server_card(
                self._service,
                self._endpoints,
                self._settings,
                auth.modes,
                version=self._publication.version,
                issuer=auth.token.issuer,
            )
        )

    def mcp_catalog(self) -> bytes:
        url = self._settings.url or ""
        return msgspec.json.encode(
            discovery.project_mcp_catalog(self._service, url, self._artifact(discovery.SERVER_CARD_PATH))
        )

    def catalog(self, pages: Mapping[str, Any]) -> bytes:
        """Build the catalog of the documents that are there, and of AGTP if it is spoken."""
        artifacts = [self._artifact(path) for path in _CATALOGUED if path in pages]
        if self.publishing.agtp_port is not None:
            address = f"agtp://{self._bootstrap(self.publishing.agtp_port)['endpoint']}"
            artifacts.append(discovery.Artifact("agtp", MEDIA_MANIFEST, address, "the manifest, by DISCOVER over AGTP"))
        url = self._settings.url or ""
        return msgspec.json.encode(
            discovery.project_catalog(self._service, url, artifacts, updated=self._routes.updated)
        )

    def _artifact(self, path: str) -> discovery.Artifact:
        kind, media_type = _CATALOGUED[path]
        return discovery.Artifact(kind, media_type, f"{self._settings.url}{path}", ABOUT[path])

    @property
    def _has_mcp(self) -> bool:
        return self.publishing.mcp and self._settings.url is not None

    def bootstrap(self) -> bytes:
        port = self.publishing.agtp_port
        assert port is not None, "there is a page only if AGTP is spoken"
        return msgspec.json.encode(self._bootstrap(port))

    def _bootstrap(self, port: int) -> dict[str, Any]:
        return discovery.project_bootstrap(self._service, port=port, updated=self._routes.updated)

    def openapi(self) -> bytes:
        from bespeak.documents.projections.openapi.document import project_openapi  # noqa: PLC0415 - only if requested

        routes = self._routes
        warned = {method: routes.catalog.warns_of(method) for method, _ in routes.endpoints}
        document = project_openapi(
            self._service,
            self._endpoints,
            self._settings,
            self.publishing.auth.modes,
            version=self._publication.version,
            policies=routes.policies,
            keeps_state=self._keeps_state,
            keys_required=self.publishing.keys_required,
            catalog_warnings={method: text for method, text in warned.items() if text is not None},
        )
        return msgspec.json.encode(document)

    def meaning(self) -> bytes:
        version = self._publication.version
        return msgspec.json.encode(jsonld.project_jsonld(self._service, self._endpoints, version=version))

    def llms(self, pages: Mapping[str, Any]) -> bytes:
        about = {path: text for path, text in ABOUT.items() if path in pages}
        return discovery.project_llms(self._service, self._endpoints, self._settings, about).encode()


def _fixed(content: bytes) -> Page:
    return Page(lambda: content, _JSON)
