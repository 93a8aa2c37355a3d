"""The documents of a service on the web, each at its path, built on the first request unless that is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from bespeak.app.server import collector_paused
from bespeak.contract.core_ontology import DOCUMENT_PATH, DOCUMENT_TYPE
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.projections import a2a_card, agis_document, discovery
from bespeak.documents.projections.reference import pages as reference
from bespeak.documents.projections.reference.calls import Reach
from bespeak.documents.rules import UNLIMITED_ON_THE_WEB
from bespeak.faces.http.site import Page, Root
from bespeak.protocol.address import Address
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
_HTML: Final = "text/html; charset=utf-8"
_MARKDOWN: Final = "text/markdown; charset=utf-8"
_PARTS: Final = f"{discovery.AI_PATH}/"
_MANY: Final = 200  # endpoints from which documents are built at the start: thousands would block the loop for a second
_MOST_KEPT: Final = 128  # pages of the reference that are kept
ABOUT: Final = {  # descriptions of the documents, for the pages that link to them
    discovery.AI_PATH: "what can be called, in its shortest form",
    OPENAPI: "OpenAPI 3.1, with every schema",
    "/": "the AGIS document: intent, outcome and impact of every endpoint",
    agis_document.SUMMARY_PATH: "a summary of it",
    discovery.SERVER_CARD_PATH: "how MCP clients connect",
    a2a_card.PATH: "how A2A agents connect",
    DOCUMENT_PATH: "capabilities and intents in JSON-LD",
}
_ON_THE_PAGE: Final = {  # further documents that the page for browsers links to
    agis_document.SUMMARY_PATH: "a summary of the AGIS document",
    discovery.LLMS_PATH: "this page for language models",
    discovery.BOOTSTRAP_PATH: "the address of the service on AGTP",
    discovery.CATALOG_PATH: "a catalog of these documents",
}
_CATALOGUED: Final = {  # kind and media type of the documents that the AI catalog lists if they are there
    discovery.SERVER_CARD_PATH: ("mcp", discovery.SERVER_CARD_TYPE),
    # The type that catalogs know it by; it is served as JSON, as clients of A2A expect.
    a2a_card.PATH: ("a2a", "application/a2a-agent-card+json"),
    discovery.AI_PATH: ("ai", MEDIA_JSON),
    OPENAPI: ("openapi", MEDIA_JSON),
    DOCUMENT_PATH: ("ioa", DOCUMENT_TYPE),
    "/": ("agis", f"{MEDIA_AGIS}+json"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """What documents state about how the service is served."""

    auth: AuthSettings = field(default_factory=AuthSettings)
    keys_required: bool = False  # True if irreversible calls require an idempotency key
    agtp_port: int | None = None  # port of the AGTP face; None if there is none, and then no document mentions it
    mcp: bool = False  # True if MCP is served
    a2a: A2aSettings = field(default_factory=A2aSettings)  # if it is not served, there is no agent card


class SitePages(Mapping[str, Page | Root]):
    """Pages by path. Parts of documents are only known once these are built, so they are looked up late."""

    def __init__(self, pages: Mapping[str, Page | Root], contents: _Contents | None = None) -> None:
        """Add the parts of `contents` to pages; None if no document has parts."""
        self._pages = pages
        self._contents = contents

    def _find(self, path: str) -> Page | Root | None:
        found = self._pages.get(path)
        if found is not None or self._contents is None:
            return found
        if path.startswith(_PARTS):
            return self._contents.parts.get(path[len(_PARTS) :])
        return self._contents.shown(path) if reference.PATH in self._pages else None

    def __getitem__(self, path: str) -> Page | Root:
        found = self._find(path)
        if found is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._pages
        if self._contents is not None:
            yield from (f"{_PARTS}{name}" for name in self._contents.parts)
            if reference.PATH in self._pages:
                yield from self._contents.reference.paths()

    def __len__(self) -> int:
        return sum(1 for _ in self)


def make_pages(routes: RouteTable, settings: HttpSettings, publishing: Publishing, *, keeps_state: bool) -> SitePages:
    """Build the documents at fixed paths.

    If discovery requires an Agent-ID (`anonymous_discovery` is false), no document about endpoints is public: there is
    only the summary, if the data manifest promises it, and `/` asks for identification.
    """
    contents = _Contents(routes, settings, publishing, keeps_state=keeps_state)
    manifest = routes.service.data_manifest
    pages: dict[str, Page | Root] = {}
    if publishing.agtp_port is not None:
        pages[discovery.BOOTSTRAP_PATH] = _json_page(contents.bootstrap)
    if routes.policies.anonymous_discovery or (manifest is not None and manifest.pre_auth_discovery):
        pages[agis_document.SUMMARY_PATH] = _json_page(contents.summary)
    if not routes.policies.anonymous_discovery:
        return SitePages({**pages, "/": Root({})})
    if any(endpoint.is_listed for endpoint in routes.endpoints.values()):
        pages[discovery.AI_PATH] = main = Page(lambda: contents.ai.main, _JSON)
        if settings.ai_alias:
            pages[ALIAS] = main
        pages[OPENAPI] = _json_page(contents.openapi)
        if routes.service.semantic is not None:
            pages[DOCUMENT_PATH] = _json_page(contents.meaning, DOCUMENT_TYPE)
    if settings.url is not None:
        _add_cards(pages, contents, publishing)
    pages[discovery.LLMS_PATH] = Page(lambda: contents.llms(pages), _TEXT)
    forms = {
        MEDIA_JSON: Page(contents.agis, _JSON, vary="Accept"),
        MEDIA_AGIS: Page(contents.agis, MEDIA_AGIS, vary="Accept"),
        f"{MEDIA_AGIS}+json": Page(contents.agis, f"{MEDIA_AGIS}+json", vary="Accept"),
        "text/markdown": Page(lambda: contents.llms(pages), _MARKDOWN, vary="Accept"),
        "text/plain": Page(lambda: contents.llms(pages), _TEXT, vary="Accept"),
    }
    # What an operator serves at GET /docs comes first.
    taken = "GET" in routes.policies.methods.legacy and any(path == reference.PATH for _, path in routes.endpoints)
    if settings.docs and not taken:
        contents.documents = contents.introduce(pages)
        forms["text/html"] = contents.page(1, vary="Accept")
        pages[reference.PATH] = contents.page(1)
        pages[reference.INDEX_PATH] = Page(lambda: contents.reference.write_index(), _JSON, lifetime=0)  # noqa: PLW0108 - late
    pages["/"] = Root(forms)
    if len(routes.endpoints) > _MANY:
        with collector_paused():
            for page in pages.values():
                page.make()
    return SitePages(pages, contents)


def _add_cards(pages: dict[str, Page | Root], contents: _Contents, publishing: Publishing) -> None:
    """Add the documents that name the URL of the service."""
    if publishing.mcp:
        pages[discovery.SERVER_CARD_PATH] = _json_page(contents.server_card, discovery.SERVER_CARD_TYPE)
        pages[discovery.MCP_CATALOG_PATH] = _json_page(contents.mcp_catalog)
    if publishing.a2a.enabled and OPENAPI in pages:
        pages[a2a_card.PATH] = _json_page(lambda: contents.card)
        pages[a2a_card.LEGACY_PATH] = _json_page(lambda: a2a_card.to_legacy(contents.card))
    pages[discovery.CATALOG_PATH] = _json_page(lambda: contents.catalog(pages), discovery.CATALOG_TYPE)


def _json_page(make: Callable[[], Any], media_type: str = _JSON) -> Page:
    return Page(lambda: msgspec.json.encode(make()), media_type)


def check_publishing(registrar: Registrar, url: str) -> list[Diagnostic]:
    """Warn about endpoints that are published on the web, at `url`, without a rate limit."""
    if Address(urlsplit(url).hostname or "", 0).is_loopback:
        return []
    rates = registrar.service.rate_limits
    listed = [endpoint for endpoint in registrar.endpoints.values() if endpoint.is_listed]
    if not listed or rates.agent or rates.address or all(endpoint.key in rates.endpoints for endpoint in listed):
        return []
    message = "endpoints are published on the web without a rate limit (AI-Discovery 6)"
    advice = 'Write [limits.rate] into bespeak.toml, for example agent = "600/min" and address = "600/min".'
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


def reach_of(routes: RouteTable, settings: HttpSettings, publishing: Publishing) -> Reach:
    """Return where the service is called, for the calls that people copy."""
    url, port, service = settings.url or "https://this-host", publishing.agtp_port, routes.service
    address = None if port is None else service.agtp or f"agtp://{Address(urlsplit(url).hostname or '', port)}"
    return Reach(url=url, agtp=address, mcp=publishing.mcp, modes=publishing.auth.modes, policies=routes.policies)


@cache
def _looks() -> reference.Looks:
    style, script = (Path(__file__).with_name(name).read_text("utf-8") for name in ("docs.css", "docs.js"))
    return reference.Looks(style, script)


class PublishedFace(NamedTuple):
    """One form of the contract, as operators look at it."""

    name: str
    path: str  # where it is served
    media_type: str
    make: Callable[[], bytes]
    command: str  # command that writes the same


def list_faces(
    routes: RouteTable, settings: HttpSettings, publishing: Publishing, *, keeps_state: bool
) -> list[PublishedFace]:
    """Return every form of the contract that can be made, whether or not it is public."""
    contents = _Contents(routes, settings, publishing, keeps_state=keeps_state)
    pages = make_pages(routes, settings, publishing, keeps_state=keeps_state)
    listed = any(endpoint.is_listed for endpoint in routes.endpoints.values())

    def tools() -> dict[str, Any]:
        from bespeak.contract.mcp_tool import make_tools  # noqa: PLC0415 - only if requested

        offered = make_tools(one for one in routes.publication.endpoints.values() if one.is_listed)
        return {"tools": [tool.entry for tool in offered.values()]}

    def encoded(make: Callable[[], Any]) -> Callable[[], bytes]:
        return lambda: msgspec.json.encode(make())

    manifest = PublishedFace(
        *("manifest", "DISCOVER /", MEDIA_MANIFEST),
        *(lambda: routes.publication.manifest_for(ANONYMOUS).body, "bespeak discover TARGET --json"),
    )
    faces = [manifest, PublishedFace("agis", "/", MEDIA_AGIS, contents.agis, "bespeak export agis TARGET")]
    found = [("summary", agis_document.SUMMARY_PATH, MEDIA_JSON, contents.summary, "bespeak discover https://HOST")]
    if listed:
        main = PublishedFace("ai", discovery.AI_PATH, MEDIA_JSON, lambda: contents.ai.main, "bespeak export ai TARGET")
        faces.append(main)
        found += [
            ("openapi", OPENAPI, MEDIA_JSON, contents.openapi, "bespeak export openapi TARGET"),
            ("mcp", discovery.MCP_INTERFACE, MEDIA_JSON, tools, "bespeak mcp TARGET"),
        ]
        if settings.url is not None:
            found.append(("a2a", a2a_card.PATH, MEDIA_JSON, lambda: contents.card, "bespeak export a2a TARGET"))
    if routes.service.semantic is not None:
        found.append(("jsonld", DOCUMENT_PATH, DOCUMENT_TYPE, contents.meaning, "bespeak export jsonld TARGET"))
    llms = PublishedFace(
        *("llms", discovery.LLMS_PATH, "text/plain", lambda: contents.llms(pages), "bespeak export llms TARGET")
    )
    faces += [PublishedFace(name, path, kind, encoded(make), command) for name, path, kind, make, command in found]
    return [*faces, llms]


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
        self._publishing = publishing
        self._web = (self._service, self._endpoints, settings)
        self._secured = (*self._web, publishing.auth.modes)
        self.documents = reference.Documents(links={})  # those that the pages for browsers link to
        self.shown = lru_cache(_MOST_KEPT)(self._find_page)  # the page for browsers at a path; None if there is none

    @cached_property
    def ai(self) -> discovery.AiDocuments:
        found = discovery.project_ai(*self._secured, updated=self._routes.updated, policies=self._routes.policies)
        assert found is not None, "there is a page only if something is listed"
        return found

    @cached_property
    def parts(self) -> Mapping[str, Page]:
        if not any(endpoint.is_listed for endpoint in self._endpoints):
            return {}
        return {name: Page(partial(bytes, content), _JSON) for name, content in self.ai.parts.items()}

    @cached_property
    def card(self) -> dict[str, Any]:
        found = project_card_of(self._routes, self._settings, self._publishing)
        assert found is not None, "there is a page only if something is listed and the URL is known"
        return found

    def agis(self) -> bytes:
        return self._publication.agis_for(ANONYMOUS).body

    def summary(self) -> dict[str, Any]:
        url, version, policies = self._settings.url, self._publication.version, self._routes.policies
        mcp = f"{url}{discovery.MCP_INTERFACE}" if self._publishing.mcp and url is not None else None
        return agis_document.project_summary(*self._web, version=version, policies=policies, mcp=mcp)

    def server_card(self) -> dict[str, Any]:
        issuer = self._publishing.auth.token.issuer
        return discovery.project_server_card(*self._secured, version=self._publication.version, issuer=issuer)

    def mcp_catalog(self) -> dict[str, Any]:
        card = self._artifact(discovery.SERVER_CARD_PATH)
        return discovery.project_mcp_catalog(self._service, self._settings.url or "", card)

    def catalog(self, pages: Mapping[str, Any]) -> dict[str, Any]:
        """Build the catalog of the documents that are there, and of AGTP if it is spoken."""
        artifacts = [self._artifact(path) for path in _CATALOGUED if path in pages]
        if self._publishing.agtp_port is not None:
            address = f"agtp://{self.bootstrap()['endpoint']}"
            artifacts.append(discovery.Artifact("agtp", MEDIA_MANIFEST, address, "the manifest, by DISCOVER over AGTP"))
        url = self._settings.url or ""
        return discovery.project_catalog(self._service, url, artifacts, updated=self._routes.updated)

    def _artifact(self, path: str) -> discovery.Artifact:
        kind, media_type = _CATALOGUED[path]
        return discovery.Artifact(kind, media_type, f"{self._settings.url}{path}", ABOUT[path])

    def bootstrap(self) -> dict[str, Any]:
        port = self._publishing.agtp_port
        assert port is not None, "there is a page only if AGTP is spoken"
        return discovery.project_bootstrap(self._service, port=port, updated=self._routes.updated)

    def openapi(self) -> dict[str, Any]:
        from bespeak.documents.projections.openapi.document import project_openapi  # noqa: PLC0415 - only if requested

        routes = self._routes
        warned = {method: routes.catalog.warns_of(method) for method, _ in routes.endpoints}
        return project_openapi(
            *self._secured,
            version=self._publication.version,
            policies=routes.policies,
            keeps_state=self._keeps_state,
            keys_required=self._publishing.keys_required,
            catalog_warnings={method: text for method, text in warned.items() if text is not None},
        )

    def meaning(self) -> dict[str, Any]:
        from bespeak.extensions.semantics.jsonld import project_jsonld  # noqa: PLC0415 - for servers with meaning

        return project_jsonld(self._service, self._endpoints, version=self._publication.version)

    def introduce(self, pages: Mapping[str, Any]) -> reference.Documents:
        """Describe the documents that the page for browsers links to."""
        about = {**ABOUT, **_ON_THE_PAGE}
        notes = [f"The AGIS document is at this address too, for programs that accept {MEDIA_AGIS}."]
        if self._publishing.mcp:
            notes.append(f"MCP clients connect to {self._settings.url or ''}{discovery.MCP_INTERFACE}.")
        links = {path: text for path, text in about.items() if path in pages and path != "/"}
        return reference.Documents(links=links, notes=notes)

    @cached_property
    def reference(self) -> reference.Reference:
        return reference.Reference(
            self._service,
            self._endpoints,
            reach_of(self._routes, self._settings, self._publishing),
            documents=self.documents,
            looks=_looks(),
            prefix=self._settings.prefix,
        )

    def page(self, shown: Endpoint | int, vary: str | None = None) -> Page:
        # Asked for again at every visit: whoever looks at a service in a browser may just have changed it.
        return Page(lambda: self.reference.write(shown), _HTML, vary=vary, policy=_looks().policy, lifetime=0)

    def _find_page(self, path: str) -> Page | None:
        shown = self.reference.find(path)
        return None if shown is None else self.page(shown)

    def llms(self, pages: Mapping[str, Any]) -> bytes:
        about = {path: text for path, text in ABOUT.items() if path in pages}
        return discovery.project_llms(*self._web, about).encode()
