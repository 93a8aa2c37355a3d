"""Status codes: their names on the status line."""

from __future__ import annotations

import pytest

from bespeak.protocol import status


@pytest.mark.requirement("API-17.1-1")
def test_the_codes_of_the_contract_layer_have_their_registered_names() -> None:
    registered = {
        261: "Negotiation In Progress",
        262: "Authorization Required",
        263: "Proposal Approved",
        405: "Method Not Allowed",
        459: "Method Violation",
        460: "Endpoint Violation",
        463: "Proposal Rejected",
    }
    assert status.REASONS.items() >= registered.items()
