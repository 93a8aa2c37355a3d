"""ORCHESTRATE methods are what section 8 of the Tier 2 draft says."""

from __future__ import annotations

from tests.contract.standard.drafted import Drafted, compare

from bespeak.contract.standard.orchestrate import ORCHESTRATE

DRAFT = {
    "CHAIN": Drafted("steps", "on_failure context_propagation timeout", "400 408 422"),
    "BATCH": Drafted("calls", "execution_mode partial_success", "400 408 422"),
    "MONITOR": Drafted("target events callback", "threshold interval", "404 400"),
    "ROUTE": Drafted("payload criteria", "candidates fallback", "404 422 503"),
    "RETRY": Drafted("original_task_id", "delay max_attempts", "404 409"),
    "PAUSE": Drafted("workflow_id", "reason resume_at", "404 409"),
    "RESUME": Drafted("workflow_id", "resumption_nonce checkpoint", "404 408 409"),
    "RUN": Drafted("procedure_id", "input timeout", "403 404 408 422 455"),
    "CHECK": Drafted("target", "depth", "404 408", idempotent=True),
}


def test_methods_have_the_parameters_and_codes_of_the_draft_and_pass_on_confirmations() -> None:
    compare(ORCHESTRATE, DRAFT)
    passing = {method.name for method in ORCHESTRATE if method.passes_on}
    assert passing == {"CHAIN", "BATCH", "ROUTE", "RETRY", "RUN"}
