"""Floor methods without anything behind them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak import App
from bespeak.app.server.local import connect_local
from bespeak.contract.agent import Agent
from bespeak.runtime.methods.builtin import MISSING, find_missing

VALID: dict[str, dict[str, Any]] = {
    "SUMMARIZE": {"source": "text"},
    "EXECUTE": {"action": "run"},
    "NOTIFY": {"recipient": "r", "content": "c"},
}


@pytest.mark.parametrize("method", MISSING)
def test_a_valid_call_is_a_501_that_names_what_is_missing(method: str) -> None:
    reply = build().send(method, "/", VALID[method])
    assert (reply.status, reply.error["code"], reply.error["missing"]) == (501, "not-implemented", MISSING[method])


@pytest.mark.parametrize("method", MISSING)
def test_its_parameters_are_checked_all_the_same(method: str) -> None:
    assert build().send(method, "/").status == 422


def test_every_published_form_says_what_is_not_implemented() -> None:
    bench = build(make_endpoint("EXECUTE", "/jobs", echo), agents=(Agent(agent_id=AGENT, name="ada"),))
    manifest = bench.send("DISCOVER", "/")
    entries = {(entry["method"], entry["path"]): entry for entry in manifest.json["endpoints"]}
    inventory = {(entry["method"], entry["path"]): entry for entry in bench.send("DISCOVER", "/methods").json}
    for method, missing in {**MISSING, "QUERY": "resources to search"}.items():
        entry = entries[method, "/"]
        assert (entry["implemented"], entry["missing"], entry["semantic"]["confidence"]) == (False, missing, 0.0)
        assert f"lacks {missing}" in entry["description"]
        assert inventory[method, "/"]["description"] == entry["description"]
    works = entries["EXECUTE", "/jobs"]
    assert "implemented" not in works
    described = bench.send("DESCRIBE", "/", {"capability_domains": "methods"}).json["result"]["methods"]
    supported = (manifest.header("Supported-Methods") or "").split(", ")
    assert described == supported
    assert {"EXECUTE", "DISCOVER", "PROPOSE"} <= set(supported)
    assert "SUMMARIZE" not in supported


def test_what_a_server_lacks_depends_on_its_store_and_resources() -> None:
    assert find_missing("SUSPEND", stored=True, searchable=True) is None
    assert find_missing("SUSPEND", stored=False, searchable=True) == "a store to keep state in"
    assert find_missing("QUERY", stored=False, searchable=True) is None
    assert find_missing("DISCOVER", stored=False, searchable=False) is None


@pytest.mark.anyio
async def test_a_client_without_state_is_told_what_does_not_work() -> None:
    app = App("A", server_id="a.example", operator="A", contact="a@a.example")
    async with connect_local(app, with_state=False) as service:
        manifest = await service.discover()
    missing = {entry["method"] for entry in manifest.raw["endpoints"] if entry.get("implemented") is False}
    assert {"ESCALATE", "CONFIRM", "SUSPEND", "RESUME", "DELEGATE", "REVOKE", "INSPECT"} <= missing
