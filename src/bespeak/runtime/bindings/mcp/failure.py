"""Failure of an MCP server or of a call to it, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FailureKind = Literal["unreachable", "lost", "timeout", "malformed", "authentication", "refused", "asks", "changed"]
"""Kinds of failures.

unreachable: it could not be started or reached, so nothing was sent. lost: it ended during the call. timeout: it did
not answer. malformed: its answer cannot be read. authentication: it does not accept this server's credential. refused:
it answered with a protocol error. asks: it wants an answer of a user or a model. changed: the tool is gone or takes
another input.
"""


@dataclass(frozen=True, slots=True)
class McpFailure:
    """Why a call has no result."""

    kind: FailureKind
    text: str
    """What happened, for the operator's log; it may name hosts and files."""
    code: int | None = None
    """Code of a protocol error."""
    retry_after: int | None = None
    """Seconds until the server is started again; None if it may be called at once."""
