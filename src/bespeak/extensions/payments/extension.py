"""The extension: PURCHASE, its gate, and purchases that expire or are continued after a crash."""

from __future__ import annotations

import logging
from typing import Final

from bespeak.extensions.payments.gate import purchase_gate
from bespeak.extensions.payments.methods import cancel_purchase, confirm_own, describe_purchase, purchase
from bespeak.extensions.payments.purchases import HELD, PURCHASE, SETTLED, Sales, open_purchases
from bespeak.extensions.payments.settings import PaymentSettings
from bespeak.runtime.extension import Anchor, Cancelling, Extension, Gate, Opening, RecordKind
from bespeak.terminal.panels import panel_in

_logger = logging.getLogger(__name__)


def _open(opening: Opening) -> None:
    if opening.store is None:
        return
    settings = opening.document.extension_table("payments", PaymentSettings) or PaymentSettings()
    joined = opening.server.registrar.participants.get("sale", {})
    sales = Sales(opening.server, joined, settings.currencies)
    purchases = open_purchases(opening.store, settings, opening.environment, sales)

    async def start() -> None:
        await purchases.start()
        if purchases.settings.accounts and opening.server.principals.authenticator is None:
            _logger.warning("[auth] is open: whoever names the owner of an account can spend its money")

    opening.provide("payments", purchases)
    opening.on_start(start)
    opening.on_close(purchases.close)


payments: Final = Extension(
    name="payments",
    methods={"PURCHASE": purchase},
    gates=(Gate(purchase_gate, Anchor.READ, methods=frozenset({"PURCHASE"}), early=True),),
    kinds={
        PURCHASE: RecordKind(
            due=lambda server: server.part("payments").carry,
            cancelling=Cancelling((HELD, SETTLED), carry_out=cancel_purchase, refunds=True),
            describe=describe_purchase,
        )
    },
    hooks={"confirm purchases": confirm_own},
    open=_open,
    panels=(panel_in(__name__, "payments", "Payments", one=True),),
)
