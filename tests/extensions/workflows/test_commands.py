"""`bespeak workflows` shows what agents have begun, and lets the operator intervene."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from tests.stateful import do_at as do

from bespeak.extensions.workflows.commands import draw_lines, draw_mermaid, draw_svg, workflows
from bespeak.extensions.workflows.spec import Spec, StepSpec, encode
from bespeak.extensions.workflows.store import JournalSteps, StepRow
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import NEVER, ChangeRecord, PutRecord, Record
from bespeak.state.store.sqlite import SqliteStore
from bespeak.terminal import CommandFailedError

AGENT = "a" * 64
BOOK = StepSpec("BOOK", "/rooms", name="book", compensate=StepSpec("CANCEL", "/rooms"))
SPEC = Spec(
    method="CHAIN",
    steps=(BOOK, StepSpec("PAY", "/account")),
    authority=Authority(agent_id=AGENT, scopes=(), headers={}),
    deadline=1e12,
)
ROWS = (StepRow(1, 1, "done", 200, "{}"), StepRow(2, 2, "failed", 422, '{"message": "No money."}'))


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    """Create a folder with a store: a workflow that runs and one that has failed."""
    (tmp_path / "bespeak.toml").write_text('[server]\nserver_id = "s"\noperator = "o"\ncontact = "c"\n')
    text = encode(SPEC).decode()
    do(
        tmp_path / "bespeak.db",
        PutRecord("chain-1", "workflow", AGENT, "running", text, delay=60.0),
        PutRecord("chain-2", "workflow", AGENT, "running", text, delay=60.0),
        JournalSteps("chain-2", 0, ROWS, 60.0, "failed"),
    )
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(workflows, [str(argument) for argument in arguments])


def test_list_shows_the_state_of_each(deployment: Path) -> None:
    lines = run("list", deployment).stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [["chain-1", "running", "CHAIN"], ["chain-2", "failed", "CHAIN"]]
    assert json.loads(run("list", deployment, "--state", "failed", "--json").stdout)[0]["workflow_id"] == "chain-2"
    assert run("list", deployment, "--state", "paused").stdout == "no paused workflows\n"


def test_show_tells_what_became_of_each_step(deployment: Path) -> None:
    text = run("show", "chain-2", deployment, "--watch").stdout
    assert "1  done      book: BOOK /rooms  200" in text
    assert "2  failed    PAY /account  422  attempt 2\n       No money." in text
    assert run("show", "chain-2", deployment, "--format", "mermaid").stdout.startswith("flowchart TD\n")
    assert run("show", "chain-2", deployment, "--format", "svg").stdout.startswith("<svg ")
    assert json.loads(run("show", "chain-2", deployment, "--format", "json").stdout)["steps"][1]["code"] == 422


def test_watch_repeats_what_has_changed_until_the_end(deployment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.workflows.commands._EVERY", 0.01)
    looks: list[Any] = []
    really = SqliteStore.read

    class Ended(Exception):
        """Raised to end a list that is watched for ever."""

    async def look(self: Any, command: Any) -> Any:
        looks.append(command)
        if len(looks) == 3:
            await self.do(ChangeRecord("chain-1", ("workflow",), ("running",), "paused"))
        if len(looks) == 6:
            raise Ended
        return await really(self, command)

    monkeypatch.setattr(SqliteStore, "read", look)
    result = run("list", deployment, "--watch")
    assert isinstance(result.exception, Ended)
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["running", "failed", "paused", "failed"]


def test_workflow_is_paused_resumed_cancelled_and_tried_again(deployment: Path) -> None:
    for command, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelling")):
        assert run(command, "chain-1", deployment).stdout == f"chain-1 is {state}\n"
    assert run("retry", "chain-2", deployment).stdout == "chain-2 runs again\n"
    assert "2  pending" in run("show", "chain-2", deployment).stdout


@pytest.mark.parametrize(
    "arguments", [("pause", "chain-2"), ("resume", "chain-1"), ("cancel", "chain-9"), ("show", "x")]
)
def test_what_is_not_possible_is_refused(deployment: Path, arguments: tuple[str, str]) -> None:
    assert isinstance(run(*arguments, deployment).exception, CommandFailedError)


RECORD = Record("chain-1", "workflow", "a" * 64, None, "failed", 3, "{}", 1.0, 2.0, None, 0, NEVER)
WORKFLOW_DRAWING_ROWS = {
    1: StepRow(1, 1, "done", 200, "{}"),
    2: StepRow(2, 2, "failed", 422, '{"message": "No money."}'),
}
HOSTILE = 'x"]; click s1 call alert(1)\n<script>&\x1b[31m'


def spec(*names: str, parallel: bool = False) -> Spec:
    steps = tuple(StepSpec("BOOK", "/rooms", name=name, compensate=StepSpec("CANCEL", "/rooms")) for name in names)
    authority = Authority(agent_id="a" * 64, scopes=(), headers={})
    return Spec(method="CHAIN", steps=steps, authority=authority, deadline=1e12, parallel=parallel)


def texts(svg: str) -> list[str]:
    return [text for element in ElementTree.fromstring(svg).iter() if (text := (element.text or "").strip())]


def test_picture_has_a_box_with_the_state_of_every_step_also_for_a_thousand() -> None:
    shown = texts(draw_svg(RECORD, spec("book", "pay", "tell"), WORKFLOW_DRAWING_ROWS))
    assert [text for text in shown if text in ("done", "failed", "pending")] == ["failed", "done", "failed", "pending"]
    assert "2  pay: BOOK /rooms" in shown
    assert "422  attempt 2 · undone by CANCEL /rooms" in shown
    assert draw_svg(RECORD, spec(*map(str, range(1000))), {}).count(">pending<") == 1000


def test_a_batch_branches_from_its_beginning() -> None:
    assert draw_svg(RECORD, spec("a", "b", parallel=True), {}).count("M24 ") == 2
    assert [edge for edge in draw_mermaid(spec("a", "b", parallel=True), {}) if "-->" in edge] == [
        "  s0 --> s1",
        "  s0 --> s2",
    ]


def test_a_flowchart_follows_the_steps() -> None:
    drawn = list(draw_mermaid(spec("book", "pay"), WORKFLOW_DRAWING_ROWS))
    assert drawn[2:6] == [
        '  s1["book: BOOK /rooms<br/>done"]:::done',
        "  s0 --> s1",
        '  s2["pay: BOOK /rooms<br/>failed"]:::failed',
        "  s1 --> s2",
    ]


@pytest.mark.parametrize("name", [HOSTILE, HOSTILE * 50, "\u202e", "]]>"])
def test_names_stay_text_in_every_form(name: str) -> None:
    hostile = spec(name)
    svg = draw_svg(RECORD, hostile, {})
    assert {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()} <= {
        *("svg", "title", "rect", "text", "path")
    }
    [label] = [drawn for drawn in draw_mermaid(hostile, {}) if drawn.startswith("  s1[")]
    assert re.fullmatch(r'  s1\["[^"<>]*<br/>pending"\]:::pending', label)
    assert all(drawn.plain.isprintable() for drawn in draw_lines(RECORD, hostile, {}))
