"""The extension: agents propose endpoints that do not exist, and use what was made for them."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.negotiation.methods import PROPOSAL_METHODS, Negotiator, proposals
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.extensions.negotiation.syntheses import Syntheses
from bespeak.runtime.extension import BuiltIn, Extension, Opening
from bespeak.terminal.panels import panel_in


def _open(opening: Opening) -> None:
    server, store, document = opening.server, opening.store, opening.document
    if store is None:
        return
    registrar = server.registrar
    settings = document.extension_table("negotiation", NegotiationSettings) or NegotiationSettings()
    syntheses = Syntheses(registrar, server.additions, store, document.sessions.idle)
    negotiator = Negotiator(registrar, store, syntheses, settings, document.sessions)
    server.own_endpoints = syntheses
    opening.provide("negotiation", negotiator)
    opening.on_start(lambda: negotiator.prepare(server.routes))


negotiation: Final = Extension(
    name="negotiation",
    endpoints=lambda _: [BuiltIn(method, path, proposals) for path, method in PROPOSAL_METHODS],
    open=_open,
    panels=(
        panel_in(
            __name__,
            "proposals",
            "Proposals",
            one=True,
            act=("approve", "reject", "revoke"),
        ),
    ),
)
