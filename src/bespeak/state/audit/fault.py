"""Something in a trail that is not as it was written."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["changed", "removed", "reordered", "added", "forged", "unsigned", "truncated", "checkpoint"]
"""`forged`: a signature that is none of the trusted keys'; `checkpoint`: the fault is in a checkpoint, not a record."""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wrong, and with which record."""

    kind: Kind
    message: str
    audit_id: str = ""
    """Empty where the record is gone and nothing has kept its id."""
    stream: str = ""
    sequence: int = 0
    checkpoint_id: str = ""
