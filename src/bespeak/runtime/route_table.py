"""The endpoints of a server at one moment: routes by method and path, redirects, policy and published documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar
from urllib.parse import quote, unquote

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.contract.mcp_tool import Tool, make_tools
from bespeak.contract.policy import Policies, Redirect
from bespeak.contract.service import Service
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGTP, HeaderBlock
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.publication import Publication
from bespeak.runtime.route import Route

T = TypeVar("T")


class _Node(Generic[T]):
    """One segment of the registered templates of a method."""

    __slots__ = ("children", "parameter", "value")

    def __init__(self) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.parameter: _Node[T] | None = None
        self.value: tuple[T, tuple[str, ...]] | None = None


class Router(Generic[T]):
    """Finds the value registered for a method on a path. The most specific match wins."""

    def __init__(self) -> None:
        self.literals: dict[str, dict[str, T]] = {}  # path -> method -> value, for the hot path
        self._templates: dict[str, _Node[T]] = {}

    def add(self, method: str, template: Template, value: T) -> None:
        """Register a value, replacing an earlier one for the same pair. Lint has refused ambiguous templates."""
        if template.is_literal:
            self.literals.setdefault(template.path, {})[method] = value
            return
        node = self._templates.setdefault(method, _Node())
        for segment in template.segments:
            if segment is None:
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.children.setdefault(segment, _Node())
        node.value = (value, template.parameters)

    def find(
        self, method: str, path: str, admits: Callable[[T], bool] | None = None
    ) -> tuple[T, dict[str, str] | None] | None:
        """Return the value for a method on a path that `admits` accepts, with the decoded template parameters."""
        methods = self.literals.get(path)
        if methods is not None:
            value = methods.get(method)
            if value is not None and (admits is None or admits(value)):
                return value, None
        root = self._templates.get(method)
        if root is None:
            return None
        segments = path[1:].split("/")
        best: tuple[int, tuple[T, tuple[str, ...]], tuple[str, ...]] | None = None
        for found, captures in _walk(root, segments, 0, ()):
            if (best is None or len(captures) < best[0]) and (admits is None or admits(found[0])):
                best = (len(captures), found, captures)
        if best is None:
            return None
        value, names = best[1]
        return value, {name: unquote(text) for name, text in zip(names, best[2], strict=True)}

    def methods_at(self, path: str) -> list[str]:
        """Return the methods registered on a path, sorted, for the body of a 405."""
        found = set(self.literals.get(path, ()))
        found.update(method for method in self._templates if self.find(method, path) is not None)
        return sorted(found)


def _walk(
    node: _Node[T], segments: list[str], at: int, captures: tuple[str, ...]
) -> Iterator[tuple[tuple[T, tuple[str, ...]], tuple[str, ...]]]:
    if at == len(segments):
        if node.value is not None:
            yield node.value, captures
        return
    child = node.children.get(segments[at])
    if child is not None:
        yield from _walk(child, segments, at + 1, captures)
    if node.parameter is not None and segments[at]:
        yield from _walk(node.parameter, segments, at + 1, (*captures, segments[at]))


class Redirects:
    """The redirect entries of a server. An entry with a path takes precedence over one for the method alone."""

    def __init__(self, entries: Iterable[Redirect]) -> None:
        self._by_path: Router[Redirect] = Router()
        self._by_method: dict[str, Redirect] = {}
        self._methods: set[str] = set()
        for entry in entries:
            self._methods.add(entry.from_method)
            template = parse_template(entry.from_path) if entry.from_path is not None else None
            if isinstance(template, Template):
                self._by_path.add(entry.from_method, template, entry)
            else:
                self._by_method[entry.from_method] = entry

    def __len__(self) -> int:
        return len(self._methods)

    def _next(self, method: str, path: str) -> tuple[str, str] | None:
        found = self._by_path.find(method, path)
        entry, captures = found if found is not None else (self._by_method.get(method), None)
        if entry is None:
            return None
        target = entry.to_path or path
        for name, value in (captures or {}).items():
            target = target.replace(f"{{{name}}}", quote(value, safe=""))
        return entry.to_method, target

    def follow(self, method: str, path: str) -> tuple[str, str]:
        """Return the final method and path of a request, at the end of a chain; a cycle stops where it repeats."""
        seen = {(method, path)}
        while (target := self._next(method, path)) is not None and target not in seen:
            seen.add(target)
            method, path = target
        return method, path

    def for_path(self, path: str) -> dict[str, str]:
        """Return the method redirects that apply to a path, for the body of a 405."""
        found = ((method, self._next(method, path)) for method in sorted(self._methods))
        return {method: target[0] for method, target in found if target is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class RouteTable:
    """Everything a gate looks up. Immutable: a change of endpoints builds a new table, in `runtime.registration`."""

    service: Service
    catalog: Catalog
    policies: Policies  # the policy without the entries that name removed methods
    block: HeaderBlock  # headers of every response of this server
    endpoints: Mapping[tuple[str, str], Endpoint]
    steps: Mapping[tuple[str, str], Route]  # every route that a composition may call, internal ones included
    router: Router[Route]
    wildcard: Route | None  # route of ad-hoc calls; None if the server does not accept them
    redirects: Redirects
    updated: str  # time of the last change of the service; the same in every process that serves it
    publication: Publication  # the documents about these endpoints

    @cached_property
    def admitted(self) -> frozenset[str]:
        return self.catalog.names | frozenset(self.policies.methods.custom)

    @cached_property
    def allowed(self) -> frozenset[str]:
        return frozenset(method for method in self.admitted if self.policies.methods.admits(method))

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The tools of the endpoints that are listed, by name."""
        return make_tools(self.endpoints.values())

    @cached_property
    def direct(self) -> Mapping[str, Mapping[str, Route]]:
        """path -> method -> route, for requests that vocabulary, path and policy can neither refuse nor change."""
        return {
            path: {
                method: route
                for method, route in methods.items()
                if method in self.allowed
                and self.redirects.follow(method, path) == (method, path)
                # A caller may have a synthesis of its own in place of another agent's.
                and route.synthesis_id is None
            }
            for path, methods in self.router.literals.items()
        }

    @cached_property
    def supported_methods(self) -> list[str]:
        """Methods of all endpoints that are implemented and not internal, if the policy allows them, sorted."""
        works = (endpoint for endpoint in self.endpoints.values() if not endpoint.internal and endpoint.missing is None)
        return sorted({endpoint.method for endpoint in works} & self.allowed)

    @cached_property
    def has_deprecated(self) -> bool:
        return any(endpoint.deprecated is not None for endpoint in self.endpoints.values())

    @cached_property
    def introduction(self) -> tuple[str, str]:
        """Header that introduces the server on the first response of a connection."""
        return "Supported-Methods", ", ".join(self.supported_methods)

    @cached_property
    def public_introduction(self) -> tuple[str, str]:
        """The same header for callers that may not discover: with the built-in methods, which every server has."""
        if self.policies.anonymous_discovery:
            return self.introduction
        built_in = {endpoint.method for endpoint in self.endpoints.values() if endpoint.is_basic}
        return "Supported-Methods", ", ".join(sorted(built_in & self.allowed))

    @cached_property
    def error_block(self) -> HeaderBlock:
        return self.block.plus(("Content-Type", MEDIA_AGTP))

    @cached_property
    def hides(self) -> bool:
        """True if the table has endpoints that callers without authority must not learn of."""
        return not self.policies.anonymous_discovery or any(each.internal for each in self.endpoints.values())

    @cached_property
    def path_words(self) -> frozenset[str]:
        """Literal segments of all templates, which may be logged."""
        return frozenset({part for _, path in self.endpoints for part in path.split("/") if "{" not in part} | {""})

    @cached_property
    def every(self) -> tuple[Endpoint, ...]:
        """All endpoints, as one object that is another one after a change."""
        return tuple(self.endpoints.values())

    def beside(self, own: Iterable[Route], updated: str) -> RouteTable:
        """Return the table as a caller sees it who has routes of its own. Calls are still routed by this one."""
        more = {route.endpoint.key: route for route in own}
        endpoints = {key: route.endpoint for key, route in more.items()}
        return replace(
            self,
            endpoints={**self.endpoints, **endpoints},
            steps={**self.steps, **more},
            publication=self.publication.beside(endpoints, updated),
        )

    def named_at(self, path: str) -> list[str]:
        """List the methods registered on a path, sorted, without those of internal endpoints."""
        return [name for name in self.router.methods_at(path) if self.find_public(name, path) is not None]

    def find_public(self, method: str, path: str) -> Route | None:
        found = self.router.find(method, path, lambda route: not route.endpoint.internal)
        return None if found is None else found[0]

    def not_allowed(self, method: str, path: str, message: str) -> Refused:
        """Build a 405 with its two required fields (AGTP-API 11), or a 404 for a path that leads to no endpoint."""
        redirects = self.redirects.for_path(path)
        reached = (self.find_public(*self.redirects.follow(name, path)) for name in redirects)
        if self.wildcard is None and not self.named_at(path) and not any(reached):
            return self.not_found(method, path)
        offered = [name for name in self.named_at(path) if name in self.allowed]
        advice = f" Offered here: {', '.join(offered)}." if offered else ""
        return Refused(
            status.METHOD_NOT_ALLOWED,
            "method-not-allowed",
            message + advice,
            {
                "method": method,
                "path": path[:300],
                "allowed_methods_for_path": offered,
                "redirects_for_path": redirects,
            },
        )

    @staticmethod
    def not_found(method: str, path: str) -> Refused:
        message = f"No endpoint has the path {path[:200]!r}; `DISCOVER /methods` lists those that exist."
        return Refused(status.NOT_FOUND, "endpoint-not-found", message, {"method": method, "path": path[:300]})
