"""What a task tells its caller: its state, words for people, data for programs, and the output as an artifact."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec
from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.types import Artifact, Message, Part, Role, Task, TaskState
from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]  # protobuf has no annotations

from bespeak.contract.mcp_tool import Granting, error_members
from bespeak.contract.schema.validation import is_within
from bespeak.faces.a2a.skills import Skill, write_large
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.exchange.refusal import Outcome
from bespeak.state.store.commands.a2a_tasks import FINISHED, WAITING, WORKING

WAITING_STATES: Final = frozenset({TaskState.TASK_STATE_AUTH_REQUIRED, TaskState.TASK_STATE_INPUT_REQUIRED})
MOST_KEPT: Final = 256 * 1024  # bytes of a task in the store; a larger output is only sent to the caller that waits
_MOST_VALUES: Final = 10_000  # In a data part: Protobuf needs 10 µs for each, so a larger output is a text.
_LACKING: Final = frozenset({status.AUTHORIZATION_REQUIRED, status.UNAUTHORIZED, status.SCOPE_VIOLATION})
"""Statuses after which nothing was done, and the same call may succeed with other authority."""
_GRANTING: Final = Granting(
    scopes=lambda _: "then send a message with this taskId", identity="then send a message with this taskId"
)


def new_task(message: Message, skill: Skill) -> Task:
    task = Task(id=str(uuid.uuid4()), context_id=message.context_id or str(uuid.uuid4()))
    task.metadata.update({"skill": skill.name})
    remember(task, message)
    return task


def remember(task: Task, message: Message) -> None:
    """Append a message to the history of a task, unless it is too long."""
    if message.ByteSize() <= 64 * 1024:
        added = task.history.add()
        added.CopyFrom(message)
        added.task_id, added.context_id = task.id, task.context_id
        del task.history[:-20]


def tell(task: Task, state: TaskState, text: str = "", data: Any = None) -> None:
    """Set the status of a task. The message of the last one becomes history."""
    if task.status.HasField("message"):
        remember(task, task.status.message)
    task.status.Clear()
    task.status.state = state
    task.status.timestamp.GetCurrentTime()
    if text:
        task.status.message.CopyFrom(agent_message(task.context_id, text, data, task_id=task.id))


def tell_progress(task: Task, done: float, total: float | None, message: str | None) -> None:
    amount = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    news = {"done": done, **({} if total is None else {"total": total}), **({"message": message} if message else {})}
    tell(task, TaskState.TASK_STATE_WORKING, ": ".join(filter(None, (amount, message))), {"progress": news})


def agent_message(context_id: str, text: str, data: Any = None, *, task_id: str = "") -> Message:
    """Make a message of the agent: words, and data if there are any."""
    parts = [new_text_part(text)]
    if data is not None:
        parts.append(_data_part(data))
    return Message(
        message_id=str(uuid.uuid4()), context_id=context_id, task_id=task_id, role=Role.ROLE_AGENT, parts=parts
    )


def stage_of(task: Task) -> str:
    if task.status.state in WAITING_STATES:
        return WAITING
    return WORKING if task.status.state == TaskState.TASK_STATE_WORKING else FINISHED


def add_items(task: Task, items: list[bytes], *, as_text: bool) -> None:
    """Add items to the output of a call that is not complete; the complete output replaces them."""
    if not task.artifacts:
        task.artifacts.append(Artifact(artifact_id="output", name="output"))
    write = _text_part if as_text else _data_part
    task.artifacts[0].parts.extend(write(msgspec.json.decode(item)) for item in items)


def complete(task: Task, outcome: Outcome, *, as_text: bool) -> None:
    _note_mapping(task, outcome)
    output = outcome.output
    part = _text_part(output) if as_text or isinstance(output, str) else _data_part(output)
    task.artifacts.append(Artifact(artifact_id="output", name="output", parts=[part]))
    tell(task, TaskState.TASK_STATE_COMPLETED, outcome.warning or "")


def refuse(task: Task, skill: Skill, outcome: Outcome) -> None:
    """Tell that a call was refused or failed, and what can be done about it."""
    _note_mapping(task, outcome)
    error = error_members(skill.endpoint, outcome, _GRANTING)
    ended = TaskState.TASK_STATE_FAILED if outcome.status >= status.SERVER_ERROR else TaskState.TASK_STATE_REJECTED
    state = TaskState.TASK_STATE_AUTH_REQUIRED if outcome.status in _LACKING else ended
    tell(task, state, _words(error), {"error": error})


def _note_mapping(task: Task, outcome: Outcome) -> None:
    if outcome.mapping is not None:
        task.metadata.update({"semantic_mapping": outcome.mapping})


def require_input(task: Task, skill: Skill, outcome: Outcome) -> None:
    """Tell what is wrong with the arguments; the caller can send others."""
    error = error_members(skill.endpoint, outcome, _GRANTING)
    text = f'{_words(error)} Send a message with this taskId and a data part {{"input": {{...}}}}.'
    tell(task, TaskState.TASK_STATE_INPUT_REQUIRED, text, {"error": error, "skill": skill.entry})


def require_confirmation(task: Task, question: str, command: str, case_id: str) -> None:
    """Ask for a person's confirmation, which no message can give (A2A 1.0, 7.6)."""
    error = {
        "code": "confirmation-required",
        "message": "A person must confirm this call. No message of a client confirms it.",
        "confirmation_id": case_id,
        "remedy": command,
    }
    tell(task, TaskState.TASK_STATE_AUTH_REQUIRED, f"{question}\n\n{error['message']} {command}", {"error": error})


def bounded(task: Task) -> Task:
    """Return the task as it is kept: without an output that is too large."""
    if task.ByteSize() <= MOST_KEPT:
        return task
    kept = deepcopy(task)
    kept.ClearField("artifacts")
    text = f"The output is larger than {MOST_KEPT // 1024} KiB. It was sent to the caller that waited, and is not kept."
    tell(kept, task.status.state, text)
    return kept


def _words(error: Mapping[str, Any]) -> str:
    return " ".join(str(error[name]) for name in ("message", "remedy") if error.get(name))


def _data_part(value: Any) -> Part:
    if not is_within(value, parts=_MOST_VALUES, characters=MOST_KEPT):
        return _text_part(value)
    try:
        return new_data_part(write_large(value), MEDIA_JSON)
    except ParseError:  # nested deeper than protobuf reads
        return _text_part(value)


def _text_part(value: Any) -> Part:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return new_text_part(text, None if isinstance(value, str) else MEDIA_JSON)
