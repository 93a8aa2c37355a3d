"""The documents a server publishes about itself, and search over its endpoints and agents."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
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
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.runtime.answer import Answer
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.signer import Signer

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
