"""A service inside this process: call a folder or a file without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bespeak.agent.client.bearer_token import BearerCredential
from bespeak.agent.client.in_process import InProcess
from bespeak.agent.client.locator import Locator
from bespeak.agent.client.retry import RetryPolicy
from bespeak.agent.client.sender import Sender
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.signer import read_signer
from bespeak.app.server.assembly import now
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_target
from bespeak.text.diagnostics.diagnostic import Diagnostic


def connect_local(
    target: str,
    *,
    report: Callable[[list[Diagnostic]], None],
    agent_id: str | None = None,
    scopes: Iterable[str] = (),
    timeout: float = 30.0,
    agent_key: Path | None = None,
    token: str | None = None,
) -> ServiceClient:
    """Connect a client directly to the dispatcher of a target; all gates apply as over the wire."""
    assembled = assemble_target(load_target(target), now())
    report(assembled.findings)
    locator = Locator(host=target, port=0)
    server_id = assembled.registrar.service.identity.server_id
    signer = read_signer(agent_key, agent_id, server_id) if agent_key is not None else None
    credential = BearerCredential(token) if token is not None else None
    sender = Sender(
        InProcess(assembled.build_dispatcher()),
        locator,
        timeout=timeout,
        retry=RetryPolicy(),
        signer=signer,
        credential=credential,
    )
    return ServiceClient(sender, locator, agent_id=agent_id, scopes=scopes)
