"""The HTTP view of one route table: paths with verbs, encoded headers, namespaces and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bespeak.contract.http_route import split_verb
from bespeak.faces.http.asgi import Headers
from bespeak.faces.http.negotiation import Root
from bespeak.faces.http.page import Page
from bespeak.faces.http.translation import encode_block
from bespeak.runtime.route_table import RouteTable

Pages = Mapping[str, Page | Root]
"""Documents by their paths."""
MakePages = Callable[[RouteTable], Pages]

NO_STORE: Final = (b"cache-control", b"no-store")
"""Cache header of endpoint answers: they are for one caller, identified by headers that caches ignore."""


class Site:
    """Lookup tables of the face. Immutable: a new route table gets a new site."""

    def __init__(self, routes: RouteTable, pages: Pages) -> None:
        self.routes = routes
        self.pages = pages
        # The blocks of routes live as long as the table, so they can be keyed by identity.
        self.blocks: dict[int, Headers] = {}
        """Encoded header blocks, by block."""
        self.good: dict[int, Headers] = {}
        """Encoded header blocks of successful endpoint answers, including all constant headers."""
        self.literal: dict[str, tuple[str, str]] = {}
        """Path and method of an endpoint, by `/path:verb`."""
        for method, path in routes.endpoints:
            found = routes.router.find(method, path)
            if found is not None:
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
        """Return True if a document or an endpoint is at a path; `method` is the value of X-AGIS-Method.

        Internal endpoints are not known: the reply may depend on this, whoever asks.
        """
        found = split_verb(path) if method is None else (path, method)
        return path in self.pages or (found is not None and self.routes.find_public(found[1], found[0]) is not None)

    def is_readable(self, method: str, path: str) -> bool:
        """Return True if the path has an endpoint that is not internal and that GET may call."""
        route = self.routes.find_public(method, path)
        return route is not None and route.is_readable

    def offered_at(self, path: str) -> list[str]:
        """List the `/path:verb` paths of the endpoints on a bare path."""
        return [f"{path}:{name.lower()}" for name in self.routes.named_at(path) if name in self.routes.allowed]
