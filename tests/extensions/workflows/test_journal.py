"""Rows of steps that only read are written with the next one that changes something."""

from __future__ import annotations

from bespeak.extensions.workflows.journal import StepJournal, WorkflowJournal, answered
from bespeak.protocol.exchange.messages import Response
from bespeak.state.store.commands.steps import JournalSteps, StepRow

READ = StepRow(1, 1, "done", 200, "1")
CHANGE = StepRow(2, 1, "done", 0, "null")


def test_pending_rows_are_written_together_and_once() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    journal.add(READ)
    note = StepJournal(journal, CHANGE, "w-2", builtin=False)
    command = note.note(Response(200, b'{"x":2}'))
    assert command is not None
    assert (command.fence, command.rows) == (3, (READ, StepRow(2, 1, "done", 200, '{"x":2}')))
    assert journal.write().rows == ()
    assert journal.output(2) == {"x": 2}


def test_pending_rows_are_written_again_if_the_store_builds_the_commands_twice() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    journal.add(READ)
    note = StepJournal(journal, CHANGE, "w-2", builtin=False)
    first = note.note(Response(200, b"2"))
    assert first == note.note(Response(200, b"2"))
    assert first is not None
    assert len(first.rows) == 2


def test_the_last_step_ends_the_workflow() -> None:
    journal = WorkflowJournal("w", 0, 30.0)
    command = StepJournal(journal, CHANGE, "w-2", builtin=False, kept=9.0).note(Response(200, b"1"))
    assert isinstance(command, JournalSteps)
    assert (command.state, command.expected, command.kept) == ("completed", "running", 9.0)


def test_a_renewal_writes_no_rows() -> None:
    journal = WorkflowJournal("w", 0, 30.0)
    journal.add(READ)
    assert journal.renew().rows == ()


def test_the_next_claim_of_the_same_process_is_adopted() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    journal.adopt(4, "paused")
    assert (journal.fence, journal.state, journal.write().fence) == (4, "running", 4)


def test_nothing_is_noted_after_a_claim_of_another_process() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    journal.adopt(5, "running")
    assert (journal.state, journal.write().fence) == ("taken over", -1)


def test_a_claim_that_was_adopted_is_released_once() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    assert journal.release() is None
    journal.adopt(4, "cancelling")
    release = journal.release()
    assert release is not None
    assert (release.fence, release.state, release.delay) == (4, "cancelling", 0.0)
    assert (journal.release(), journal.write().fence) == (None, -1)


def test_a_failure_is_not_noted_by_the_step_itself() -> None:
    journal = WorkflowJournal("w", 0, 30.0)
    assert StepJournal(journal, CHANGE, "w-2", builtin=False).note(Response(503, b"{}")) is None
    assert journal.rows == {}


def test_the_state_of_the_workflow_is_taken_from_the_store() -> None:
    journal = WorkflowJournal("w", 0, 30.0)
    StepJournal(journal, CHANGE, "w-2", builtin=False).noted("paused", Response(200))
    assert journal.state == "paused"


def test_the_output_of_a_built_in_method_is_in_its_envelope() -> None:
    assert answered(Response(200, b'{"status":200,"result":{"a":1}}'), builtin=True) == '{"a":1}'
    assert answered(Response(200, b""), builtin=True) == "null"
