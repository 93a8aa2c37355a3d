"""Test `bespeak keys api`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.app.cli.invoking import invoking
from tests.cases import rows

from bespeak.app.cli.agents import agents
from bespeak.app.cli.keys import keys
from bespeak.protocol.exchange.principal import derived_id
from bespeak.state.identity.jws import generate_key, private_text
from bespeak.terminal import CommandFailedError

run = invoking(keys, "api")


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    (tmp_path / "server.pem").write_text(private_text(generate_key()))
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "rooms.example"\noperator = "Acme"\ncontact = "ops@acme.example"\n'
        'signing_key = "server.pem"\n[auth]\nmode = "key"\n'
    )
    return tmp_path


def new(deployment: Path, *options: str) -> Any:
    return json.loads(run("new", deployment, *options, "--json", code=0).output)


def listed(deployment: Path) -> Any:
    return json.loads(run("list", deployment, "--json", code=0).output)


def test_a_key_is_printed_once_and_the_store_has_only_its_digest(deployment: Path) -> None:
    shown = run("new", deployment, "--agent", "ann", "--scope", "rooms:read", "--name", "laptop", code=0)
    key = shown.stdout.split()[1]
    assert shown.stdout.startswith(f"key          bsk_{key.split('_')[1]}_")
    assert "it is not shown again" in shown.stderr
    secret = key.split("_")[2].encode()
    for file in deployment.glob("bespeak.db*"):
        assert secret not in file.read_bytes()
    [row] = listed(deployment)
    assert (row["id"], row["agent"], row["agent_id"]) == (key.split("_")[1], "ann", derived_id("ann"))
    assert (row["scopes"], row["name"], row["state"], row["last_used"]) == (["rooms:read"], "laptop", "active", None)
    line = run("list", deployment, code=0).output
    assert all(word in line for word in (row["id"], "active", "ann", "rooms:read", "last used never", "laptop"))
    assert secret.decode() not in line


def test_a_key_lasts_90_days_or_as_long_as_it_is_told(deployment: Path) -> None:
    ends = [new(deployment, "--agent", "ann", "--scope", "a:b", *more)["expires"] for more in ((), ("--expires", "1h"))]
    assert new(deployment, "--agent", "ann", "--scope", "a:b", "--expires", "never")["expires"] is None
    assert ends[0] > ends[1]
    assert [row["expires"] is None for row in listed(deployment)] == [False, False, True]


def test_a_key_is_revoked_by_its_id_or_itself(deployment: Path) -> None:
    made = [new(deployment, "--agent", "ann", "--scope", "a:b") for _ in range(2)]
    assert run("revoke", made[0]["id"], deployment, code=0).output == f"{made[0]['id']} is revoked\n"
    assert run("revoke", made[1]["key"], deployment, code=0).output == f"{made[1]['id']} is revoked\n"
    assert run("revoke", made[0]["id"], deployment, code=0).output == f"{made[0]['id']} is revoked already\n"
    assert {row["state"] for row in listed(deployment)} == {"revoked"}
    failed = run("revoke", "ffffffffffff", deployment)
    assert isinstance(failed.exception, CommandFailedError)


def test_a_key_of_a_registered_agent_stays_within_its_document(deployment: Path) -> None:
    registered = invoking(agents)("add", "--name", "desk", deployment, "--scope", "rooms:read", code=0).output.split()[
        1
    ]
    assert new(deployment, "--agent", "desk", "--scope", "rooms:read")["agent_id"] == registered
    assert new(deployment, "--agent", registered[:8], "--scope", "rooms:read")["agent_id"] == registered
    for options, reason in (
        (("--agent", "desk", "--scope", "rooms:write"), "desk is not granted rooms:write"),
        (("--agent", "ann", "--scope", "rooms:read"), "'ann' is not registered"),
    ):
        failed = run("new", deployment, *options)
        assert isinstance(failed.exception, CommandFailedError)
        assert reason in str(failed.exception)
    invoking(agents)("suspend", "desk", deployment, code=0)
    assert "desk is suspended" in str(run("new", deployment, "--agent", "desk", "--scope", "rooms:read").exception)


@rows(
    "options, reason",
    (("--scope", "a:b"), "--agent"),
    (("--agent", "ann"), "--scope"),
    (("--agent", "ann", "--scope", "Rooms"), "'Rooms' is not a valid scope"),
    (("--agent", "ann", "--scope", "a:b", "--expires", "soon"), "got 'soon'"),
    (("--agent", "ann", "--scope", "a:b", "--expires", "99999d"), "up to 10 years"),
    (("--agent", "ann", "--scope", "a:b", "--name", "x\ny"), "printable"),
    (("--agent", "", "--scope", "a:b"), "--agent must be"),
)
def test_what_no_key_can_have_is_refused(deployment: Path, options: tuple[str, ...], reason: str) -> None:
    assert reason in run("new", deployment, *options, code=2).output
    assert listed(deployment) == []


def test_a_server_that_does_not_take_keys_is_noted(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "o@a.example"\n'
    )
    assert 'modes = ["key"]' in run("new", tmp_path, "--agent", "ann", "--scope", "a:b", code=0).stderr
    assert run("list", tmp_path / "bespeak.toml", "--store", tmp_path / "none.db").exit_code != 0
