"""TRANSACT methods are what section 5 of the Tier 2 draft says."""

from __future__ import annotations

from tests.contract.standard.drafted import Drafted, compare

from bespeak.contract.standard.transact import TRANSACT

DRAFT = {
    "QUOTE": Drafted("method parameters", "budget_units", "400 404 422", idempotent=True),
    "REGISTER": Drafted("entity_type data", "idempotency_key", "409 422"),
    # 409 is what an Idempotency-Key in use is answered with, by every method.
    "SUBMIT": Drafted("target payload", "priority callback", "400 503"),
    "AUTHORIZE": Drafted("subject resource scope", "ttl conditions", "403 409 455"),
    "CANCEL": Drafted("target_id", "reason notify_parties refund_policy", "404 409 422"),
    "TRANSFER": Drafted("resource_id from_principal to_principal", "reason", "403 404 409 455"),
    "PURCHASE": Drafted("item principal_id amount", "payment_method confirm_immediately", "403 409 455 456"),
    "SIGN": Drafted("payload", "key_id algorithm", "403 422"),
    "LOG": Drafted("event_type data", "severity correlation_id", "400 503"),
    "PUBLISH": Drafted("content channel", "format schedule_at", "400 403 409"),
}


def test_methods_have_the_parameters_codes_and_scopes_of_the_draft() -> None:
    compare(TRANSACT, DRAFT)
    scopes = {method.name: method.scopes for method in TRANSACT}
    assert (scopes["AUTHORIZE"], scopes["PURCHASE"]) == (("authorization:grant",), ("payments:purchase",))
