"""COMMUNICATE methods are what section 7 of the Tier 2 draft says."""

from __future__ import annotations

from tests.contract.standard.drafted import Drafted, compare

from bespeak.contract.standard.communicate import COMMUNICATE

DRAFT = {
    "ALERT": Drafted("recipient message severity", "acknowledge_by escalation_path", "400 404 503"),
    "BROADCAST": Drafted("audience content", "channel expiry", "400 403 503"),
    "REPLY": Drafted("in_reply_to content", "urgency", "404 400"),
    "SEND": Drafted("recipient channel content", "template_id", "400 404 503"),
    "REPORT": Drafted("report_type scope recipient", "format", "400 422 503"),
}


def test_methods_have_the_parameters_and_codes_of_the_draft_and_none_is_reversible() -> None:
    compare(COMMUNICATE, DRAFT)
    assert {method.impact for method in COMMUNICATE} == {"irreversible"}
