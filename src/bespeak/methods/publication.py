"""The manifest in bytes: made once, signed once, answered from memory with its ETag (AGTP-API 8.10, 8.11)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak import status
from bespeak.exchange.headers import IF_NONE_MATCH, MEDIA_AGIS, MEDIA_JSON, MEDIA_MANIFEST
from bespeak.exchange.messages import Request
from bespeak.methods.candidates import Candidates
from bespeak.projections.agis_document import project_agis
from bespeak.projections.agtp_manifest import project_manifest
from bespeak.projections.method_inventory import project_inventory
from bespeak.runtime.answer import Answer
from bespeak.runtime.registry import Registry

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

_CACHE_CONTROL: Final = ("Cache-Control", "max-age=60")


class Document:
    """Encoded content with the headers that let a client keep it."""

    def __init__(self, content: Any, content_type: str) -> None:
        body = msgspec.json.encode(content)
        self.etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = (("ETag", self.etag), _CACHE_CONTROL)
        self._full = Answer(body, status.OK, content_type, headers)
        self._unchanged = Answer(b"", status.NOT_MODIFIED, content_type, headers)

    def answer(self, request: Request) -> Answer:
        """The document, or 304 for a caller that already holds it."""
        held = request.headers.get(IF_NONE_MATCH)
        if held is not None and (held == "*" or self.etag in (tag.strip() for tag in held.split(","))):
            return self._unchanged
        return self._full


class Publication:
    """What a server publishes about itself. Attached to its registry once every endpoint is in."""

    def __init__(self, *, updated: str, signing_key: OKPKey | None = None) -> None:
        self._updated = updated
        self._signing_key = signing_key
        self.registry: Registry
        self.manifest: Document
        self.inventory: Document

    def attach(self, registry: Registry) -> None:
        """Project and encode; nothing of it is done again for a request."""
        self.registry = registry
        endpoints = registry.endpoints.values()
        manifest = project_manifest(
            registry.service, endpoints, registry.policies, registry.catalog.version, updated=self._updated
        )
        if self._signing_key is not None:
            from bespeak.projections.manifest_signature import (  # noqa: PLC0415 - slow to load, for signers only
                SIGNATURE_MEMBER,
                sign_manifest,
            )

            manifest[SIGNATURE_MEMBER] = sign_manifest(manifest, self._signing_key)
        self.manifest = Document(manifest, MEDIA_MANIFEST)
        self.inventory = Document(project_inventory(endpoints), MEDIA_JSON)

    @cached_property
    def agis(self) -> Document:
        """The AGIS document of what is served (AGIS 11); made when somebody first asks for it."""
        registry = self.registry
        service = replace(registry.service, endpoints=tuple(registry.endpoints.values()))
        return Document(project_agis(service), MEDIA_AGIS)

    @cached_property
    def candidates(self) -> Candidates:
        """What can be found here; indexed when somebody first looks for something."""
        return Candidates(self.registry)
