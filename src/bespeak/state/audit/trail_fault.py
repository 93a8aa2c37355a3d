"""A fault in an audit trail."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["changed", "removed", "reordered", "added", "forged", "unsigned", "truncated", "checkpoint", "foreign"]
"""Kind of a fault. `forged`: the signature is not by a trusted key; `checkpoint`: the fault is in a checkpoint;
`foreign`: it is of another server.
"""


class TrailFault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault and the record it concerns."""

    kind: Kind
    message: str
    audit_id: str = ""
    """Id of the record; empty if the record is missing and its id is unknown."""
    stream: str = ""
    sequence: int = 0
    checkpoint_id: str = ""
