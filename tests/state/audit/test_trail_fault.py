"""Faults as data."""

from __future__ import annotations

import msgspec

from bespeak.state.audit.verification import TrailFault


def test_fault_as_json_omits_unknown_fields() -> None:
    fault = TrailFault("removed", "record 2 is gone", stream="s", sequence=2)
    assert msgspec.json.decode(msgspec.json.encode(fault)) == {
        "kind": "removed",
        "message": "record 2 is gone",
        "stream": "s",
        "sequence": 2,
    }
