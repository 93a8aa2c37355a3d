"""Content negotiation at `/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.faces.http.asgi import HttpResponse
from bespeak.faces.http.page import Page
from bespeak.faces.http.translation import Target
from bespeak.protocol.exchange.accept import negotiate
from bespeak.protocol.exchange.headers import ACCEPT, MEDIA_AGIS, MEDIA_MANIFEST

_DISCOVER: Final = Target("/", "DISCOVER", reads=False)
"""Target of the manifest. Not marked as reading: its input is not flat, so GET may not call it; without input it
only reads.
"""


class Root:
    """Documents by media type, plus the manifest, which only the dispatcher has.

    With no documents, where discovery is not public, the dispatcher decides who gets the manifest or the AGIS document.
    An `Accept` that does not name the manifest selects the AGIS document.
    """

    def __init__(self, pages: Mapping[str, Page]) -> None:
        """Offer `pages`; the first one is the default."""
        self._pages = pages
        self._offers = (*(pages or (MEDIA_AGIS,)), MEDIA_MANIFEST)

    def make(self) -> None:
        """Build the documents now."""
        for page in self._pages.values():
            page.make()

    def answer(self, headers: dict[str, str]) -> HttpResponse | Target:
        """Return the document for these headers, or the target to call for it."""
        chosen = negotiate(headers, self._offers)
        page = self._pages.get(chosen)
        if page is not None:
            return page.answer(headers)
        headers[ACCEPT] = chosen
        return _DISCOVER
