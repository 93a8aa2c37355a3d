"""A service inside this process: call an App, a folder or a file without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from bespeak.agent.client.agtp_transport import InProcess
from bespeak.agent.client.connect import async_block
from bespeak.agent.client.sender import RetryPolicy, Sender, TokenSource, bearer_of, caller_id, read_signer
from bespeak.agent.client.service import ServiceClient
from bespeak.app.authoring.app import App
from bespeak.app.server.assembly import Assembled, Keeper, now
from bespeak.app.server.log import log_findings
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import Target, load_app, load_target
from bespeak.protocol.address import Locator
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.identity.signer import signing_keys
from bespeak.runtime.server import Server
from bespeak.state.store.settings import MEMORY, open_store
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.diagnostic import Diagnostic


@async_block
@asynccontextmanager
async def connect_local(
    target: App | str | Path | Target,
    *,
    as_: str | None = None,
    agent_id: str | None = None,
    scopes: Iterable[str] = (),
    timeout: float = 30.0,  # noqa: ASYNC109 - the deadline of each call
    agent_key: str | Path | None = None,
    token: TokenSource | None = None,
    key: TokenSource | None = None,
    retry: RetryPolicy | None = None,
    with_state: bool = True,
    store: Store | None = None,
    report: Callable[[list[Diagnostic]], None] = log_findings,
    face: str = "agtp",
    opened: Callable[[Server], None] | None = None,
    describes: bool = False,
    locator: Locator | None = None,
) -> AsyncIterator[ServiceClient]:
    """Open a client that calls the dispatcher of a target; all gates apply as over the wire.

    State is kept in `store`, which is started and closed with the block, else in memory until its end. Without
    `with_state`, methods that need a store refuse. `opened` is told what serves the target.
    `describes` is True if no endpoint will be called, so that no credential of an upstream is needed. `locator` is the
    address of the upstream that all calls go to, if users know the service by it.
    """
    agent_id = caller_id(as_, agent_id)
    if isinstance(target, Target):
        loaded = target
    else:
        loaded = load_app(target, Path.cwd()) if isinstance(target, App) else load_target(str(target))
    assembled = assemble_target(loaded, now(), stored=with_state, describes=describes)
    report(assembled.findings)
    identity = assembled.registrar.service.identity
    locator = locator or Locator(host=str(target) if isinstance(target, str | Path) else identity.server_id, port=0)
    signer = read_signer(agent_key, agent_id, identity.server_id)
    if store is None and with_state:
        store = open_store(MEMORY, role="sole", durability=loaded.document.store.durability)
    async with _running(assembled, loaded, store) as dispatcher:
        if opened is not None:
            opened(dispatcher.server)
        inside, proof = InProcess(dispatcher, face=face), bearer_of(token, key)
        sender = Sender(inside, locator, timeout=timeout, retry=retry, signer=signer, credential=proof, is_inside=True)
        yield ServiceClient(sender, locator, agent_id=agent_id, scopes=scopes)


@asynccontextmanager
async def _running(assembled: Assembled, target: Target, store: Store | None) -> AsyncIterator[Dispatcher]:
    if store is None:
        dispatcher = assembled.build_dispatcher(None, target.document)
        try:
            await dispatcher.start()
            yield dispatcher
        finally:
            await dispatcher.server.close()
        return
    keeper = Keeper(assembled, store, target.document, signing_keys(target.document.signing_key))
    await keeper.start()
    try:
        yield keeper.dispatcher
    finally:
        await keeper.stop()
