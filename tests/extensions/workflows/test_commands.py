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

from bespeak.extensions.workflows.commands import workflows
from bespeak.extensions.workflows.schedules import Schedule
from bespeak.extensions.workflows.spec import Spec, StepSpec, encode
from bespeak.extensions.workflows.start import read_steps
from bespeak.extensions.workflows.store import JournalSteps, ReadSteps, StepRow
from bespeak.extensions.workflows.timeline import draw_lines, draw_mermaid, draw_svg, list_entries, write_duration
from bespeak.protocol.exchange.refusal import Fault
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
HOSTILE = 'x"]; click s1 call alert(1)\n<script>&\x1b[31m'


def spec(*names: str, parallel: bool = False) -> Spec:
    steps = tuple(StepSpec("BOOK", "/rooms", name=name, compensate=StepSpec("CANCEL", "/rooms")) for name in names)
    authority = Authority(agent_id="a" * 64, scopes=(), headers={})
    return Spec(method="CHAIN", steps=steps, authority=authority, deadline=1e12, parallel=parallel)


def texts(svg: str) -> list[str]:
    return [text for element in ElementTree.fromstring(svg).iter() if (text := (element.text or "").strip())]


def test_picture_has_a_row_with_the_state_of_every_step_also_for_a_thousand() -> None:
    shown = texts(draw_svg(RECORD, spec("book", "pay", "tell"), ROWS))
    states = ("done", "failed", "pending")
    assert [text for text in shown if text.startswith(states)] == [
        *("failed", "done · 200", "failed · 422  attempt 2", "pending")
    ]
    assert "2  pay: BOOK /rooms" in shown
    assert "No money.; undo: CANCEL /rooms" in shown
    assert draw_svg(RECORD, spec(*map(str, range(1000))), []).count(">pending<") == 1000


def test_a_batch_branches_from_its_beginning() -> None:
    assert [edge for edge in draw_mermaid(spec("a", "b", parallel=True), []) if "-->" in edge] == [
        "  s0 --> s1",
        "  s0 --> s2",
    ]


def test_a_flowchart_follows_the_steps() -> None:
    drawn = list(draw_mermaid(spec("book", "pay"), ROWS))
    assert drawn[2:6] == [
        '  s1["book: BOOK /rooms<br/>done"]:::done',
        "  s0 --> s1",
        '  s2["pay: BOOK /rooms<br/>failed"]:::failed',
        "  s1 --> s2",
    ]


@pytest.mark.parametrize("name", [HOSTILE, HOSTILE * 50, "\u202e", "]]>"])
def test_names_stay_text_in_every_form(name: str) -> None:
    hostile = spec(name)
    svg = draw_svg(RECORD, hostile, [])
    assert {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()} <= {
        *("svg", "title", "rect", "text", "path", "circle")
    }
    [label] = [drawn for drawn in draw_mermaid(hostile, []) if drawn.startswith("  s1[")]
    assert re.fullmatch(r'  s1\["[^"<>]*<br/>pending"\]:::pending', label)
    assert all(drawn.plain.isprintable() for drawn in draw_lines(RECORD, hostile, []))


INNER = 1 << 21


def row(number: int, asked: str, began: float, ended: float | None, state: str = "done", **more: Any) -> StepRow:
    """Return what a function has awaited, with times in seconds since its beginning."""
    times = {"began": 1.0 + began, "ended": None if ended is None else 1.0 + ended}
    return StepRow(number, **{"attempt": 1, "code": 0, "output": "null", **more}, state=state, asked=asked, **times)


FUNCTION = Spec("RUN", (), SPEC.authority, 1e12, given={"guest_id": "77"}, name="trip", workflow="trip")
LATE = Record("run-1", "workflow", AGENT, None, "failed", 3, "{}", 1.0, 9.0, None, 0, NEVER)


def test_timeline_shows_durations_waits_and_attempts_of_a_function() -> None:
    drawn = draw_lines(
        LATE,
        FUNCTION,
        [
            row(1, "BOOK /room", 0.0, 2.0, code=200, undo='{"method": "CANCEL", "path": "/room/7"}'),
            row(2, "sleep", 2.0, 6.0),
            row(3 * INNER + 1, "step \x1b[31mpay", 6.0, 7.0, attempt=3),
            row(4, "wait payment", 7.0, 8.0, "failed", output='{"code": "timeout", "message": "Nothing came."}'),
            StepRow(0, 1, "failed", 504, '{"message": "Nothing came."}', "end"),
            StepRow(-1, 1, "arrived", 0, "null", "other"),
        ],
    )
    assert [text.plain for text in drawn][1:] == [
        f"  RUN trip by {AGENT}, begun 1970-01-01T00:00:01Z, 8.0 s",
        "    1  done      ██████                    BOOK /room  200  2.0 s",
        "       undo: CANCEL /room/7",
        "    2  done            ············        sleep  4.0 s",
        "  3.1  done                        ███       step \\x1b[31mpay  attempt 3  1.0 s",
        "    4  failed                         ···  wait payment  1.0 s",
        "       Nothing came.",
    ]


def test_timeline_names_the_steps_inside_others_as_they_were_written() -> None:
    booked = {"name": "room", "method": "BOOK", "path": "/rooms", "undo": {"method": "CANCEL", "path": "/rooms"}}
    each = {"for_each": {"items": [1, 2], "steps": [booked, {"delay": 3}]}}
    steps = read_steps([{"name": "both", "together": [{"method": "FIND", "path": "/rooms"}, each]}])
    assert not isinstance(steps, Fault)
    element, inside = 1 * INNER + 2, (1 * INNER + 2) * INNER
    lines = [
        row(1, "together", 0.0, 8.0),
        row(1 * INNER + 1, "FIND /rooms", 0.0, 1.0),
        row(element, "for_each", 0.0, 8.0),
        row(inside | 1, "BOOK /rooms", 0.0, 1.0, "undone"),
        row(inside | 1 << 7 | 2, "delay", 2.0, 8.0),
    ]
    spec = Spec("CHAIN", steps, SPEC.authority, 1e12)
    assert [text.plain for text in draw_lines(LATE, spec, lines)][2:] == [
        "        1  done      ████████████████████████  both: together  8.0 s",
        "      1.1  done      ███                         FIND /rooms  1.0 s",
        "      1.2  done      ████████████████████████    for_each  8.0 s",
        "  1.2.0:1  undone    ███                           room: BOOK /rooms  1.0 s",
        "               undo: CANCEL /rooms",
        "  1.2.1:2  done            ··················      delay  6.0 s",
    ]
    assert "1.2.1:2  delay" in draw_svg(LATE, spec, lines)


def test_ten_thousand_mapped_rows_are_one_line_with_their_states_and_one_reason() -> None:
    refused = {"state": "failed", "output": '{"message": "The card was refused."}'}
    mapped = [
        row(2 * INNER + k, "step charge", 1.0, 3.0, **(refused if k % 1000 == 0 else {})) for k in range(1, 10_001)
    ]
    branches = [
        row((3 * INNER + k) * INNER + j, f"step {name}", 3.0, 4.0)
        for k in range(1, 101)
        for j, name in enumerate(("pack", "send"), 1)
    ]
    found = list_entries(FUNCTION, [row(1, "now", 0.0, 0.0), *mapped, *branches])
    assert [(entry.number, entry.label, entry.state) for entry in found] == [
        ("1", "now", "done"),
        ("2.1", "10,000 × step charge", "failed"),
        ("3.1.1", "100 × step pack", "done"),
        ("3.1.2", "100 × step send", "done"),
    ]
    assert (found[1].outcome, found[1].reason) == (
        "  9,990 done, 10 failed, at most 2.0 s each",
        "The card was refused.",
    )
    assert draw_svg(LATE, FUNCTION, mapped).count("<circle") == 1


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(-1, "0 ms"), (0.25, "250 ms"), (59.94, "59.9 s"), (61, "1 min 1 s"), (7260, "2 h 1 min"), (90000, "1 d 1 h")],
)
def test_duration_is_written_in_its_largest_units(seconds: float, written: str) -> None:
    assert write_duration(seconds) == written


@pytest.fixture
def searched(deployment: Path) -> Path:
    """Add a function that has failed, and one that sleeps."""
    text = encode(FUNCTION).decode()
    do(
        deployment / "bespeak.db",
        PutRecord("run-1", "workflow", AGENT, "running", text, delay=60.0),
        JournalSteps("run-1", 0, (row(1, "BOOK /room", 0.0, 1.0), row(2, "step pay", 1.0, 2.0, "failed")), 60.0),
        JournalSteps("run-1", 0, (StepRow(0, 1, "failed", 500, "{}", "end"),), 60.0, "failed"),
        PutRecord("run-2", "workflow", AGENT, "sleeping", text.replace("77", "78"), delay=60.0),
    )
    return deployment


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--name", "trip"), ["run-1", "run-2"]),
        (("--name", "CHAIN", "--state", "failed"), ["chain-2"]),
        (("--input", "guest_id=78"), ["run-2"]),
        (("--input", "guest_id=78", "--input", "x=1"), []),
        (("--older", "2h"), []),
        (("--older", "0s", "--limit", "2"), ["chain-1", "chain-2"]),
        (("--state", "sleeping"), ["run-2"]),
    ],
)
def test_list_finds_workflows_by_name_age_and_input(
    searched: Path, options: tuple[str, ...], expected: list[str]
) -> None:
    found = json.loads(run("list", searched, "--json", *options).stdout)
    assert [one["workflow_id"] for one in found] == expected


def test_list_reads_page_after_page(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.workflows.commands._PAGE", 1)
    assert len(json.loads(run("list", searched, "--json", "--name", "trip").stdout)) == 2


@pytest.mark.parametrize("options", [("--older", "2 weeks"), ("--input", "guest_id")])
def test_filter_that_cannot_be_read_is_refused_with_an_example(searched: Path, options: tuple[str, ...]) -> None:
    result = run("list", searched, *options)
    assert (result.exit_code, "such as" in result.output) == (2, True)


def rows_of(deployment: Path, workflow: str) -> list[tuple[int, str]]:
    """Return number and state of the steps of a workflow."""
    found = do(deployment / "bespeak.db", ReadSteps(workflow))[0]
    return [(one.number, one.state) for one in found]


def test_retry_from_a_step_forgets_it_and_what_came_after(searched: Path) -> None:
    assert run("retry", "run-1", searched, "--from", 2).stdout == "run-1 runs again from step 2\n"
    assert rows_of(searched, "run-1") == [(1, "done")]
    assert run("retry", "chain-2", searched, "--from", 1).stdout == "chain-2 runs again from step 1\n"
    assert rows_of(searched, "chain-2") == []


def test_retry_from_a_step_that_has_not_begun_is_refused(searched: Path) -> None:
    refused = run("retry", "run-1", searched, "--from", 3).exception
    assert "run-1 has no step 3 that has begun" in str(refused)


def test_signal_is_left_for_the_workflow(searched: Path) -> None:
    assert run("signal", "run-2", "payment", '{"paid": true}', searched).stdout == "run-2 was sent payment\n"
    assert run("signal", "run-2", "note", "not json", searched).exit_code == 0
    found = do(searched / "bespeak.db", ReadSteps("run-2"))[0]
    assert [(one.asked, one.output) for one in found] == [("note", '"not json"'), ("payment", '{"paid":true}')]
    assert isinstance(run("signal", "run-9", "payment", "1", searched).exception, CommandFailedError)
    assert isinstance(run("signal", "run-1", "payment", "1", searched).exception, CommandFailedError), "it has ended"


def test_schedules_are_listed_paused_and_resumed(deployment: Path) -> None:
    assert run("schedules", "list", deployment).stdout == "no schedules\n"
    night = Schedule("close-day", "1 day at 02:00 Europe/Berlin", scopes=("ledger:close",)).resumed(0.0)
    data = encode(night).decode()
    do(
        deployment / "bespeak.db",
        PutRecord("schedule:close-day", "schedule", "s", "active", data, due=night.planned),
    )
    (found,) = json.loads(run("schedules", "list", deployment, "--json").stdout)["schedules"]
    assert (found["name"], found["state"], found["next"]) == ("close-day", "active", "1970-01-01T01:00:00Z")
    assert run("schedules", "pause", "close-day", deployment).stdout == "schedule close-day is paused\n"
    assert "paused" in run("schedules", "list", deployment).stdout
    assert isinstance(run("schedules", "pause", "close-day", deployment).exception, CommandFailedError)
    assert run("schedules", "resume", "schedule:close-day", deployment).exit_code == 0
    (found,) = json.loads(run("schedules", "list", deployment, "--json").stdout)["schedules"]
    assert found["next"] > "2025"
    assert isinstance(run("schedules", "pause", "tidy", deployment).exception, CommandFailedError)
