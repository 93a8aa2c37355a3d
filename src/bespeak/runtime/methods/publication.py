"""What a server publishes about itself, in bytes: made when it changes, answered from memory with its ETag."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.documents.projections.agent_identity import project_identity
from bespeak.documents.projections.agent_namespace import project_namespace
from bespeak.documents.projections.agis_document import project_agis
from bespeak.documents.projections.agtp_manifest import project_manifest
from bespeak.documents.projections.method_inventory import project_inventory
from bespeak.errors import ConfigError
from bespeak.protocol import status
from bespeak.protocol.exchange.entity_tag import entity_tag, is_held
from bespeak.protocol.exchange.headers import MEDIA_AGIS, MEDIA_AGTP, MEDIA_IDENTITY, MEDIA_JSON, MEDIA_MANIFEST
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.runtime.answer import Answer
from bespeak.runtime.methods.candidates import Candidates
from bespeak.runtime.registry import Registry

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

    from bespeak.state.identity.jws import PrivateKey

_FRESHNESS: Final = 60.0
"""Seconds for which a document may be kept; the Agent Namespace Document is made anew as often (core 7.3)."""
_PUBLIC: Final = ("Cache-Control", f"max-age={_FRESHNESS:g}")
_PRIVATE: Final = ("Cache-Control", f"private, max-age={_FRESHNESS:g}")


class Document:
    """Encoded content with the headers that let a client keep it."""

    def __init__(self, content: Any, content_type: str, *, private: bool = False) -> None:
        self.body = body = msgspec.json.encode(content)
        self.etag = entity_tag(body)
        headers = (("ETag", self.etag), _PRIVATE if private else _PUBLIC)
        self._full = Answer(body, status.OK, content_type, headers)
        self._unchanged = Answer(b"", status.NOT_MODIFIED, content_type, headers)

    def answer(self, request: Request) -> Answer:
        """The document, or 304 for a caller that already holds it."""
        return self._unchanged if is_held(self.etag, request.headers) else self._full


class Publication:
    """What a server publishes about itself. Attached to its registry once every endpoint is in."""

    def __init__(
        self, *, updated: str, signing_key: OKPKey | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._updated = updated
        self.signing_key = signing_key
        self._clock = clock
        self.registry: Registry
        self.inventory: Document
        self.version: str
        """The version of the manifest that everybody may see; other documents about the service say the same."""
        self._revision = 0
        self._manifests: dict[bool, Document] = {}
        self._agis: dict[bool, Document] = {}
        self._candidates: Candidates | None = None
        self._identities: dict[str, Document] = {}
        self._namespace: tuple[float, Document] | None = None

    def attach(self, registry: Registry) -> None:
        """Project and encode; it is done again only when the agents have changed."""
        self.registry = registry
        if self.signing_key is not None:
            registry.principals.server_key = self.private_key.public_key()
        self.inventory = Document(project_inventory(registry.endpoints.values()), MEDIA_JSON)
        self._revision = registry.agents.revision
        self.manifest_for(ANONYMOUS)

    @cached_property
    def private_key(self) -> PrivateKey:
        """The key this server signs with."""
        from bespeak.state.identity.jws import PrivateKey  # noqa: PLC0415 - loads cryptography, for signers only

        assert self.signing_key is not None
        key = self.signing_key.private_key
        if not isinstance(key, PrivateKey):
            raise ConfigError("The signing key is the public half of a key, and signing takes the private one.")
        return key

    def discloses(self, principal: Principal) -> bool:
        """Whether the caller may learn which agents this server hosts (AGTP-API 8.5)."""
        disclosure = self.registry.service.agent_disclosure
        return disclosure == "public" or (disclosure == "authenticated" and principal.verified is not None)

    def manifest_for(self, principal: Principal) -> Document:
        """The manifest as a caller may see it; the one with the agents that others may not see is its own document."""
        disclosed = self.discloses(principal)
        self._notice_changes()
        if disclosed not in self._manifests:
            self._manifests[disclosed] = self._make_manifest(disclosed=disclosed)
        return self._manifests[disclosed]

    @property
    def candidates(self) -> Candidates:
        """What can be found here; indexed when somebody first looks for something."""
        self._notice_changes()
        if self._candidates is None:
            self._candidates = Candidates(self.registry.endpoints.values(), self.registry.agents)
        return self._candidates

    @property
    def namespace(self) -> Document:
        """The Agent Namespace Document: signed, if there is a key, and never older than its freshness."""
        self._notice_changes()
        now = self._clock()
        if self._namespace is None or not 0 <= now - self._namespace[0] < _FRESHNESS:
            content = project_namespace(
                self.registry.agents,
                self.registry.service,
                generated_at=write_instant(now),
                sign=self._sign,
                key_id=self._key_id,
            )
            self._namespace = (now, Document(content, MEDIA_AGTP, private=self._is_selective))
        return self._namespace[1]

    def identity_of(self, agent: Agent) -> Document:
        """The identity document of an agent, as the registry knows it now."""
        self._notice_changes()
        if agent.agent_id not in self._identities:
            content = project_identity(agent, self.registry.service, updated=self._updated, sign=self._sign)
            self._identities[agent.agent_id] = Document(content, MEDIA_IDENTITY, private=self._is_selective)
        return self._identities[agent.agent_id]

    def agis_for(self, principal: Principal) -> Document:
        """The AGIS document of what is served (AGIS 11), as a caller may see it; made when somebody first asks for it.

        AGIS 8.3: if the data manifest is not for callers without credentials, theirs is a document without it.
        """
        manifest = self.registry.service.data_manifest
        selective = manifest is not None and manifest.pre_auth_discovery is False
        hidden = selective and principal.agent_id is None
        if hidden not in self._agis:
            service = replace(
                self.registry.service,
                endpoints=tuple(self.registry.endpoints.values()),
                document_version=self.version,
                data_manifest=None if hidden else manifest,
            )
            self._agis[hidden] = Document(project_agis(service), MEDIA_AGIS, private=selective and not hidden)
        return self._agis[hidden]

    def _notice_changes(self) -> None:
        if self._revision == self.registry.agents.revision:
            return
        self._revision = self.registry.agents.revision
        self._candidates = self._namespace = None
        self._identities.clear()
        if self.registry.service.agent_disclosure != "private":
            self._manifests.clear()
            self._updated = write_instant(self._clock())

    def _make_manifest(self, *, disclosed: bool) -> Document:
        registry = self.registry
        manifest = project_manifest(
            registry.service,
            registry.endpoints.values(),
            registry.policies,
            registry.catalog.version,
            updated=self._updated,
            hosted=registry.agents if disclosed else (),
        )
        if disclosed == self.discloses(ANONYMOUS):
            self.version = manifest["document_version"]
        if self.signing_key is not None:
            from bespeak.documents.projections import manifest_signature as jws  # noqa: PLC0415 - slow to load, for signers only

            manifest[jws.SIGNATURE_MEMBER] = jws.sign_manifest(manifest, self.signing_key)
        return Document(manifest, MEDIA_MANIFEST, private=disclosed and self._is_selective)

    @property
    def _is_selective(self) -> bool:
        """Whether what is said of agents is not for everybody."""
        return self.registry.service.agent_disclosure != "public"

    @cached_property
    def _sign(self) -> Callable[[bytes], str] | None:
        """Makes a detached JWS of canonical bytes; None without a key."""
        key = self.signing_key
        if key is None:
            return None
        from bespeak.documents.projections.manifest_signature import sign_content  # noqa: PLC0415 - slow to load, for signers

        return lambda content: sign_content(content, key)

    @cached_property
    def _key_id(self) -> str | None:
        if self.signing_key is None:
            return None
        from bespeak.state.identity.key_text import key_id  # noqa: PLC0415 - slow to load, for signers only

        return key_id(self.signing_key)
