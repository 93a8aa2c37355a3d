"""The root of a service on the web: what stands at `/` is what the caller would rather have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.faces.http.asgi import Reply
from bespeak.faces.http.page import Page
from bespeak.faces.http.translation import Target
from bespeak.protocol.exchange.accept import negotiate
from bespeak.protocol.exchange.headers import ACCEPT, MEDIA_AGIS, MEDIA_MANIFEST

_DISCOVER: Final = Target("/", "DISCOVER", reads=False)
"""Not marked as reading: its input is not flat, so GET may not call it, but without input it only reads."""


class Root:
    """Documents by their media types, and beside them the manifest, which only the dispatcher has.

    With no documents, where discovery is not for everybody, the dispatcher decides who gets the manifest or the AGIS
    document; the latter is what is meant by an `Accept` that does not name the manifest.
    """

    def __init__(self, pages: Mapping[str, Page]) -> None:
        """`pages`: the first is for whoever says nothing."""
        self._pages = pages
        self._offers = (*(pages or (MEDIA_AGIS,)), MEDIA_MANIFEST)

    def make(self) -> None:
        """Make the documents now."""
        for page in self._pages.values():
            page.make()

    def answer(self, headers: dict[str, str]) -> Reply | Target:
        """The document that suits these headers, or what to call for it."""
        chosen = negotiate(headers, self._offers)
        page = self._pages.get(chosen)
        if page is not None:
            return page.answer(headers)
        headers[ACCEPT] = chosen
        return _DISCOVER
