"""Test `bespeak audit`: commands, output and exit codes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cases import rows
from tests.state.audit.trails import ANN, BOB, NOW, append, make_checkpointer, make_sealer
from tests.state.audit.trails import KEY as TRAILS_KEY

from bespeak.app.cli.audit import TrailTrust, audit, trust_of
from bespeak.errors import ConfigError
from bespeak.state.audit.trail import Signing
from bespeak.state.identity.jws import generate_key, key_id, private_text, public_jwk
from bespeak.state.identity.key_files import PastKey, history_path, history_text
from bespeak.state.store.settings import open_store
from bespeak.terminal import CommandFailedError

CONFIGURATION = """
[server]
server_id = "rooms"
operator = "Acme"
contact = "ops@acme.example"
signing_key = "server.pem"

[audit]
enabled = true
"""


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(audit, [str(argument) for argument in arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert (result.return_value or 0) == code, result.output
    return result


async def fill(place: Path, signing: Signing | None) -> list[str]:
    store = open_store(str(place))
    await store.start()
    sealer = make_sealer(signing=signing)
    store.attach(sealer)
    records = await append(store, [ANN, BOB, ANN, ""], issued_at="2026-05-01T12:00:00", status=200, path="/room")
    if signing is not None:
        await make_checkpointer(store, sealer).write()
    await store.close()
    return [record.audit_id for record in records]


class Deployment:
    """Create a folder with a key, a configuration and a trail."""

    def __init__(self, folder: Path, signing: Signing | None = "each") -> None:
        self.folder = folder
        (folder / "server.pem").write_text(private_text(TRAILS_KEY))
        (folder / "bespeak.toml").write_text(CONFIGURATION)
        self.ids = asyncio.run(fill(folder / "bespeak.db", signing))

    def change(self, sql: str) -> None:
        with sqlite3.connect(self.folder / "bespeak.db") as connection:
            connection.execute(sql)
        connection.close()


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def test_intact_trail_has_no_faults(deployment: Deployment) -> None:
    output = run("verify", deployment.folder).output
    assert "records      4 of 3 agents, in 1 stream\n" in output
    assert "checkpoints  1, the last one " in output
    assert "signatures   4 good, by 1 trusted key\n" in output
    assert output.endswith("no faults\n")


@rows(
    "sql, kind",
    ("UPDATE audit SET jws = replace(jws, 'A', 'B') WHERE sequence = 2", "changed"),
    ("DELETE FROM audit WHERE sequence = 2", "removed"),
    ("DELETE FROM audit WHERE sequence = 4", "truncated"),
    ("UPDATE audit SET position = 99 WHERE sequence = 2", "reordered"),
    ("UPDATE checkpoints SET jws = jws || 'A'", "checkpoint"),
)
def test_tampered_trail_exits_with_one(deployment: Deployment, sql: str, kind: str) -> None:
    deployment.change(sql)
    output = run("verify", deployment.folder, code=1).output
    assert output.startswith(kind)
    assert "no faults" not in output


def test_faults_are_reported_as_json(deployment: Deployment) -> None:
    deployment.change("DELETE FROM audit WHERE sequence = 2")
    found = json.loads(run("verify", deployment.folder, "--json", code=1).output)
    assert (found["records"], found["faults"]) == (3, 1)
    assert (found["found"][0]["kind"], found["found"][0]["sequence"]) == ("removed", 2)


def test_export_is_verified_without_the_store(deployment: Deployment, tmp_path: Path) -> None:
    out, key = tmp_path / "trail.jsonl", tmp_path / "key.json"
    assert "6 lines written" in run("export", deployment.folder, "-o", out).output
    assert run("export", deployment.folder).stdout_bytes == out.read_bytes()
    key.write_text(json.dumps(public_jwk(TRAILS_KEY)))
    assert "4 good" in run("verify", "--file", out, "--key", key).output
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:-1]))
    assert "truncated" in run("verify", "--file", out, "--key", key, code=1).output


@pytest.mark.requirement("CORE-10.3-3")
def test_wrong_key_reports_forgery_and_missing_key_is_reported(deployment: Deployment, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps(public_jwk(generate_key())))
    assert "not a trusted key" in run("verify", deployment.folder, "--key", other, code=1).output
    output = run("verify", "--store", deployment.folder / "bespeak.db").output
    assert "4 not checked: no key is available; give one with --key" in output
    output = run("verify", deployment.folder, "--store", deployment.folder / "bespeak.db").output
    assert "4 good" in output


def test_records_signed_before_a_rotation_still_verify(deployment: Deployment) -> None:
    new, path = generate_key(), deployment.folder / "server.pem"
    path.write_text(private_text(new))
    assert "not a trusted key" in run("verify", deployment.folder, code=1).output
    forged = history_text([PastKey(new), PastKey(TRAILS_KEY)], [TRAILS_KEY])
    history_path(path).write_text(forged)
    with pytest.raises(ConfigError, match=r"not signed by the key in server\.pem"):
        run("verify", deployment.folder)
    history_path(path).write_text(history_text([PastKey(new), PastKey(TRAILS_KEY, NOW + 3600)], [new]))
    assert "4 good, by 2 trusted keys" in run("verify", deployment.folder).output
    history_path(path).write_text(history_text([PastKey(new), PastKey(TRAILS_KEY, NOW - 3600)], [new]))
    assert "with a replaced key" in run("verify", deployment.folder, code=1).output


def test_unsigned_trail_is_reported_as_forgeable(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, None)
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION.replace("signing_key", "# signing_key"))
    output = run("verify", deployment.folder).output
    assert "signatures   none: anyone with write access" in output
    assert "not proven" not in output


def test_verification_says_that_auditing_is_off(deployment: Deployment) -> None:
    assert "auditing is off" not in run("verify", deployment.folder).stderr
    assert json.loads(run("verify", deployment.folder, "--json").stdout)["auditing"] is True
    (deployment.folder / "bespeak.toml").write_text(CONFIGURATION.replace("true", "false"))
    found = run("verify", deployment.folder)
    assert found.stderr == 'auditing is off: nothing is recorded while bespeak.toml has [audit] records = "off"\n'
    assert found.stdout.endswith("no faults\n")


def test_unsigned_trail_is_a_fault_if_the_configuration_names_a_key(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, None)
    output = run("verify", deployment.folder, code=1).output
    assert output.startswith("unsigned")
    assert 'checked      against 1 trusted key, sign = "each" of the configuration, server_id rooms\n' in output


def test_trail_of_another_server_with_the_same_key_is_a_fault(deployment: Deployment, tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION.replace('"rooms"', '"seats"'))
    found = json.loads(run("verify", deployment.folder, "--json", code=1).output)["found"]
    assert [fault["kind"] for fault in found] == ["foreign", "foreign"]
    run("verify", deployment.folder, "--server-id", "seats", "--server-id", "rooms")


def test_verification_says_what_it_compared_and_what_stays_open(deployment: Deployment, tmp_path: Path) -> None:
    output = run("verify", deployment.folder).output
    assert 'checked      against 1 trusted key, sign = "each" of the configuration, server_id rooms\n' in output
    assert "not proven   that nothing was cut off at the end" in output
    last = json.loads(run("verify", deployment.folder, "--json").output)["last_checkpoint"]
    assert "not proven" not in run("verify", deployment.folder, "--expect", last).output
    out = tmp_path / "trail.jsonl"
    run("export", deployment.folder, "-o", out)
    assert "checked      against itself only; give a TARGET or --key\n" in run("verify", "--file", out).output
    assert "4 good" in run("verify", deployment.folder, "--file", out).output


def test_missing_expected_checkpoint_is_a_fault(deployment: Deployment) -> None:
    run("verify", deployment.folder, "--expect", deployment.ids[1])
    output = run("verify", deployment.folder, "--expect", "e" * 64, code=1).output
    assert f"removed {'e' * 64}: no record or checkpoint has this expected id" in output


def test_one_record_is_shown_in_full(deployment: Deployment) -> None:
    output = run("show", deployment.ids[0], deployment.folder).output
    assert f"audit_id           {deployment.ids[0]}\n" in output
    assert "signature          good\n" in output
    assert f"agent_id           {ANN}\n" in output
    shown = json.loads(run("show", deployment.folder, deployment.ids[0], "--json").output)
    assert shown["record"]["method"] == "BOOK"


def test_the_latest_records_of_an_agent_are_shown_newest_first(deployment: Deployment) -> None:
    lines = run("show", deployment.folder, "--agent", ANN).output.splitlines()
    assert [line.split()[2] for line in lines] == [deployment.ids[2], deployment.ids[0]]
    assert lines[0] == f"2026-05-01T12:00:00  200  {deployment.ids[2]}  BOOK /room"
    assert len(run("show", deployment.folder, "--limit", 3).output.splitlines()) == 3
    assert len(json.loads(run("show", deployment.folder, "--agent", "anonymous", "--json").output)) == 1


def test_steps_of_a_composition_name_it(tmp_path: Path) -> None:
    async def write() -> None:
        store = open_store(str(tmp_path / "store.db"))
        await store.start()
        store.attach(make_sealer(signing=None))
        await append(store, [ANN], path="/room", step="2/0", parent_response_id="resp-1")
        await store.close()

    asyncio.run(write())
    assert run("show", "--store", tmp_path / "store.db").output.endswith("/room  (step 2/0 of resp-1)\n")


def test_missing_record_or_store_is_refused(deployment: Deployment, tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="no record has the id"):
        run("show", "e" * 64, deployment.folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no store at"):
        run("verify", tmp_path / "empty")
    with pytest.raises(ConfigError, match="cannot be read"):
        run("verify", "--file", tmp_path / "missing")
    with pytest.raises(ConfigError, match=r"nokey"):
        run("verify", deployment.folder, "--key", tmp_path / "nokey")


@pytest.mark.parametrize("arguments", [("e" * 64, "d" * 64), ("a", "b"), ("--agent", "Ann")])
def test_wrong_usage_is_reported(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(audit, ["show", *arguments])
    assert result.exit_code == 2
    assert "Usage" in result.output


def test_prefix_of_an_audit_id_is_not_read_as_a_target(tmp_path: Path) -> None:
    result = CliRunner().invoke(audit, ["show", "3f5e12", "--store", str(tmp_path / "bespeak.db")])
    assert result.exit_code == 2
    assert "64 hexadecimal digits; got '3f5e12'" in result.output


KEY, OLD = generate_key(), generate_key()
SERVER = '[server]\nserver_id = "rooms"\noperator = "Acme"\ncontact = "c"\n'


def trail_trust_deployment(folder: Path, more: str = "") -> str:
    (folder / "bespeak.toml").write_text(SERVER + more)
    return str(folder)


def test_trail_without_a_configured_key_has_no_trust(tmp_path: Path) -> None:
    assert trust_of(None) == TrailTrust()
    trust = trust_of(trail_trust_deployment(tmp_path))
    assert (trust.keys, trust.expected.sign) == ({}, "none")


@pytest.mark.parametrize(
    ("audit", "sign"),
    [("", "each"), ('[audit]\nsign = "checkpoints"\n', "checkpoints"), ('[audit]\nsign="none"', "none")],
)
def test_key_mode_and_server_come_from_the_configuration(tmp_path: Path, audit: str, sign: str) -> None:
    (tmp_path / "server.pem").write_text(private_text(KEY))
    trust = trust_of(trail_trust_deployment(tmp_path, f'signing_key = "server.pem"\n{audit}'))
    assert set(trust.keys) == {key_id(KEY)}
    assert (trust.expected.sign, trust.expected.server_ids) == (sign, {"rooms"})


def test_replaced_keys_are_trusted_with_their_end(tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text(private_text(KEY))
    history = history_path(tmp_path / "server.pem")
    history.write_text(history_text([PastKey(KEY), PastKey(OLD, 7.5)], [KEY]))
    target = trail_trust_deployment(tmp_path, 'signing_key = "server.pem"\n')
    trust = trust_of(target)
    assert (set(trust.keys), trust.expected.replaced) == ({key_id(KEY), key_id(OLD)}, {key_id(OLD): 7.5})
    history.write_text(history_text([PastKey(KEY), PastKey(OLD, 9.5)], [OLD]))
    with pytest.raises(ConfigError, match="Give the keys that you trust with --key"):
        trust_of(target)


def test_given_keys_and_servers_replace_those_of_the_configuration(tmp_path: Path) -> None:
    given = tmp_path / "old.json"
    given.write_text(json.dumps(public_jwk(OLD)))
    target = trail_trust_deployment(tmp_path, 'signing_key = "missing.pem"\n')
    trust = trust_of(target, [given], ["seats"])
    assert (set(trust.keys), trust.expected.sign, trust.expected.server_ids) == ({key_id(OLD)}, "each", {"seats"})
    with pytest.raises(ConfigError, match=r"missing\.pem.* with --key"):
        trust_of(target)
