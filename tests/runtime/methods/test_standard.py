"""Standard methods are offered if they are enabled, on the same terms as other endpoints."""

from __future__ import annotations

import pytest
from tests.service import AGENT, build
from tests.stateful import keeping

from bespeak.app.server.assembly import choose_extensions, list_builtins
from bespeak.contract.extensions import BUNDLED, KnownExtension
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.contract.standard.methods import STANDARD, choose_methods
from bespeak.runtime.call import REQUIRES_STORE
from bespeak.runtime.extension import handlers_of

pytestmark = pytest.mark.anyio

IDENTITY = ServerIdentity(server_id="rooms.example", operator="Acme", contact="desk@rooms.example")


@pytest.mark.requirement("METHODS-1.1-1")
def test_every_method_of_the_table_has_a_handler() -> None:
    # RESUME also resumes sessions, so it belongs to the kernel.
    assert {
        *handlers_of(choose_extensions(Service(identity=IDENTITY, methods=("LOG",)), stored=True)),
        "RESUME",
    } == set(STANDARD)


@pytest.mark.parametrize("known", BUNDLED, ids=lambda known: known.name)
def test_an_entry_of_the_index_says_what_its_extension_has(known: KnownExtension) -> None:
    extension = known.value.load()
    assert (extension.name, set(extension.methods)) == (known.name, set(known.methods))
    assert all(callable(known.lazy(place).load()) for place in (*known.floor.values(), *known.hooks.values()))


async def test_a_method_that_is_not_enabled_is_not_there() -> None:
    async with keeping() as bench:
        reply = await bench.send("LOG", "/", {"event_type": "x", "data": 1})
        assert (reply.status, reply.json["error"]["code"]) == (405, "method-not-allowed")


@pytest.mark.requirement("METHODS-1.4-1")
async def test_an_enabled_method_is_announced_and_listed() -> None:
    async with keeping(methods=("LOG",)) as bench:
        routes = bench.bench.routes
        assert "LOG" in routes.supported_methods
        [endpoint] = [endpoint for endpoint in routes.endpoints.values() if endpoint.is_listed]
        assert (str(endpoint), endpoint.namespace) == ("LOG /", "transact")


async def test_resume_is_listed_where_it_is_enabled_and_served_everywhere() -> None:
    for methods in ((), choose_methods(["*"])):
        async with keeping(methods=methods) as bench:
            listed = {endpoint.method for endpoint in bench.bench.routes.endpoints.values() if endpoint.is_listed}
            assert ("RESUME" in listed) == bool(methods)
            manifest = (await bench.send("DISCOVER", "/methods", agent=None)).json
            assert [one["method"] for one in manifest].count("RESUME") == 1
            reply = await bench.send("RESUME", "/", {"workflow_id": "x", "resumption_nonce": "y"})
            assert (reply.status, reply.error["code"]) == (404, "session-not-found")


async def test_the_policies_for_endpoints_hold_for_it() -> None:
    policies = Policies(scope_required_for_invocation=True, confirm_irreversible=True)
    async with keeping(methods=("LOG",), policies=policies) as bench:
        body = {"event_type": "x", "data": 1}
        assert (await bench.send("LOG", "/", body)).status == 262
        waiting = await bench.send("LOG", "/", body, authority_scope="log:write")
        assert waiting.json["error"]["code"] == "confirmation-required"


def test_a_server_without_a_store_says_that_it_cannot() -> None:
    service = Service(identity=IDENTITY, methods=("LOG",))
    endpoints = {str(endpoint): endpoint for endpoint in list_builtins(service, stored=False)}
    assert endpoints["LOG /"].missing == REQUIRES_STORE
    assert build(methods=("LOG",)).send("LOG", "/", {"event_type": "x", "data": 1}, agent_id=AGENT).status == 501
