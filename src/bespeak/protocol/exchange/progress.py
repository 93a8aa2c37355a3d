"""Progress of a running call, for faces whose clients want to hear of it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

Report = Callable[[float, float | None, str | None], None]
"""Takes what is done, of how much, and what is being done. It may be called from any thread, and never waits."""

REPORT: Final[ContextVar[Report | None]] = ContextVar("bespeak_progress", default=None)
"""Report of the current call; None if its caller cannot hear of progress."""
