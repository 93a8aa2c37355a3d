"""Test `bespeak agents`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.app.cli.invoking import invoking
from tests.cases import rows
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import keeping

from bespeak.app.cli.agents import agents
from bespeak.contract.agent import Agent
from bespeak.errors import ConfigError
from bespeak.state.identity.jws import generate_key, parse_key, private_text, public_jwk
from bespeak.state.store.settings import open_store
from bespeak.terminal import CommandFailedError

FILED = "f" * 64


run = invoking(agents)


def good(*arguments: object) -> str:
    result = run(*arguments, code=0)
    return result.output


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, CommandFailedError), result.output
    return str(result.exception)


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    """Create a deployment with a signing key and one agent in a file."""
    folder = tmp_path / "hotel"
    (folder / "agents").mkdir(parents=True)
    (folder / "server.pem").write_text(private_text(generate_key()))
    (folder / "bespeak.toml").write_text(
        '[server]\nserver_id = "hotel.example"\noperator = "Hotel"\ncontact = "ops@hotel.example"\n'
        'signing_key = "server.pem"\n'
    )
    document = {"agent_id": FILED, "name": "lobby", "scopes_accepted": ["booking:room"]}
    (folder / "agents" / "lobby.json").write_text(json.dumps(document))
    return folder


def listed(deployment: Path) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in json.loads(good("list", deployment, "--json"))}


def test_new_agent_gets_an_id_a_key_and_a_valid_document(deployment: Path, tmp_path: Path) -> None:
    key = tmp_path / "desk.pem"
    output = good("add", deployment, "--name", "desk", "--scope", "booking:room", "--new-key", key)
    entry = listed(deployment)["desk"]
    assert entry["agent_id"] in output
    assert (entry["status"], entry["scopes"], entry["place"]) == ("active", ["booking:room"], "store")
    assert key.stat().st_mode & 0o777 == 0o600
    private = key.read_text()
    assert "PRIVATE" in private
    assert private.splitlines()[1] not in output
    shown = json.loads(good("show", "desk", deployment, "--json"))
    made = parse_key(private)
    assert shown["document"]["genesis"]["issuer"] == "hotel.example"
    assert "PRIVATE" not in json.dumps(shown)
    assert public_jwk(made)["kid"] in good("show", "desk", deployment)  # type: ignore[arg-type]


def test_two_agents_with_equal_settings_have_different_ids(deployment: Path) -> None:
    good("add", deployment, "--name", "one")
    good("add", deployment, "--name", "two")
    found = listed(deployment)
    assert found["one"]["agent_id"] != found["two"]["agent_id"]
    assert "name" in refused("add", deployment, "--name", "one")


def test_document_is_registered_unchanged(deployment: Path, tmp_path: Path) -> None:
    document = tmp_path / "a.json"
    document.write_text(json.dumps({"agent_id": "a" * 64, "name": "a", "scopes_accepted": ["mail:send"]}))
    assert "a" * 64 in good("add", document, deployment)
    assert listed(deployment)["a"]["scopes"] == ["mail:send"]
    document.write_text(json.dumps({"agent_id": "a" * 64, "name": "a", "scopes_accepted": []}))
    good("add", document, deployment)
    assert listed(deployment)["a"]["scopes"] == []


@pytest.mark.parametrize(
    "content", ["", "{}", '{"agent_id": "x", "name": "y"}', "[1]", '{"agent_id": "' + "a" * 64 + '"}']
)
def test_invalid_document_registers_nothing(deployment: Path, tmp_path: Path, content: str) -> None:
    document = tmp_path / "a.json"
    document.write_text(content)
    assert "nothing was changed" in refused("add", document, deployment)
    assert listed(deployment).keys() == {"lobby"}


def test_agents_of_files_are_listed_and_can_be_suspended(deployment: Path) -> None:
    assert listed(deployment)["lobby"]["status"] == "active"
    assert not (deployment / "bespeak.db").exists()
    assert good("suspend", "lobby", deployment, "--reason", "odd") == "lobby is suspended, and was active\n"
    assert listed(deployment)["lobby"]["status"] == "suspended"
    assert "DEACTIVATE by operator: odd" in good("show", FILED[:8], deployment)
    assert good("show", "lobby", deployment, "--id") == FILED + "\n"
    assert good("suspend", "lobby", deployment) == "lobby is suspended already\n"
    assert good("reinstate", "lobby", deployment) == "lobby is active, and was suspended\n"


def test_agents_beside_an_app_are_those_of_its_configuration(deployment: Path) -> None:
    app = deployment / "rooms.py"
    app.write_text("raise SystemExit('not imported')\n")
    good("add", app, "--name", "desk", "--scope", "booking:room")
    assert listed(app).keys() == listed(deployment).keys() == {"desk", "lobby"}


def test_revocation_is_permanent(deployment: Path, tmp_path: Path) -> None:
    document = tmp_path / "a.json"
    document.write_text(json.dumps({"agent_id": "a" * 64, "name": "a"}))
    good("add", document, deployment)
    assert run("revoke", "a", deployment).exit_code == 2
    good("revoke", "a", deployment, "--reason", "key lost")
    assert "retired" in refused("reinstate", "a", deployment)
    assert "cannot be reused" in refused("add", document, deployment)
    assert listed(deployment)["a"]["status"] == "retired"


def test_agent_retired_by_a_file_cannot_be_added(deployment: Path, tmp_path: Path) -> None:
    document = {"agent_id": FILED, "name": "lobby"}
    (deployment / "agents" / "lobby.json").write_text(json.dumps({**document, "status": "Revoked"}))
    again = tmp_path / "again.json"
    again.write_text(json.dumps(document))
    assert "cannot be reused" in refused("add", again, deployment)


def test_memory_store_and_unknown_agent_are_refused(deployment: Path) -> None:
    for command in (("list", deployment), ("suspend", "lobby", deployment), ("add", deployment, "--name", "desk")):
        result = run(*command, "--store", "memory")
        assert isinstance(result.exception, ConfigError)
        assert "memory" in str(result.exception)
    for command in (("show",), ("suspend",), ("revoke", "--reason", "r")):
        assert "'nobody'" in refused(command[0], "nobody", deployment, *command[1:])


def test_store_option_names_the_store(deployment: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere.db"
    good("add", deployment, "--name", "desk", "--store", place)
    assert "desk" not in listed(deployment)
    assert "desk" in good("list", deployment, "--store", place)


@rows(
    "arguments",
    ("lobby.json", "third.json"),
    ("--name", "two words"),
    ("--name", "desk", "--scope", "Booking"),
    ("--name", "desk", "--key", "a", "--new-key", "b"),
    ("document.json", "--name", "desk"),
)
def test_invalid_options_are_refused_before_any_change(deployment: Path, arguments: tuple[str, ...]) -> None:
    assert run("add", deployment, *arguments).exit_code == 2
    assert run("add").exit_code == 2
    assert not (deployment / "bespeak.db").exists()


def test_existing_key_can_be_registered(deployment: Path, tmp_path: Path) -> None:
    key = generate_key()
    public = tmp_path / "public.json"
    public.write_text(json.dumps(public_jwk(key)))
    good("add", deployment, "--name", "desk", "--key", public)
    assert public_jwk(key)["kid"] in good("show", "desk", deployment)


def test_existing_key_file_is_not_overwritten_and_no_agent_is_registered(deployment: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("precious")
    assert isinstance(run("add", deployment, "--name", "desk", "--new-key", key).exception, ConfigError)
    assert key.read_text() == "precious"
    assert "desk" not in listed(deployment)


def test_key_file_is_removed_if_registration_fails(deployment: Path, tmp_path: Path) -> None:
    good("add", deployment, "--name", "desk")
    refused("add", deployment, "--name", "desk", "--new-key", tmp_path / "key.pem")
    assert not (tmp_path / "key.pem").exists()


def test_missing_issuer_key_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text('[server]\nserver_id = "a"\noperator = "A"\ncontact = "a@a.example"\n')
    result = run("add", tmp_path, "--name", "desk")
    assert isinstance(result.exception, ConfigError)
    assert "--issuer-key" in str(result.exception)
    issuer = tmp_path / "issuer.pem"
    issuer.write_text(private_text(generate_key()))
    good("add", tmp_path, "--name", "desk", "--issuer-key", issuer)
    issuer.write_text(json.dumps(public_jwk(generate_key())))
    assert "private" in str(run("add", tmp_path, "--name", "other", "--issuer-key", issuer).exception)


@pytest.mark.anyio
async def test_running_server_picks_up_changes(tmp_path: Path) -> None:
    place = tmp_path / "state.db"
    desk = Agent(agent_id=AGENT, name="desk")
    async with keeping(
        make_endpoint("FETCH", "/room", echo), agents=(desk,), store=open_store(str(place), role="sole")
    ) as bench:
        assert (await bench.send("FETCH", "/room")).status == 200
        noticed = asyncio.Event()
        bench.bench.server.agents.watch(noticed.set)
        (tmp_path / "agents").mkdir()
        (tmp_path / "agents" / "desk.json").write_text(json.dumps({"agent_id": AGENT, "name": "desk"}))
        await asyncio.to_thread(good, "suspend", "desk", tmp_path, "--store", place)
        await asyncio.wait_for(noticed.wait(), 20)
        assert (await bench.send("FETCH", "/room")).status == 503


def test_empty_list_is_reported_and_missing_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "a@a.example"\n'
    )
    assert "no agents are registered" in good("list", tmp_path)
    assert good("list", tmp_path, "--json").strip() == "[]"
    result = run("list", tmp_path, "--store", tmp_path / "typo.db")
    assert isinstance(result.exception, ConfigError)
    assert "no store at" in str(result.exception)


def test_existing_key_file_is_kept_and_the_message_omits_force(deployment: Path, tmp_path: Path) -> None:
    (tmp_path / "agent.pem").write_text("in use")
    result = run("add", deployment, "--name", "desk", "--new-key", tmp_path / "agent.pem")
    assert isinstance(result.exception, ConfigError)
    assert "already exists" in str(result.exception)
    assert "--force" not in str(result.exception)
    assert (tmp_path / "agent.pem").read_text() == "in use"
