"""A document at a fixed path: bytes built once, with cache headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from bespeak.faces.http.asgi import Headers, HttpResponse
from bespeak.protocol.exchange.entity_tag import entity_tag, is_held

DAY: Final = 86400
"""Cache lifetime in seconds that ai-discovery recommends."""


class Page:
    """The document at one path. Its content is built on the first request."""

    def __init__(self, content: Callable[[], bytes], content_type: str, *, vary: str | None = None) -> None:
        self._content = content
        self._content_type = content_type
        self._vary = vary

    @cached_property
    def body(self) -> bytes:
        """The document."""
        return self._content()

    @cached_property
    def etag(self) -> str:
        """Entity tag of the body."""
        return entity_tag(self.body)

    @cached_property
    def _kept_by(self) -> Headers:
        kept = [
            (b"etag", self.etag.encode()),
            (b"cache-control", b"public, max-age=%d" % DAY),
            # Documents are public, so pages of other origins may read them too.
            (b"access-control-allow-origin", b"*"),
        ]
        if self._vary is not None:
            kept.append((b"vary", self._vary.encode()))
        return kept

    @cached_property
    def headers(self) -> Headers:
        """Headers of the document."""
        described = [
            (b"content-type", self._content_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-content-type-options", b"nosniff"),
        ]
        return described + self._kept_by

    @cached_property
    def _whole(self) -> HttpResponse:
        return HttpResponse(200, self.headers, self.body)

    @cached_property
    def _unchanged(self) -> HttpResponse:
        return HttpResponse(304, self._kept_by, b"")

    def make(self) -> None:
        """Build the content now, before the first request."""
        self._whole  # noqa: B018 - the access builds it

    def answer(self, headers: Mapping[str, str]) -> HttpResponse:
        """Return the document, or 304 if the client holds the current version."""
        return self._unchanged if is_held(self.etag, headers) else self._whole
