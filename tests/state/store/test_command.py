"""Commands are values: frozen, comparable, and programs that do nothing until they are driven."""

from __future__ import annotations

import pytest

from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.store import Command, Conflict, Statement


def test_a_command_is_a_value_that_cannot_be_changed() -> None:
    command = UseNonce("k", "v", 60)
    assert command == UseNonce("k", "v", 60)
    with pytest.raises(AttributeError):
        command.value = "w"  # type: ignore[misc]


def test_steps_have_no_side_effects_and_can_be_run_again() -> None:
    command = UseNonce("k", "v", 60)
    for rows, result in (([(1,)], True), ([], Conflict("nonce-used"))):
        program = command.steps()
        step = next(program)
        assert isinstance(step, Statement)
        assert step.parameters == ("k", "v", 60)
        with pytest.raises(StopIteration) as end:
            program.send(rows)
        assert end.value.value == result


def test_command_is_neither_a_guard_nor_grouped_by_default() -> None:
    assert not Command.guards
    assert Command.grouping is None
    with pytest.raises(NotImplementedError):
        Command().steps()
