"""A document at a fixed path: bytes made once, with what lets a client keep them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Final

from bespeak.http.asgi import Headers

DAY: Final = 86400
"""Seconds for which ai-discovery recommends a discovery document to be kept."""


class Page:
    """What is answered at one path. The content is made when somebody first asks for it."""

    def __init__(
        self, content: Callable[[], bytes], content_type: str, *, max_age: int = DAY, vary: str | None = None
    ) -> None:
        self._content = content
        self._content_type = content_type
        self._max_age = max_age
        self._vary = vary

    @cached_property
    def body(self) -> bytes:
        """The document."""
        return self._content()

    @cached_property
    def etag(self) -> bytes:
        """The tag of exactly these bytes."""
        return b'"%s"' % hashlib.sha256(self.body).hexdigest()[:32].encode()

    @cached_property
    def _kept_by(self) -> Headers:
        kept = [(b"etag", self.etag), (b"cache-control", b"public, max-age=%d" % self._max_age)]
        if self._vary is not None:
            kept.append((b"vary", self._vary.encode()))
        return kept

    @cached_property
    def headers(self) -> Headers:
        """The headers of the whole document."""
        described = [
            (b"content-type", self._content_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-content-type-options", b"nosniff"),
        ]
        return described + self._kept_by

    def answer(self, held: str | None, *, whole: bool) -> tuple[int, Headers, bytes]:
        """Status, headers and body; 304 for who holds it already. Without `whole` (HEAD) there is no body."""
        if held is not None:
            tags = {tag.strip().removeprefix("W/") for tag in held.split(",")}
            if "*" in tags or self.etag.decode() in tags:
                return 304, self._kept_by, b""
        return 200, self.headers, self.body if whole else b""
