"""The HTTP view of one route table: documents at fixed paths, content negotiation at `/`, paths with verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Final

from bespeak.contract.http_route import split_verb
from bespeak.faces.http.asgi import Headers, HttpResponse
from bespeak.faces.http.translation import RequestTarget, encode_block
from bespeak.protocol.exchange.headers import ACCEPT, MEDIA_AGIS, MEDIA_MANIFEST, entity_tag, is_held, negotiate
from bespeak.runtime.route_table import RouteTable

DAY: Final = 86400  # cache lifetime in seconds that ai-discovery recommends


@dataclass(eq=False)
class Page:
    """The document at one path. Its content is built on the first request."""

    content: Callable[[], bytes]
    content_type: str
    _: KW_ONLY
    vary: str | None = None
    policy: str | None = None  # its Content-Security-Policy
    lifetime: int = DAY  # seconds for which caches may keep it

    @cached_property
    def body(self) -> bytes:
        return self.content()

    @cached_property
    def etag(self) -> str:
        return entity_tag(self.body)

    @cached_property
    def _replies(self) -> tuple[HttpResponse, HttpResponse]:
        kept: Headers = [
            (b"etag", self.etag.encode()),
            (b"cache-control", b"public, max-age=%d" % self.lifetime),
            # Documents are public, so pages of other origins may read them too.
            (b"access-control-allow-origin", b"*"),
        ]
        if self.vary is not None:
            kept.append((b"vary", self.vary.encode()))
        described = [
            (b"content-type", self.content_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-content-type-options", b"nosniff"),
        ]
        if self.policy is not None:
            described.append((b"content-security-policy", self.policy.encode()))
        return HttpResponse(200, described + kept, self.body), HttpResponse(304, kept, b"")

    def make(self) -> None:
        """Build the content now, before the first request."""
        self._replies  # noqa: B018 - the access builds it

    def answer(self, headers: Mapping[str, str]) -> HttpResponse:
        """Return the document, or 304 if the client holds the current version."""
        return self._replies[is_held(self.etag, headers)]


# Target of the manifest. Not marked as reading: its input is not flat, so GET may not call it; without it, it reads.
_DISCOVER: Final = RequestTarget("/", "DISCOVER", reads=False)


class Root:
    """Documents by media type, plus the manifest, which only the dispatcher has."""

    # With no documents, where discovery is not public, the dispatcher decides who gets the manifest or the AGIS
    # document. An `Accept` that does not name the manifest selects the AGIS document.

    def __init__(self, pages: Mapping[str, Page]) -> None:
        """Offer `pages`; the first one is the default."""
        self._pages = pages
        self._offers = (*(pages or (MEDIA_AGIS,)), MEDIA_MANIFEST)

    def make(self) -> None:
        for page in self._pages.values():
            page.make()

    def answer(self, headers: dict[str, str]) -> HttpResponse | RequestTarget:
        """Return the document for these headers, or the target to call for it."""
        chosen = negotiate(headers, self._offers)
        if (page := self._pages.get(chosen)) is not None:
            return page.answer(headers)
        headers[ACCEPT] = chosen
        return _DISCOVER


Pages = Mapping[str, Page | Root]  # documents by their paths
MakePages = Callable[[RouteTable], Pages]
NO_STORE: Final = (b"cache-control", b"no-store")
"""Cache header of endpoint answers: they are for one caller, identified by headers that caches ignore."""


class Site:
    """Lookup tables of the face. Immutable: a new route table gets a new site."""

    def __init__(self, routes: RouteTable, pages: Pages) -> None:
        self.routes = routes
        self.pages = pages
        # The blocks of routes live as long as the table, so they can be keyed by identity.
        self.blocks: dict[int, Headers] = {}  # encoded header blocks, by block
        self.good: dict[int, Headers] = {}  # the same of successful endpoint answers, with all constant headers
        self.literal: dict[str, tuple[str, str]] = {}  # path and method of an endpoint, by `/path:verb`
        for method, path in routes.endpoints:
            if (found := routes.router.find(method, path)) is not None:
                block = found[0].block
                self.blocks[id(block)] = encoded = encode_block(block)
                if not found[0].builtin:
                    self.good[id(block)] = [*encoded, NO_STORE, (b"agtp-status", b"200")]
                self.literal[f"{path}:{method.lower()}"] = (path, method)
        vocabulary = routes.service.vocabulary
        # Built-in methods have a namespace too, but a service that declares none cannot be confused with others.
        # No service map names the namespace of an internal endpoint, and nothing here may confirm that it exists.
        listed = {each.namespace for each in routes.endpoints.values() if each.is_listed and each.namespace is not None}
        self.namespaces = listed | ({vocabulary.namespace} if vocabulary and vocabulary.namespace else set())

    def is_known(self, path: str, method: str | None) -> bool:
        """Return True if a document or an endpoint is at a path; `method` is the value of X-AGIS-Method."""
        # Internal endpoints are not known: the reply may depend on this, whoever asks.
        found = split_verb(path) if method is None else (path, method)
        return path in self.pages or (found is not None and self.routes.find_public(found[1], found[0]) is not None)

    def is_readable(self, method: str, path: str) -> bool:
        """Return True if the path has an endpoint that is not internal and that GET may call."""
        route = self.routes.find_public(method, path)
        return route is not None and route.is_readable

    def offered_at(self, path: str) -> list[str]:
        """List the `/path:verb` paths of the endpoints on a bare path."""
        return [f"{path}:{name.lower()}" for name in self.routes.named_at(path) if name in self.routes.allowed]
