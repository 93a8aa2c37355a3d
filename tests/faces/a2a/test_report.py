"""What tasks tell: states, words, data, and outputs of any size."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.helpers.proto_helpers import get_data_parts
from a2a.types import Message, Part, Role, Task
from tests.cases import rows
from tests.faces.a2a.agent import error, output, state, words
from tests.service import echo, make_endpoint

from bespeak.faces.a2a import tasks
from bespeak.faces.a2a.skills import Skill, Skills
from bespeak.protocol.exchange.refusal import Outcome
from bespeak.state.store.commands.a2a_tasks import FINISHED, WAITING, WORKING

SENT = Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text="x")], context_id="talk")


def skill() -> Skill:
    return Skills([make_endpoint("FIND", "/rooms", echo)])["find_rooms"]


def task() -> Task:
    return tasks.new_task(SENT, skill())


def test_a_task_remembers_a_bounded_history_and_the_words_of_earlier_states() -> None:
    made = task()
    assert (made.context_id, made.metadata["skill"]) == ("talk", "find_rooms")
    assert [(each.message_id, each.task_id) for each in made.history] == [("m", made.id)]
    for number in range(50):
        tasks.remember(made, Message(message_id=str(number), role=Role.ROLE_USER, parts=[Part(text="x")]))
    tasks.remember(made, Message(message_id="long", role=Role.ROLE_USER, parts=[Part(text="x" * 100_000)]))
    assert [each.message_id for each in made.history] == [str(number) for number in range(30, 50)]
    made = task()
    tasks.require_input(made, skill(), Outcome(422, error={"code": "c", "message": "Wrong."}))
    (data,) = get_data_parts(made.status.message.parts)
    assert (state(made), data["skill"]["id"]) == ("input_required", "find_rooms")
    tasks.tell(made, tasks.TaskState.TASK_STATE_WORKING)
    assert tasks.stage_of(made) == WORKING
    assert made.history[-1].parts[0].text.startswith("Wrong.")


@rows(
    "output_, expected",
    ({"rooms": [1]}, {"rooms": [1.0]}),
    ([1, "a"], [1.0, "a"]),
    (None, None),
    ({"n": 2**60 + 1}, {"n": str(2**60 + 1)}),
)
def test_an_output_is_an_artifact(output_: Any, expected: Any) -> None:
    made = task()
    tasks.complete(made, Outcome(200, output_), as_text=False)
    assert (state(made), output(made)) == ("completed", expected)


@pytest.mark.parametrize("outcome", [Outcome(200, {}, mapping="m"), Outcome(500, error={"code": "x"}, mapping="m")])
def test_mapped_call_is_noted_in_the_metadata(outcome: Outcome) -> None:
    made = task()
    if outcome.ok:
        tasks.complete(made, outcome, as_text=False)
    else:
        tasks.refuse(made, skill(), outcome)
    assert made.metadata["semantic_mapping"] == "m"


def test_outputs_that_no_data_part_can_hold_are_texts() -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    made = task()
    tasks.complete(made, Outcome(200, deep), as_text=False)
    assert made.artifacts[0].parts[0].text.startswith("[[[")
    made = task()
    tasks.complete(made, Outcome(200, [1] * 10_001), as_text=False)
    assert made.artifacts[0].parts[0].text.startswith("[1,1,")
    assert made.artifacts[0].parts[0].media_type == "application/json"


def test_a_deprecation_is_told_and_a_large_output_is_not_kept() -> None:
    made = task()
    tasks.complete(made, Outcome(200, {}, warning="deprecated; successor=QUERY"), as_text=False)
    assert words(made) == "deprecated; successor=QUERY"
    made = task()
    tasks.complete(made, Outcome(200, {"x": "y" * tasks.MOST_KEPT}), as_text=False)
    kept = tasks.bounded(made)
    assert len(made.artifacts) == 1
    assert (len(kept.artifacts), state(kept)) == (0, "completed")
    assert "not kept" in words(kept)
    assert kept.ByteSize() < 10_000


@rows(
    "status, expected, stage",
    (262, "auth_required", WAITING),
    (401, "auth_required", WAITING),
    (455, "auth_required", WAITING),
    (422, "rejected", FINISHED),
    (429, "rejected", FINISHED),
    (500, "failed", FINISHED),
    (503, "failed", FINISHED),
)
def test_a_refusal_leaves_a_state_that_says_what_is_left_to_do(status: int, expected: str, stage: str) -> None:
    made = task()
    tasks.refuse(made, skill(), Outcome(status, error={"code": "c", "message": "No.", "digest": "x"}))
    assert (state(made), tasks.stage_of(made)) == (expected, stage)
    assert (words(made), sorted(error(made))) == (f"No. {error(made)['remedy']}", ["code", "message", "remedy"])
