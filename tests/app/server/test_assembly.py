"""Assembly of a service, where its state is, agents that are enrolled, and clients inside the process."""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.cases import rows
from tests.service import AGENT, Bench, echo, make_endpoint

import bespeak
from bespeak import App, Context
from bespeak.app.cli.agents import Issuer, enrol, filed_agents, issuer_of, read_key
from bespeak.app.server import collector_paused
from bespeak.app.server.assembly import assemble, first_written
from bespeak.app.server.local import connect_local
from bespeak.app.server.target import load_app
from bespeak.contract.agent import Agent
from bespeak.contract.data_set import DataColumn, DataSet
from bespeak.contract.policy import FLOOR_METHODS, MethodPolicy, Policies
from bespeak.contract.service import DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.errors import ConfigError, ContractError
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.agent_json import parse_agent
from bespeak.state.identity.jws import generate_key, private_text, public_jwk
from bespeak.state.store.settings import open_store
from bespeak.terminal.deployment import names_attribute, store_place
from bespeak.text.source.tree import Location

pytestmark = pytest.mark.anyio


SERVICE = Service(identity=ServerIdentity(server_id="a.example", operator="A", contact="a@a.example"))


@pytest.mark.parametrize("server_id", ["", " ", "a\nb", "a\r\nEvil: yes", "a\x00"])
def test_a_server_id_that_no_header_can_carry_is_refused(server_id: str) -> None:
    with pytest.raises(ConfigError, match="server_id"):
        assemble(replace(SERVICE, identity=replace(SERVICE.identity, server_id=server_id)))


def test_the_floor_is_there_without_any_endpoint_but_not_without_a_catalog() -> None:
    assembled = assemble(SERVICE)
    assert assembled.findings == []
    assert {method for method, path in assembled.registrar.endpoints if path == "/"} >= set(FLOOR_METHODS)
    with pytest.raises(ConfigError, match="no-such-catalog"):
        assemble(replace(SERVICE, catalog="no-such-catalog.json"))


def test_unsupported_features_are_disabled_with_a_warning() -> None:
    agent = Agent(agent_id="a" * 64, name="concierge")
    policies = Policies(synthesis_enabled=True, wildcards_accepted=True)
    vocabulary = Vocabulary(domain="hospitality", negotiable=True)
    service = replace(SERVICE, policies=policies, vocabulary=vocabulary)
    assembled = assemble(replace(service, agents=(agent,), agent_disclosure="authenticated"), stored=False)
    assert [finding.severity for finding in assembled.findings] == ["warning"] * 4
    proven = assemble(replace(SERVICE, agents=(agent,), agent_disclosure="authenticated"), verifies=True)
    assert proven.findings == []
    assert assembled.registrar.service.vocabulary == Vocabulary(domain="hospitality")
    assert assembled.registrar.policies.synthesis_enabled is False
    assert assembled.registrar.policies.wildcards_accepted is False


ROOMS = DataManifest(
    available_data=(
        DataSet(name="rooms", sensitivity="low", target=list, columns=(DataColumn("number", {"type": "integer"}),)),
    )
)


@pytest.mark.requirement("AGIS-8.2-5")
def test_service_is_negotiable_only_with_synthesis_and_a_data_manifest() -> None:
    negotiating = replace(SERVICE, policies=Policies(synthesis_enabled=True), vocabulary=Vocabulary(negotiable=True))
    bare = assemble(negotiating)
    assert [one.message for one in bare.findings] == ["vocabulary.negotiable is true, but there is no data manifest"]
    assert bare.registrar.service.vocabulary == Vocabulary()
    fixed = assemble(replace(SERVICE, vocabulary=Vocabulary(negotiable=True), data_manifest=ROOMS))
    assert "policies.synthesis_enabled is false" in fixed.findings[0].message
    silent = assemble(replace(negotiating, vocabulary=None, data_manifest=ROOMS))
    assert silent.registrar.service.vocabulary == Vocabulary(negotiable=True)


def test_data_sets_are_steps_and_servers_with_a_store_negotiate() -> None:
    bench = Bench(assemble(replace(SERVICE, data_manifest=ROOMS)))
    assert ("QUERY", "/data/rooms") in bench.routes.steps
    assert ("QUERY", "/data/rooms") not in bench.routes.endpoints
    assert bench.send("QUERY", "/data/rooms", {}).status == 404
    assert bench.send("DISCOVER", "/").json["data_manifest"] == {
        "available_data": [{"class": "rooms", "sensitivity": "low"}]
    }
    assert "/data/" not in bench.send("DISCOVER", "/", accept="application/agis").response.body.decode()
    vocabulary = Vocabulary(domain="hospitality", negotiable=True)
    service = replace(SERVICE, policies=Policies(synthesis_enabled=True), vocabulary=vocabulary, data_manifest=ROOMS)
    assembled = assemble(service)
    assert (assembled.findings, assembled.registrar.service.vocabulary) == ([], vocabulary)
    assert assembled.registrar.policies.synthesis_enabled
    paths = {path for _, path in assembled.registrar.endpoints}
    assert {"/proposals", "/proposals/{proposal_id}"} <= paths
    assert "/proposals" not in {path for _, path in assemble(SERVICE).registrar.endpoints}


@pytest.mark.parametrize("methods", [MethodPolicy(legacy=("GETT",)), MethodPolicy(custom=("X-FOO",))])
@pytest.mark.requirement("API-9.4-2")
def test_a_wrong_method_policy_is_fatal(methods: MethodPolicy) -> None:
    with pytest.raises(ContractError, match="policies"):
        assemble(replace(SERVICE, policies=Policies(methods=methods)))


def test_a_manifest_without_a_store_is_as_old_as_the_oldest_endpoint_file(tmp_path: Path) -> None:
    for name, age in (("a.toml", 1_777_593_600), ("b.toml", 1_800_000_000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    book = make_endpoint("BOOK", "/room", echo)
    files = [str(tmp_path / name) for name in ("b.toml", "a.toml", "missing.toml")]
    endpoints = tuple(replace(book, path=f"/room{n}", location=Location(file)) for n, file in enumerate(files))
    assert first_written(replace(SERVICE, endpoints=endpoints)) == "2026-05-01T00:00:00Z"
    assert first_written(SERVICE) is None


def test_the_collector_is_paused_inside_and_left_as_it_was() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="broken"), collector_paused():
        raise ValueError("broken")
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


HOTEL = Path(__file__).parents[3] / "examples" / "hotel"


@pytest.mark.parametrize("target", [HOTEL, str(HOTEL)], ids=["path", "text"])
async def test_a_folder_is_called_without_a_server(target: Path | str) -> None:
    async with bespeak.connect(target, agent_id=AGENT) as hotel:
        assert (await hotel.call("QUERY", "/rooms", beds=3))["rooms"]


async def test_targets_are_called_without_a_loop_and_inapplicable_options_refused() -> None:
    with bespeak.connect_sync(HOTEL) as hotel:
        assert hotel.call("QUERY", "/rooms", beds=3)["rooms"]
    first, *others = inspect.signature(bespeak.connect).parameters.values()
    assert (first.name, first.annotation) == ("service", "App | str | Path")
    assert {"agent_id", "scopes", "tls", "retry"} <= {one.name for one in others}
    with pytest.raises(ConfigError, match="called inside this process, where ca_file, tls cannot apply"):
        bespeak.connect(HOTEL, tls=True, ca_file="ca.pem")
    with pytest.raises(ConfigError, match=r"nothing to serve at 'localhost:4480'.*agtp://localhost:4480"):
        async with bespeak.connect("localhost:4480"):
            pass


def counting() -> tuple[App, list[str]]:
    app = App("Counter", server_id="counter.example", operator="Tests", contact="ops@counter.example")
    events: list[str] = []

    @app.lifespan
    async def resources() -> AsyncIterator[dict[str, int]]:
        events.append("opened")
        yield {"calls": 0}
        events.append("closed")

    @app.endpoint("CREATE", "/visits", impact="reversible", scopes=["count:write"])
    def count(context: Context) -> dict[str, int]:
        """Count a call.

        Outcome: The number of calls is one higher and is returned.
        """
        context.state["calls"] += 1
        return {"calls": context.state["calls"]}

    return app, events


async def test_handlers_share_what_the_lifespan_yields_behind_all_gates() -> None:
    app, events = counting()
    async with connect_local(app, agent_id=AGENT, scopes=["count:write"]) as service:
        assert [await service.call("CREATE", "/visits") for _ in range(2)] == [{"calls": 1}, {"calls": 2}]
        assert events == ["opened"]
    assert events == ["opened", "closed"]
    async with connect_local(counting()[0], agent_id=AGENT) as service:
        reply = await service.request("CREATE", "/visits")
    assert reply.status == 455


async def test_agents_of_one_block_share_its_server_and_each_has_its_own_authority() -> None:
    app, events = counting()
    async with connect_local(app, as_="ann", scopes=["count:write"]) as ann:
        bob, eve = ann.for_agent("bob", scopes=["count:write"]), ann.for_agent("eve")
        assert [await one.call("CREATE", "/visits") for one in (ann, bob)] == [{"calls": 1}, {"calls": 2}]
        with pytest.raises(bespeak.AuthorityMissingError):
            await eve.call("CREATE", "/visits")
        # The same key of two agents is two keys.
        replies = [await one.request("CREATE", "/visits", idempotency_key="k") for one in (ann, bob, ann)]
        assert [(reply.output["calls"], reply.replayed) for reply in replies] == [(3, False), (4, False), (3, True)]
    assert events == ["opened", "closed"]


def test_agents_share_a_blocking_client_too() -> None:
    with bespeak.connect_sync(counting()[0], as_="ann", scopes=["count:write"]) as ann:
        bob = ann.for_agent("bob", scopes=["count:write"])
        assert [one.call("CREATE", "/visits") for one in (ann, bob)] == [{"calls": 1}, {"calls": 2}]
    with pytest.raises(bespeak.BespeakError, match="closed"):
        bob.call("CREATE", "/visits")


async def test_state_is_kept_in_memory_until_the_end_of_the_block_or_not_at_all() -> None:
    app, _ = counting()
    for _ in range(2):
        async with connect_local(app, agent_id=AGENT, scopes=["count:write"]) as service:
            first, again = [await service.request("CREATE", "/visits", idempotency_key="k") for _ in range(2)]
            assert (first.output, first.replayed) == ({"calls": 1}, False)
            assert (again.output, again.replayed) == ({"calls": 1}, True)
    app, events = counting()
    async with connect_local(app, agent_id=AGENT, scopes=["count:write"], with_state=False) as service:
        assert (await service.call("CREATE", "/visits")) == {"calls": 1}
    assert events == ["opened", "closed"]


@pytest.mark.parametrize("with_state", [True, False])
async def test_a_failing_lifespan_is_an_error_of_the_configuration(with_state: bool) -> None:
    app = App("Broken", server_id="broken.example", operator="Tests", contact="ops@broken.example")

    @app.lifespan
    async def resources() -> AsyncIterator[None]:
        raise OSError("the database is away")
        yield

    with pytest.raises(ConfigError, match="OSError: the database is away"):
        async with connect_local(app, with_state=with_state):
            pass


async def test_state_is_kept_in_a_store_that_is_given(tmp_path: Path) -> None:
    app, _ = counting()
    replayed = []
    for _ in range(2):
        store = open_store(str(tmp_path / "state.db"), role="sole")
        async with connect_local(
            load_app(app, tmp_path), agent_id=AGENT, scopes=["count:write"], store=store
        ) as service:
            replayed.append((await service.request("CREATE", "/visits", idempotency_key="k")).replayed)
    assert replayed == [False, True]


WHEN = "2026-11-16T08:00:00Z"


def test_a_document_carries_the_genesis_that_gives_its_id() -> None:
    issuer = Issuer(server_id="hotel.example", operator="Hotel", key=generate_key())
    key = public_jwk(generate_key())
    made = enrol(issuer, key, name="desk", description="Books.", scopes=["b:c", "a:b", "b:c"], issued_at=WHEN)
    assert not isinstance(made, Refused)
    agent, findings = parse_agent(msgspec.json.encode(made).decode(), "desk")
    assert findings == []
    assert (agent.agent_id, agent.scopes) == (agent.genesis.agent_id, ("a:b", "b:c"))
    assert (agent.public_key, agent.issuer, agent.principal) == (key, "agtp://hotel.example", "Hotel")


def test_the_issuer_is_the_operator_with_the_servers_valid_key(tmp_path: Path) -> None:
    key = generate_key()
    (tmp_path / "server.pem").write_text(private_text(key))
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "a@a.example"\nsigning_key = "server.pem"\n'
    )
    issuer = issuer_of(str(tmp_path), None)
    assert (issuer.server_id, issuer.operator, issuer.key.thumbprint()) == ("a.example", "A", key.thumbprint())
    assert filed_agents(str(tmp_path)) == filed_agents("some.module:app") == ()
    with pytest.raises(ConfigError, match="nothing"):
        read_key(tmp_path / "nothing.pem")
    (tmp_path / "bad.pem").write_text("no key")
    with pytest.raises(ConfigError, match="Ed25519"):
        read_key(tmp_path / "bad.pem")


BROKEN = "raise SystemExit('the code of the operator was imported')\n"


def deployment(folder: Path, configuration: str = "", *, name: str = "bespeak.toml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(configuration)
    (folder / "app.py").write_text(BROKEN)
    (folder / "endpoints").mkdir(exist_ok=True)
    (folder / "endpoints" / "wrong.toml").write_text("[endpoint]\nmethod = 1\n")
    return folder


def test_the_place_of_the_store_is_that_of_the_command_line_or_the_configuration(tmp_path: Path) -> None:
    assert store_place(str(deployment(tmp_path, '[store]\nplace = "s.db"\n')), "other.db") == "other.db"
    assert store_place("nothing there", "memory") == "memory"
    with pytest.raises(ConfigError, match="--store is empty"):
        store_place(str(tmp_path), "")
    assert store_place("rooms.main:app") == "bespeak.db"
    folder = deployment(tmp_path, '[store]\nplace = "state/s.db"\ndurability = "process"\n')
    for target in (folder, folder / "bespeak.toml"):
        assert store_place(str(target)) == str(folder / "state" / "s.db")
    folder = deployment(tmp_path, '[server]\ncatalog = 1\n[listen]\nworkers = "x"\n[store]\nplace = "s.db"\n')
    assert store_place(str(folder)) == str(folder / "s.db")


def test_configurations_of_either_name_are_read_or_refused(tmp_path: Path) -> None:
    folder = deployment(tmp_path, '[store]\nplace = "s.db"\n', name="agtp-server.toml")
    assert store_place(str(folder)) == str(folder / "s.db")
    with pytest.raises(ContractError, match="the configuration cannot be used"):
        store_place(str(deployment(tmp_path, "[store\n")))


@pytest.mark.parametrize("name", ["", "app.py", "app.py:app", "menu.agis", "endpoints/wrong.toml"])
def test_without_a_setting_it_is_a_file_in_the_folder_of_the_target(tmp_path: Path, name: str) -> None:
    folder = deployment(tmp_path)
    (folder / "menu.agis").write_text("not even a document")
    target = folder / name if name else folder
    assert store_place(str(target)) == str((folder / name).parent / "bespeak.db" if name else folder / "bespeak.db")


def test_documents_use_their_configuration_and_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = deployment(tmp_path, 'document = "menu.agis"\n[store]\nplace = "s.db"\n')
    (folder / "menu.agis").write_text("x")
    (folder / "other.agis").write_text("x")
    assert store_place(str(folder / "menu.agis")) == str(folder / "s.db")
    assert store_place(str(folder / "other.agis")) == str(folder / "bespeak.db")
    folder = deployment(tmp_path, '[store]\nplace = "postgresql://u:${ROOMS_PASSWORD}@h/n"\n')
    monkeypatch.setenv("ROOMS_PASSWORD", "s3cret")
    assert store_place(str(folder)) == "postgresql://u:s3cret@h/n"
    monkeypatch.delenv("ROOMS_PASSWORD")
    with pytest.raises(ConfigError, match=r"variable 'ROOMS_PASSWORD', which is not set.*--store"):
        store_place(str(folder))


@pytest.mark.parametrize("configuration", ["[store]\nplace = 1\n", 'store = "x"\n', '[store]\nplace = ""\n'])
def test_a_configuration_that_does_not_say_where_is_refused(tmp_path: Path, configuration: str) -> None:
    with pytest.raises(ContractError, match="where the store is"):
        store_place(str(deployment(tmp_path, configuration)))


@pytest.mark.parametrize("target", ["", "nothing-there", "agtp://host", "x.txt", "no module:app"])
def test_an_invalid_target_is_refused_with_the_valid_forms(target: str) -> None:
    with pytest.raises(ConfigError, match="there is no deployment at"):
        store_place(target)


@rows("text, names", ("a:app", False), ("rooms:app", True), ("C:", False), ("rooms", False), ("rooms:1", False))
def test_a_drive_letter_is_not_a_module(text: str, names: bool) -> None:
    assert names_attribute(text) is names
