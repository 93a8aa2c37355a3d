"""Applications beside the HTTP face: only those that are chosen."""

from __future__ import annotations

import pytest
from tests.service import build, echo, make_endpoint

from bespeak.app.server.lifecycle import WebApplications
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.opening import open_store
from bespeak.state.store.settings import MEMORY

pytestmark = pytest.mark.anyio


def dispatcher() -> Dispatcher:
    made = build(make_endpoint("FIND", "/rooms", echo)).dispatcher
    made.server.store = open_store(MEMORY, role="sole")
    return made


@pytest.mark.parametrize(
    ("mcp", "a2a", "places"),
    [(False, False, None), (True, False, {"/mcp"}), (False, True, {"/a2a"}), (True, True, {"/mcp", "/a2a"})],
)
async def test_each_has_its_place(mcp: bool, a2a: bool, places: set[str] | None) -> None:
    serving = dispatcher()
    store = serving.server.store
    assert store is not None
    await store.start()
    beside = WebApplications(
        serving, HttpSettings(), AuthSettings(), mcp=McpSettings(enabled=mcp), a2a=A2aSettings(enabled=a2a)
    )
    await beside.start()
    await beside.stop()
    await store.close()
    found = beside.places
    assert (None if found is None else {path for path in found if "well-known" not in path}) == places
