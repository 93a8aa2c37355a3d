"""The endpoints of a server at one moment: routes by method and path, redirects, policy and published documents."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, unquote

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.contract.mcp_tool import Tool, make_tools
from bespeak.contract.policy import Policies, Redirect
from bespeak.contract.service import Service
from bespeak.contract.standard.floor import CandidateFilter
from bespeak.documents.projections.agent_documents import (
    project_identity,
    project_namespace,
    project_status,
    write_identity,
)
from bespeak.documents.projections.agis_document import project_agis
from bespeak.documents.projections.agtp_manifest import project_inventory, project_manifest
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.headers import MEDIA_AGTP, HeaderBlock
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.route import Route

NO_FILTER: Final = CandidateFilter()


class CandidateIndex:
    """The operator's endpoints and the hosted agents, ranked by relevance."""

    def __init__(self, endpoints: Iterable[Endpoint], agents: Iterable[Agent], operator: str = "") -> None:
        self._operator = operator
        written = [endpoint for endpoint in endpoints if endpoint.is_listed]
        # Core 7.4: experimental and inactive agents are not listed.
        hosted = [agent for agent in agents if agent.is_discoverable]
        self._entries: list[dict[str, Any]] = [
            {"kind": "endpoint", "method": one.method, "path": one.path, "description": one.description}
            for one in written
        ]
        self._entries += [{"kind": "agent", **agent.reference(), "principal": agent.principal} for agent in hosted]
        # Most servers are never asked, and English takes long to load.
        from bespeak.contract.matching import EndpointIndex  # noqa: PLC0415

        self._index = EndpointIndex(written, others=[f"{agent.name} {agent.description}" for agent in hosted])
        self._subjects: list[Endpoint | Agent] = [*written, *hosted]

    def find(self, need: str, limit: int, *, agents: bool, wanted: CandidateFilter = NO_FILTER) -> list[dict[str, Any]]:
        """Return the best matches, each with its relevance; agents only if the caller may see them."""

        def admits(subject: Endpoint | Agent) -> bool:
            if isinstance(subject, Agent):
                return agents and wanted.admits_agent(subject)
            return wanted.admits_endpoint(subject, self._operator)

        ranked = (each for each in self._index.rank(need) if admits(self._subjects[each[1]]))
        return [{**self._entries[index], "relevance": score} for score, index in islice(ranked, limit)]


_FRESHNESS: Final = 60.0  # cache lifetime in seconds; the Agent Namespace Document is rebuilt as often (core 7.3)
_PUBLIC: Final = ("Cache-Control", f"max-age={_FRESHNESS:g}")
_PRIVATE: Final = ("Cache-Control", f"private, max-age={_FRESHNESS:g}")


class PublishedDocument:
    def __init__(self, content: Any, content_type: str, *, private: bool = False) -> None:
        """Create the document of JSON content, or of text in another format as bytes."""
        self.body = body = content if isinstance(content, bytes) else msgspec.json.encode(content)
        self.etag = names.entity_tag(body)
        headers = (("ETag", self.etag), _PRIVATE if private else _PUBLIC)
        self._full = Answer(body, status.OK, content_type, headers)
        self._unchanged = Answer(b"", status.NOT_MODIFIED, content_type, headers)

    def answer(self, request: Request) -> Answer:
        """Return the document, or 304 for a caller that already holds it."""
        return self._unchanged if names.is_held(self.etag, request.headers) else self._full


@dataclass(eq=False)
class Publication:
    """The documents of one route table, each built on first use and again after agents have changed."""

    service: Service
    endpoints: Mapping[tuple[str, str], Endpoint]  # endpoints as the documents show them
    policies: Policies
    agents: Agents
    _: KW_ONLY
    catalog_version: str
    updated: str
    issued: str | None = None
    signer: Signer | None = None
    clock: Callable[[], float] = time.time
    private: bool = False  # True if some endpoints are for one caller alone
    _manifests: dict[bool, PublishedDocument] = field(init=False, default_factory=dict)
    _versions: dict[bool, str] = field(init=False, default_factory=dict)
    _agis: dict[bool, PublishedDocument] = field(init=False, default_factory=dict)
    _candidates: CandidateIndex | None = field(init=False, default=None)
    _identities: dict[tuple[str, str], PublishedDocument] = field(init=False, default_factory=dict)
    _namespace: tuple[float, PublishedDocument] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._issued = self.service.identity.issued or self.issued or self.updated
        self._revision = self.agents.revision

    def beside(self, own: Mapping[tuple[str, str], Endpoint], updated: str) -> Publication:
        """Return the documents as a caller sees them who has endpoints of its own, changed at a time."""
        endpoints, updated = {**self.endpoints, **own}, max(self.updated, updated)
        return replace(self, endpoints=endpoints, updated=updated, issued=self._issued, private=True)

    @cached_property
    def inventory(self) -> PublishedDocument:
        return PublishedDocument(project_inventory(self.endpoints.values()), names.MEDIA_JSON, private=self.private)

    @property
    def version(self) -> str:
        """Version of the public manifest; other documents about the service repeat it."""
        self.manifest_for(ANONYMOUS)
        return self._versions[self.discloses(ANONYMOUS)]

    @property
    def content_mark(self) -> int:
        """Number that changes exactly when the content of the manifest does, whenever it was written."""
        content = self._project(updated="", issued="", hosted=self.agents)
        digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).digest()
        return int.from_bytes(digest[:7])

    def discloses(self, principal: Principal) -> bool:
        """Return True if the caller may see which agents this server hosts (AGTP-API 8.5)."""
        disclosure = self.service.agent_disclosure
        return disclosure == "public" or (disclosure == "authenticated" and principal.verified is not None)

    def manifest_for(self, principal: Principal) -> PublishedDocument:
        """Return the manifest for a caller; if it lists agents that others may not see, it is a separate document."""
        disclosed = self.discloses(principal)
        self._notice_changes()
        if disclosed not in self._manifests:
            hosted = self.agents if disclosed else ()
            manifest = self._project(updated=self.updated, issued=self._issued, hosted=hosted)
            self._versions[disclosed] = manifest["document_version"]
            if self.signer is not None:
                self.signer.sign_manifest(manifest)
            private = self.private or (disclosed and self._is_selective)
            self._manifests[disclosed] = PublishedDocument(manifest, names.MEDIA_MANIFEST, private=private)
        return self._manifests[disclosed]

    @property
    def candidates(self) -> CandidateIndex:
        self._notice_changes()
        if self._candidates is None:
            self._candidates = CandidateIndex(self.endpoints.values(), self.agents, self.service.identity.operator)
        return self._candidates

    @property
    def namespace(self) -> PublishedDocument:
        """The Agent Namespace Document: signed if there is a key, and never older than its freshness."""
        self._notice_changes()
        now = self.clock()
        if self._namespace is None or not 0 <= now - self._namespace[0] < _FRESHNESS:
            key_id = None if self.signer is None else self.signer.key_id
            at = write_instant(now)
            content = project_namespace(self.agents, self.service, generated_at=at, sign=self._sign, key_id=key_id)
            self._namespace = (now, PublishedDocument(content, names.MEDIA_AGTP, private=self._is_selective))
        return self._namespace[1]

    def identity_of(
        self, agent: Agent, media_type: str = names.MEDIA_IDENTITY, *, compact: bool = False
    ) -> PublishedDocument:
        """Return the current identity document of an agent in one of `IDENTITY_TYPES`, or as compact JSON."""
        self._notice_changes()
        key = (agent.agent_id, "" if compact else media_type)
        if key not in self._identities:
            content = project_identity(agent, self.service, issued=self._issued, sign=self._sign)
            text, content_type = (content, names.MEDIA_IDENTITY) if compact else write_identity(content, media_type)
            self._identities[key] = PublishedDocument(text, content_type, private=self._is_selective)
        return self._identities[key]

    def status_of(self, agent: Agent) -> PublishedDocument:
        changed = self.agents.changed_at(agent.agent_id)
        changed_at = None if changed is None else write_instant(changed)
        now = write_instant(self.clock())
        content = project_status(agent, self.service, generated_at=now, changed_at=changed_at, sign=self._sign)
        return PublishedDocument(content, names.MEDIA_AGTP, private=self._is_selective)

    def agis_for(self, principal: Principal) -> PublishedDocument:
        """Return the AGIS document (AGIS 11); without its data manifest if that is not public to the caller (8.3)."""
        manifest = self.service.data_manifest
        selective = manifest is not None and manifest.pre_auth_discovery is False
        hidden = selective and principal.agent_id is None
        if hidden not in self._agis:
            service = replace(
                self.service,
                endpoints=tuple(self.endpoints.values()),
                document_version=self.version,
                data_manifest=None if hidden else manifest,
            )
            self._agis[hidden] = PublishedDocument(
                project_agis(service), names.MEDIA_AGIS, private=self.private or (selective and not hidden)
            )
        return self._agis[hidden]

    def _notice_changes(self) -> None:
        if self._revision == self.agents.revision:
            return
        self._revision = self.agents.revision
        self._candidates = self._namespace = None
        self._identities.clear()
        if self.service.agent_disclosure != "private":
            self._manifests.clear()
            self.updated = max(self.updated, write_instant(self.agents.updated))

    def _project(self, **more: Any) -> dict[str, Any]:
        return project_manifest(self.service, self.endpoints.values(), self.policies, self.catalog_version, **more)

    @property
    def _is_selective(self) -> bool:
        """True if agents are not disclosed to everyone."""
        return self.service.agent_disclosure != "public"

    @property
    def _sign(self) -> Callable[[bytes], str] | None:
        return None if self.signer is None else self.signer.sign


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
