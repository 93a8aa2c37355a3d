"""`[audit]` of a bespeak.toml: what is put on record, and how it is sealed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.table import Table

SIGNINGS: Final = ("each", "checkpoints")
REFERENCE_KEYS: Final = ("path", "attribution_records_enabled")
"""What the reference implementation has in this table; the trail here is in the store, and has a switch of its own."""

_KEYS: Final = ("enabled", "sign", "discovery", "checkpoint_every", "fields")
_MOST_RECORDS: Final = 1_000_000
_SECRET: Final = re.compile(
    r"(?i)passw|passphrase|secret|token|credential|api_?key|private_?key|(?:^|_)(?:pin|cvv|cvc|otp|ssn|iban)(?:_|$)|card"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The trail of a server."""

    enabled: bool = False
    sign: str | None = None
    """`each` record, or `checkpoints` only; None for each record where there is a key."""
    discovery: bool = False
    """Whether calls of built-in methods that change nothing are recorded too."""
    checkpoint_every: int = 1000
    """Records between two checkpoints."""
    fields: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """The input that is recorded, by method and path of the endpoint. None of any other."""


def read_audit(root: Table, *, has_key: bool) -> AuditSettings:
    """The `[audit]` table; a value that is wrong is reported and keeps its default. To write it is to enable it."""
    block = root.table("audit")
    if block is None:
        return AuditSettings()
    given = [key for key in _KEYS if block.has(key)]
    borrowed = [key for key in REFERENCE_KEYS if block.has(key)]
    enabled = block.boolean("enabled")
    settings = AuditSettings(
        enabled=bool(given) or not borrowed if enabled is None else enabled,
        sign=block.choice("sign", SIGNINGS),
        discovery=block.boolean("discovery") or False,
        checkpoint_every=_read_every(block, has_key=has_key),
        fields=_read_fields(block),
    )
    if settings.sign is not None and not has_key:
        message = f"`sign` is {settings.sign!r}, and there is no key to sign with"
        advice = 'Make one with `bespeak keys new --out server.pem`, and write signing_key = "server.pem" in [server].'
        block.findings.error("Y871", message, block.pointer("sign"), advice)
    if not settings.enabled and len(given) > 1:
        others = ", ".join(f"`{key}`" for key in given if key != "enabled")
        message = f"nothing is recorded, so {others} has no effect"
        block.findings.warning("Y874", message, block.at, "Write enabled = true, or remove the rest.")
    block.finish()
    return settings


def _read_every(block: Table, *, has_key: bool) -> int:
    default = AuditSettings().checkpoint_every
    value = block.count("checkpoint_every")
    if value is None:
        return default
    at = block.pointer("checkpoint_every")
    if value > _MOST_RECORDS:
        message = f"`checkpoint_every` is {value}, and must be from 1 to {_MOST_RECORDS}"
        block.findings.error("Y872", message, at, "The records behind the last checkpoint are those that can get lost.")
        return default
    if not has_key:
        message = "`checkpoint_every` has no effect: a checkpoint is a signature, and there is no key to sign with"
        block.findings.warning("Y874", message, at, 'Write signing_key = "FILE" in [server].')
    return value


def _read_fields(block: Table) -> dict[tuple[str, str], tuple[str, ...]]:
    """`"BOOK /room" = ["guest_id"]`: a method and a path, then names of its input."""
    table = block.table("fields")
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    if table is None:
        return found
    for name, key in table.endpoints("Y870"):
        found[key] = tuple(dict.fromkeys(table.texts(name)))
        for secret in filter(_SECRET.search, found[key]):
            message = f"{brief(secret)} of {' '.join(key)} sounds like a secret, and would stand in every record"
            advice = "Leave it out: nothing can be removed from the trail afterwards."
            table.findings.warning("Y873", message, table.pointer(name), advice)
    return found
