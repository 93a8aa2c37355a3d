"""The extension: agents propose endpoints that do not exist, and use what was made for them."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.negotiation.methods import PROPOSAL_METHODS, proposals
from bespeak.extensions.negotiation.negotiator import Negotiator
from bespeak.extensions.negotiation.syntheses import Syntheses
from bespeak.runtime.extension import BuiltIn, Extension, Opening


def _open(opening: Opening) -> None:
    server, store, document = opening.server, opening.store, opening.document
    assert store is not None, "the extension is chosen for a server with a store"
    registrar = server.registrar
    syntheses = Syntheses(registrar, server.additions, store, document.sessions.idle)
    negotiator = Negotiator(registrar, store, syntheses, document.negotiation, document.sessions)
    server.own_endpoints = negotiator
    opening.provide("negotiation", negotiator)


negotiation: Final = Extension(
    name="negotiation",
    endpoints=lambda _: [BuiltIn(method, path, proposals) for path, method in PROPOSAL_METHODS],
    open=_open,
)
