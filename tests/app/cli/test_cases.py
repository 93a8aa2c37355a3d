"""Test `bespeak cases`: the operator lists and decides cases, with or without a running server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cases import rows
from tests.stateful import do_at as do

from bespeak.app.cli.cases import cases
from bespeak.errors import ConfigError
from bespeak.state.audit.record import KeptRecord, payload_of
from bespeak.state.store.commands.audit import LatestAudit
from bespeak.state.store.commands.cases import OpenCase, ReadCase, UseCase
from bespeak.state.store.settings import open_store
from bespeak.terminal import CommandFailedError

AGENT = "a" * 64
SUBJECT = '{"method":"BOOK","path":"/room","input":{"guest":"\\u001b[31mg"}}'
ESCALATED = '{"task_id":"task-7","reason":"ethical_flag","context":{}}'


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    """Create a folder with a store: one confirmation, one escalation, one expired case."""
    (tmp_path / "bespeak.toml").write_text('[server]\nserver_id = "s"\noperator = "o"\ncontact = "c"\n')
    do(
        tmp_path / "bespeak.db",
        OpenCase(
            "conf-1", "confirmation", AGENT, "operator", "d1", SUBJECT, lifetime=600.0, parties=(AGENT, "usr-eve")
        ),
        OpenCase("esc-1", "escalation", AGENT, "desk", "d2", ESCALATED),
        OpenCase("conf-2", "confirmation", "", "operator", "d3", SUBJECT, lifetime=0.0),
    )
    return tmp_path


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(cases, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_open_cases_are_listed_by_default(deployment: Path) -> None:
    lines = run("list", deployment).output.splitlines()
    assert len(lines) == 2
    assert "pending   conf-1" in lines[0]
    assert "BOOK /room" in lines[0]
    assert "task task-7, ethical_flag" in lines[1]
    assert "to desk" in lines[1]


@rows(
    "state, ids",
    ("all", ["conf-1", "conf-2", "esc-1"]),
    ("expired", ["conf-2"]),
    ("accepted", []),
    ("pending", ["conf-1", "esc-1"]),
)
def test_other_states_are_listed_on_request(deployment: Path, state: str, ids: list[str]) -> None:
    found = json.loads(run("list", deployment, "--state", state, "--json").output)
    assert sorted(case["case_id"] for case in found) == ids
    assert ("no accepted cases" in run("list", deployment, "--state", state).output) == (not ids)
    assert len(json.loads(run("list", deployment, "--state", state, "--limit", 1, "--json").output)) == min(1, len(ids))


def test_case_is_shown_with_its_request_and_control_characters_are_escaped(deployment: Path) -> None:
    output = run("show", "conf-1", deployment).output
    assert "state        pending" in output
    assert f"agent        {AGENT}" in output
    assert '"guest"' in output
    assert "\x1b" not in output
    shown = json.loads(run("show", "conf-1", deployment, "--json").output)
    assert shown["subject"]["input"] == {"guest": "\x1b[31mg"}
    assert shown["expires"].endswith("Z")


def test_an_accepted_confirmation_lets_the_call_run(deployment: Path) -> None:
    output = run("accept", "conf-1", deployment, "--reason", "agreed by phone", "--by", "ann").output
    assert output.startswith("conf-1 is accepted by operator:ann, attestation att-")
    [case] = do(deployment / "bespeak.db", ReadCase("conf-1"))
    assert (case.state, case.decided_by, case.reason) == ("accepted", "operator:ann", "agreed by phone")
    assert do(deployment / "bespeak.db", UseCase("conf-1", "d1", AGENT))[0].state == "executed"
    assert run("accept", "conf-1", deployment, "--by", "ann").output == output


@pytest.mark.parametrize("word", ["confirm", "approve"])
def test_other_words_for_accepting_work_too(deployment: Path, word: str) -> None:
    assert run(word, "conf-1", deployment, "--by", "ann").output.startswith("conf-1 is accepted by operator:ann")


@pytest.mark.parametrize("name", ["usr-eve", "USR-Eve", AGENT])
def test_party_behind_the_request_does_not_decide_as_operator_either(deployment: Path, name: str) -> None:
    error = run("accept", "conf-1", deployment, "--by", name, code=1).exception
    assert str(error) == f"conf-1 must be decided by someone else, because {name!r} is behind the request"
    assert "behind it    usr-eve" in run("show", "conf-1", deployment).output
    assert json.loads(run("show", "conf-1", deployment, "--json").output)["parties"] == [AGENT, "usr-eve"]


def test_decision_is_final_and_names_the_decider(deployment: Path) -> None:
    run("reject", "esc-1", deployment, "--by", "ann")
    error = run("accept", "esc-1", deployment, "--by", "bob", code=1).exception
    assert isinstance(error, CommandFailedError)
    assert "esc-1 was rejected by operator:ann at 20" in str(error)


@pytest.mark.parametrize("command", ["show", "accept", "reject"])
def test_unknown_case_is_refused(deployment: Path, command: str) -> None:
    error = run(command, "conf-9", deployment, code=1).exception
    assert isinstance(error, CommandFailedError)
    assert "case 'conf-9' not found" in str(error)


def test_an_expired_case_is_not_decided(deployment: Path) -> None:
    error = run("accept", "conf-2", deployment, code=1).exception
    assert isinstance(error, CommandFailedError)
    assert "has expired" in str(error)


def test_case_is_decided_while_a_server_uses_the_store(deployment: Path) -> None:
    async def serve() -> None:
        store = open_store(str(deployment / "bespeak.db"), role="sole")
        await store.start()
        try:
            await asyncio.to_thread(run, "accept", "conf-1", deployment)
            assert (await store.read(ReadCase("conf-1"))).state == "accepted"
        finally:
            await store.close()

    asyncio.run(serve())


def test_store_option_names_the_store_and_no_store_is_created(deployment: Path, tmp_path: Path) -> None:
    place = deployment / "bespeak.db"
    assert "conf-1" in run("list", "--store", place).output
    error = run("list", "--store", tmp_path / "other.db", code=1).exception
    assert isinstance(error, ConfigError)
    assert "no store at" in str(error)
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize("arguments", [("--by", " "), ("--by", "a\nb"), ("--reason", "\x00")])
def test_unprintable_text_is_wrong_usage(deployment: Path, arguments: tuple[str, str]) -> None:
    assert "must be printable text" in run("accept", "conf-1", deployment, *arguments, code=2).output


def test_decisions_are_in_the_audit_trail_by_default(deployment: Path) -> None:
    run("confirm", "conf-1", deployment, "--by", "ann", "--reason", "the guest called")
    run("confirm", "conf-1", deployment, "--by", "bob", code=1)
    [found] = do(deployment / "bespeak.db", LatestAudit(10))
    [record] = [payload_of(KeptRecord(*row).jws) or {} for row in found]
    decided = {"escalation_id": "conf-1", "decision": "accepted", "decided_by": "ann", "reason": "the guest called"}
    assert (record["method"], record["extra"]["input"]) == ("CONFIRM", decided)
