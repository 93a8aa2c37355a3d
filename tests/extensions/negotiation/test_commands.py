"""`bespeak proposals`: the operator decides, publishes and promotes what agents propose."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.extensions.negotiation.negotiating import FIND, LODGINGS, lodgings
from tests.process import serving
from tests.stateful import do_at as do

from bespeak.agent.client.agtp_transport import Pool
from bespeak.app.cli.audit import audit
from bespeak.contract.handler import Composition
from bespeak.documents.deployment.endpoint_toml import endpoint_of, read_recipes
from bespeak.errors import ConfigError
from bespeak.extensions.negotiation.commands import promote_synthesis, proposals
from bespeak.extensions.negotiation.store import FileProposal, ReadProposal
from bespeak.runtime.additions import StoredEndpoint, write_endpoint
from bespeak.state.audit.record import KeptRecord, payload_of
from bespeak.state.store.commands.audit import LatestAudit
from bespeak.terminal import CommandFailedError
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table

AGENT, OTHER = "a" * 64, "b" * 64
CONFIGURATION = """[server]
server_id = "s"
operator = "o"
contact = "c"
"""


def file(number: int, state: str, document: str, **fields: Any) -> FileProposal:
    return FileProposal(
        proposal_id=f"prop-{number}",
        negotiation_id="n1",
        agent_id=AGENT,
        session_id="",
        method="FIND",
        path="/lodgings",
        digest=f"d{number}",
        state=state,
        document=document,
        granted=600.0,
        lasts=600.0,
        **fields,
    )


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    """Create a folder with a store: one proposal of each kind."""
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION)
    composed = replace(FIND, path="/lodgings", handler=Composition(recipe="synthesis-1"))
    recipe = replace(LODGINGS, name="synthesis-1", pattern={})
    document = write_endpoint(composed, recipe, explanation=("Calls FIND /rooms.",))
    refusal = json.dumps({"refusal": {"reason": "ambiguous", "explanation": "Unclear."}})
    do(
        tmp_path / "bespeak.db",
        file(1, "pending", document),
        file(2, "approved", document),
        file(3, "rejected", refusal),
        file(4, "pending", document, persistent=True),
    )
    return tmp_path


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(proposals, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def fail(*arguments: object) -> str:
    error = run(*arguments, code=1).exception
    assert isinstance(error, CommandFailedError)
    return str(error)


def test_pending_proposals_are_listed_by_default(deployment: Path) -> None:
    lines = run("list", deployment).output.splitlines()
    assert [line.split()[1] for line in lines] == ["prop-1", "prop-4"]
    assert "FIND /lodgings" in lines[0]
    assert "persistent" in lines[1]
    assert len(json.loads(run("list", deployment, "--state", "all", "--json").output)) == 4
    assert run("list", deployment, "--state", "released").output == "no released proposals\n"


def test_proposal_is_shown_with_contract_and_plan(deployment: Path) -> None:
    output = run("show", "prop-1", deployment).output
    assert "Calls FIND /rooms." in output
    assert '"path": "/lodgings"' in output
    assert "Unclear." in run("show", "prop-3", deployment).output
    shown = json.loads(run("show", "syn-2", deployment, "--json").output)
    assert (shown["proposal_id"], shown["state"]) == ("prop-2", "approved")
    assert fail("show", "prop-9", deployment) == (
        "proposal 'prop-9' not found; see `bespeak proposals list --state all`"
    )


@pytest.mark.parametrize("arguments", [("list",), ("show", "prop-7"), ("show", "prop-7", "--json"), ("list", "--json")])
def test_terminal_escapes_of_agents_are_not_printed(deployment: Path, arguments: tuple[str, ...]) -> None:
    escape = "\x1b]0;owned\x07\u202e\x9b2J"
    composed = replace(FIND, path="/lodgings", description=escape, handler=Composition(recipe="synthesis-1"))
    recipe = replace(LODGINGS, name="synthesis-1", pattern={})
    document = write_endpoint(composed, recipe, explanation=(escape,))
    command = msgspec.structs.replace(file(7, "pending", document), path=f"/lodgings{escape}")
    do(deployment / "bespeak.db", command)
    output = run(*arguments, deployment).output
    assert "prop-7" in output
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(output)


def test_operator_decides_once(deployment: Path) -> None:
    assert run("approve", "prop-1", deployment, "--by", "ann").output == (
        "prop-1 is approved by operator:ann: FIND /lodgings\n"
    )
    assert fail("reject", "prop-1", deployment, "--by", "bob") == "prop-1 is approved already, by operator:ann"
    run("reject", "prop-4", deployment, "--by", "ann", "--reason", "not now")
    assert "not now" in run("show", "prop-4", deployment).output
    assert "not found" in fail("approve", "prop-9", deployment)
    run("approve", "prop-1", deployment, "--by", "\x1b", code=2)


def test_approved_proposal_is_published_with_texts_that_the_operator_approves(deployment: Path) -> None:
    given = ("publish", "prop-2", deployment, "--for", "7d", "--by", "ann")
    refused = run(*given, code=1)
    assert FIND.semantic.outcome in refused.output
    assert "--approve-texts" in str(refused.exception)
    [row] = do(deployment / "bespeak.db", ReadProposal("prop-2"))
    assert not row.published
    output = run(*given, "--approve-texts").output
    assert FIND.description in output
    assert "FIND /lodgings is published until" in output
    [row] = do(deployment / "bespeak.db", ReadProposal("prop-2"))
    assert (row.published, row.persistent, row.granted) == (True, True, 604800.0)
    assert row.decided_by == "operator:ann"
    assert "only an approved proposal can be published" in fail("publish", "prop-3", deployment)
    run("publish", "prop-2", deployment, "--for", "forever", code=2)


@pytest.mark.parametrize(("answer", "published"), [("y", True), ("n", False), ("", False)])
def test_operator_at_a_terminal_is_asked_about_the_texts(
    deployment: Path, monkeypatch: pytest.MonkeyPatch, answer: str, published: bool
) -> None:
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr("bespeak.extensions.negotiation.commands.sys", SimpleNamespace(stdin=terminal, stdout=terminal))
    arguments = ["publish", "prop-2", str(deployment), "--by", "ann"]
    CliRunner().invoke(proposals, arguments, input=f"{answer}\n")
    [row] = do(deployment / "bespeak.db", ReadProposal("prop-2"))
    assert row.published is published


def test_operator_revokes_what_was_approved(deployment: Path) -> None:
    output = run("revoke", "syn-2", deployment, "--by", "ann", "--reason", "wrong guest").output
    assert output == "syn-2 is revoked by operator:ann: FIND /lodgings\n"
    assert "wrong guest" in run("show", "prop-2", deployment).output
    assert "prop-2" in run("list", deployment, "--state", "revoked").output
    assert "prop-2 is revoked; only an approved" in fail("revoke", "prop-2", deployment, "--by", "ann")
    assert "prop-1 is pending" in fail("revoke", "prop-1", deployment, "--by", "ann")
    assert "not found" in fail("revoke", "prop-9", deployment)


def test_decisions_are_in_the_audit_trail(deployment: Path) -> None:
    (deployment / "bespeak.toml").write_text(f"{CONFIGURATION}\n[audit]\n")
    run("approve", "prop-1", deployment, "--by", "ann")
    run("publish", "prop-2", deployment, "--by", "ann", "--approve-texts")
    run("revoke", "prop-2", deployment, "--by", "bob", "--reason", "wrong guest")
    assert "revoked" in fail("revoke", "prop-2", deployment, "--by", "bob")
    [found] = do(deployment / "bespeak.db", LatestAudit(10))
    decided = [payload_of(KeptRecord(*row).jws) or {} for row in reversed(found)]
    assert [record["method"] for record in decided] == ["APPROVE", "PUBLISH", "REVOKE"]
    revoked = {"proposal_id": "prop-2", "decided_by": "operator:bob", "reason": "wrong guest"}
    assert decided[-1]["extra"]["input"] == revoked
    assert len(decided) == 3, "what was not carried out is not recorded"
    assert CliRunner().invoke(audit, ["verify", str(deployment)]).exit_code == 0


def test_rejected_proposal_is_not_promoted(deployment: Path) -> None:
    assert "only an approved proposal" in fail("promote", "prop-3", deployment, "-o", deployment)


APP = """
from typing import Any


def find(city: str) -> dict[str, Any]:
    return {"rooms": [{"city": city}]}
"""
ENDPOINT = """[endpoint]
method = "FIND"
path = "/rooms"
description = "Finds rooms in a city."
errors = []

[endpoint.semantic]
intent = "Find rooms in a city."
actor = "agent"
outcome = "The rooms are returned."
confidence = 1.0
impact = "informational"
is_idempotent = true

[endpoint.handler]
type = "registered_function"
function = "hotel.find"

[[endpoint.input.required]]
name = "city"
type = "string"

[[endpoint.output]]
name = "rooms"
type = "array"
"""
RECIPE = """[[recipe]]
name = "lodgings"
pattern = {name_exact = "FIND", path_exact = "/lodgings"}

[[recipe.steps]]
method = "FIND"
path = "/rooms"
parameters = {city = {kind = "proposal", value = "town"}}
"""
POLICIES = """
[policies]
synthesis_enabled = true

[negotiation]
approval = "all"
"""


async def ask(port: int, method: str, path: str, body: Any = None, agent: str = AGENT) -> tuple[int, Any]:
    pool = Pool("127.0.0.1", port, size=1)
    try:
        response = await pool.request(method, path, (("Agent-ID", agent),), json.dumps(body or {}).encode())
        return response.status, json.loads(response.body)
    finally:
        await pool.close()


@pytest.mark.process
@pytest.mark.anyio
async def test_approved_endpoint_survives_a_killed_server_and_is_promoted(tmp_path: Path) -> None:
    (tmp_path / "endpoints").mkdir()
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION + POLICIES)
    (tmp_path / "hotel.py").write_text(APP)
    (tmp_path / "endpoints" / "find-rooms.toml").write_text(ENDPOINT)
    (tmp_path / "agtp-recipes.toml").write_text(RECIPE)
    store = ("--store", str(tmp_path / "bespeak.db"))
    town = {"town": "Rome"}

    def operate(*arguments: object) -> Result:
        return run(*arguments)

    with serving(tmp_path, *store) as served:
        status, pending = await ask(served.port, "PROPOSE", "/", {"endpoint": lodgings()})
        assert (status, pending["state"]) == (261, "pending")
        proposal = pending["proposal_id"]
        await asyncio.to_thread(operate, "approve", proposal, tmp_path, "--by", "ann")
        served.stop(signal.SIGKILL)
    with serving(tmp_path, *store) as served:
        assert (await ask(served.port, "QUERY", f"/proposals/{proposal}"))[0] == 263
        assert await ask(served.port, "FIND", "/lodgings", town) == (200, {"rooms": [{"city": "Rome"}]})
        assert (await ask(served.port, "FIND", "/lodgings", town, OTHER))[0] == 404
    written = await asyncio.to_thread(operate, "promote", proposal, tmp_path, "-o", tmp_path)
    assert "find-lodgings.toml" in written.output
    with serving(tmp_path, *store, "--strict") as served:
        assert (await ask(served.port, "FIND", "/lodgings", town, OTHER))[0] == 200


STORED = StoredEndpoint(
    endpoint=replace(FIND, path="/lodgings", handler=Composition(recipe="synthesis-1")),
    recipe=replace(LODGINGS, name="synthesis-1", pattern={}),
    explanation=("Calls FIND /rooms.",),
)


def test_files_are_read_back_as_the_same_composition(tmp_path: Path) -> None:
    recipes, path = promote_synthesis(STORED, tmp_path)
    [recipe], findings = read_recipes(recipes)
    assert not findings
    assert (recipe.name, recipe.steps, recipe.description) == ("find-lodgings", LODGINGS.steps, "Calls FIND /rooms.")
    root = toml_table(str(read_text(path)), str(path))
    assert isinstance(root, Table)
    endpoint, findings = endpoint_of(root, str(path))
    assert not findings
    assert endpoint is not None
    assert (endpoint.key, endpoint.handler) == (("FIND", "/lodgings"), Composition(recipe="find-lodgings"))
    assert endpoint.output_schema == FIND.output_schema


def test_recipe_is_appended_to_those_of_the_operator(tmp_path: Path) -> None:
    own = '[[recipe]]\nname = "own"\n\n[[recipe.steps]]\nmethod = "FIND"\n'
    (tmp_path / "agtp-recipes.toml").write_text(own)
    recipes, _ = promote_synthesis(STORED, tmp_path)
    assert recipes.read_text().startswith(own)
    assert [recipe.name for recipe in read_recipes(recipes)[0]] == ["own", "find-lodgings"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    _, path = promote_synthesis(STORED, tmp_path)
    with pytest.raises(ConfigError, match="has a recipe 'find-lodgings' already"):
        promote_synthesis(STORED, tmp_path)
    (tmp_path / "agtp-recipes.toml").unlink()
    with pytest.raises(ConfigError, match="exists; move it away"):
        promote_synthesis(STORED, tmp_path)
    (tmp_path / "agtp-recipes.toml").write_text("[[recipe]]\n")
    path.unlink()
    with pytest.raises(ConfigError, match="has errors"):
        promote_synthesis(STORED, tmp_path)


def test_null_cannot_be_written(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [None]}}}
    stored = replace(STORED, endpoint=replace(STORED.endpoint, output_schema=schema))
    with pytest.raises(ConfigError, match="no null: /endpoint/output_schema/properties/a/enum/0"):
        promote_synthesis(stored, tmp_path)
    assert not list(tmp_path.iterdir())


def test_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "endpoints").mkdir()
    (tmp_path / "endpoints" / "find-lodgings.toml").symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(ConfigError, match="exists; move it away"):
        promote_synthesis(STORED, tmp_path)
    assert not (tmp_path / "elsewhere.toml").exists()
    assert not (tmp_path / "agtp-recipes.toml").exists()


@pytest.mark.parametrize("path", ["/../../etc", "/%2e%2e/x", "/.hidden", "/" + "x" * 490, "/a\\b", "/~a/!$&'()*+,;=:@"])
def test_no_path_leaves_the_folder(path: str, tmp_path: Path) -> None:
    stored = replace(STORED, endpoint=replace(STORED.endpoint, path=path))
    for written in promote_synthesis(stored, tmp_path / "deployment"):
        assert written.resolve().is_relative_to(tmp_path / "deployment")
        assert not written.name.startswith(".")
