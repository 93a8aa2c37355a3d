"""A service in this process: what a folder or a file would answer, without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bespeak.client.locator import Locator
from bespeak.client.retry import RetryPolicy
from bespeak.client.sender import Sender
from bespeak.client.service import ServiceClient
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.server.assembly import now
from bespeak.server.serving import assemble_target
from bespeak.server.target import load_target
from bespeak.transports.in_process import InProcess


def connect_local(
    target: str,
    *,
    report: Callable[[list[Diagnostic]], None],
    agent_id: str | None = None,
    scopes: Iterable[str] = (),
    timeout: float = 30.0,
) -> ServiceClient:
    """A client straight onto the dispatcher of a target; every gate is passed as over a wire."""
    assembled = assemble_target(load_target(target), now())
    report(assembled.findings)
    locator = Locator(host=target, port=0)
    sender = Sender(InProcess(assembled.dispatcher), locator, timeout=timeout, retry=RetryPolicy(), secure=False)
    return ServiceClient(sender, locator, agent_id=agent_id, scopes=scopes)
