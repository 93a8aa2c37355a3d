"""`[sessions]` and `[cases]` of a bespeak.toml: how long sessions and open decisions live, and who decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.table import Table

OPERATOR: Final = "operator"
"""Who decides where nobody else is named."""

_DAY: Final = 86400
_IDLE: Final = (1, 30 * _DAY)
_WAIT: Final = (1, 366 * _DAY)
_LONGEST_NAME: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """`[sessions]`: what a Session-ID must be, and how long a session lives."""

    idle: float = 3600
    """Seconds without a request after which a session is over."""
    suspended: float = 7 * _DAY
    """Seconds a session may stay suspended at most."""
    entropy: bool = True
    """Whether ids that look as if they could be guessed are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSettings:
    """`[cases]`: who takes decisions, and how long a confirmation is waited for."""

    default_recipient: str = OPERATOR
    """Who is asked when the caller names nobody: an Agent-ID, or a name for people."""
    confirmation: float = _DAY
    """Seconds in which a call has to be confirmed and then made."""
    most_open: int = 10_000
    """Cases of one kind that an agent may have undecided; 429 beyond them."""


def read_sessions(root: Table) -> SessionSettings:
    """The `[sessions]` table; a value that is wrong is reported and keeps its default."""
    block = root.table("sessions")
    default = SessionSettings()
    if block is None:
        return default
    entropy = block.boolean("entropy")
    settings = SessionSettings(
        idle=block.seconds("idle", "Y878", _IDLE, default.idle),
        suspended=block.seconds("suspended", "Y878", _WAIT, default.suspended),
        entropy=default.entropy if entropy is None else entropy,
    )
    block.finish()
    return settings


def read_cases(root: Table) -> CaseSettings:
    """The `[cases]` table; a value that is wrong is reported and keeps its default."""
    block = root.table("cases")
    default = CaseSettings()
    if block is None:
        return default
    settings = CaseSettings(
        default_recipient=_read_recipient(block) or default.default_recipient,
        confirmation=block.seconds("confirmation", "Y878", _WAIT, default.confirmation),
        most_open=block.count("most_open") or default.most_open,
    )
    block.finish()
    return settings


def _read_recipient(block: Table) -> str | None:
    name = block.text("default_recipient")
    if name is None or (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
        return name
    what = "empty" if not name.strip() else f"{brief(name)}, which is no name"
    block.findings.error(
        "Y878",
        f"`default_recipient` is {what}",
        block.pointer("default_recipient"),
        "Write an Agent-ID, or a name of up to 256 characters.",
    )
    return None
