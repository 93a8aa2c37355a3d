"""A server is complete when it is constructed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.app.server.assembly import assemble
from bespeak.contract.agent import Agent
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.server import Server
from bespeak.state.identity.settings import AuthSettings, SignedSettings
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Store

REGISTRAR = build(make_endpoint("BOOK", "/room", echo), agents=(Agent(agent_id=AGENT, name="ada"),)).server.registrar


def test_a_server_has_everything_its_methods_need() -> None:
    auth = AuthSettings(modes=("signed",), signed=SignedSettings())
    signer = Signer(OKPKey.generate_key("Ed25519"))
    server = Server(REGISTRAR, updated="2026-01-01T00:00:00Z", signer=signer, auth=auth)
    assert server.principals.authenticator is not None
    assert server.principals.key_of("test.example") == signer.private_key.public_key()
    assert ("BOOK", "/room") in server.routes.endpoints
    assert server.routes.updated == "2026-01-01T00:00:00Z"


def test_two_servers_of_one_service_share_routes_and_no_state() -> None:
    first, second = (Server(REGISTRAR, updated="2026-01-01T00:00:00Z") for _ in range(2))
    assert first.routes.direct["/room"]["BOOK"] is second.routes.direct["/room"]["BOOK"]
    assert first.agents is not second.agents


async def published(server: Server, store: Store) -> tuple[Any, Any]:
    """Return the manifest and the first agent's identity of a server that starts and stops."""
    await store.start()
    await server.start()
    publication = server.routes.publication
    documents = (publication.manifest_for(ANONYMOUS), publication.identity_of(next(iter(server.agents))))
    await server.close()
    await store.close()
    manifest, identity = (msgspec.json.decode(document.body) for document in documents)
    return manifest["server"], identity


@pytest.mark.anyio
@pytest.mark.requirement("API-8.3-1", "API-8.3-3", "API-8.3-4")
async def test_times_of_the_manifest_survive_restarts_until_it_changes(tmp_path: Path) -> None:
    identity = replace(REGISTRAR.service.identity, contact="other@test.example")
    changed = assemble(replace(REGISTRAR.service, identity=identity)).registrar
    seen = []
    for year, registrar in ((2026, REGISTRAR), (2027, REGISTRAR), (2028, changed)):
        store = open_store(str(tmp_path / "store.db"), role="sole")
        times = {"updated": f"{year}-01-01T00:00:00Z", "issued": f"{year}-09-09T00:00:00Z"}
        block, identity = await published(Server(registrar, **times, store=store), store)
        seen.append((block["server_id"], block["issued"], block["updated"], identity["issued_at"]))
    first = "2026-01-01T00:00:00Z"
    assert seen == [
        ("test.example", first, first, first),
        ("test.example", first, first, first),
        ("test.example", first, "2028-01-01T00:00:00Z", first),
    ]


@pytest.mark.anyio
async def test_time_of_first_issue_that_the_operator_names_takes_precedence() -> None:
    identity = replace(REGISTRAR.service.identity, issued="2020-01-01T00:00:00Z")
    assembled = assemble(replace(REGISTRAR.service, identity=identity), updated="2026-01-01T00:00:00Z")
    store = open_store("memory", role="sole")
    block, _ = await published(Server(assembled.registrar, updated=assembled.updated, store=store), store)
    assert block["issued"] == "2020-01-01T00:00:00Z"


@pytest.mark.parametrize("require_known", [None, True, False])
@pytest.mark.parametrize("agents", [(), (Agent(agent_id=AGENT, name="desk"),)])
@pytest.mark.anyio
async def test_admitting_unknown_agents_beside_registered_ones_is_said_at_the_start(
    require_known: bool | None, agents: tuple[Agent, ...], caplog: pytest.LogCaptureFixture
) -> None:
    await build(agents=agents, require_known_agents=require_known).server.start()
    said = "agents that are not registered are admitted with any scope they claim" in caplog.text
    assert said == (bool(agents) and require_known is False)
