"""Requests to A2A agents by JSON-RPC, in the forms of A2A 1.0 and 0.3, and what their answers say of a task."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.agent.client.errors import Reply, UnreachableError
from bespeak.agent.discovery.agent_card import AgentInterface
from bespeak.errors import RemoteProtocolError
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.text.diagnostics.diagnostic import printable
from bespeak.text.reading.table import as_list, as_mapping, as_text

_LONGEST_QUOTE: Final = 1_000  # characters of a text of the agent in a message
_LONGEST_ID: Final = 200
_WORKING: Final = ("submitted", "working")
_ENDS: Final = {  # status, code, and how a message begins, by the state of a task that is not completed
    "failed": (status.SERVER_ERROR, "task-failed", "has failed"),
    "rejected": (status.UNPROCESSABLE, "task-rejected", "is rejected by the agent"),
    "canceled": (status.CONFLICT, "task-canceled", "is cancelled"),
    "input-required": (status.UNPROCESSABLE, "input-required", "waits for more input; call again with all of it"),
    "auth-required": (status.UNAUTHORIZED, "auth-required", "waits for authority that the agent lacks"),
}
_REFUSALS: Final = {-32602: status.UNPROCESSABLE, -32001: status.NOT_FOUND}  # by the codes of JSON-RPC and A2A


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What an agent has answered: a message, or a task in some state."""

    text: str
    data: list[Any]
    files: list[dict[str, Any]]
    task_id: str = ""  # empty for a message
    state: str = "completed"  # as A2A 0.3 writes it: `input-required`

    @property
    def is_working(self) -> bool:
        return self.state in _WORKING

    def outcome(self) -> dict[str, Any] | Refused:
        """Return the output of a call, or why there is none. Texts of the agent are quoted: they are data."""
        task = {"task_id": self.task_id, "state": self.state} if self.task_id else {}
        if self.state == "completed":
            members = {"text": self.text, "data": self.data, "files": self.files, **task}
            return {name: value for name, value in members.items() if value or name == "text"}
        unknown = (status.SERVER_ERROR, "task-unknown", f'is in the unknown state "{self.state}"')
        number, code, ended = _ENDS.get(self.state, unknown)
        message = f"Task {self.task_id} {ended}.{_quoted(self.text)}"
        return Refused(number, code, message, {**task, **({"data": self.data} if self.data else {})})


class Requests:
    """The requests of one call. Their form is that of the interface; the message has one id, whatever is asked."""

    def __init__(self, interface: AgentInterface, message_id: str | None = None) -> None:
        self._is_legacy = interface.is_legacy
        self._id = message_id or str(uuid.uuid4())
        self.headers = {} if self._is_legacy else {"A2A-Version": "1.0"}

    def send(self, text: str, skill: str) -> dict[str, Any]:
        """Build the message. The agent is to answer at once: an agent that is waited for tells no task id."""
        legacy = self._is_legacy
        message: dict[str, Any] = {
            "messageId": self._id,
            "role": "user" if legacy else "ROLE_USER",
            "parts": [{"kind": "text", "text": text} if legacy else {"text": text}],
            # A2A has no place for it: the agent decides by the text what to do.
            "metadata": {"skill": skill},
            **({"kind": "message"} if legacy else {}),
        }
        at_once = {"historyLength": 0, **({"blocking": False} if legacy else {"returnImmediately": True})}
        method = "message/send" if legacy else "SendMessage"
        return self._rpc(method, {"message": message, "configuration": at_once})

    def look(self, task_id: str) -> dict[str, Any]:
        """Build the question about a task."""
        return self._rpc("tasks/get" if self._is_legacy else "GetTask", {"id": task_id, "historyLength": 0})

    def read(self, reply: Reply) -> AgentAnswer | Refused | Reply:
        """Read an answer; return a refusal of the agent, or that of its server as it is. Raises UnreachableError."""
        if not reply.ok:
            return reply
        try:
            body = as_mapping(reply.json())
        except RemoteProtocolError as error:
            raise UnreachableError(f"The answer of the agent cannot be read: {error}") from error
        if refused := as_mapping(body.get("error")):
            code = refused.get("code")
            number = _REFUSALS.get(code, status.SERVER_ERROR) if isinstance(code, int) else status.SERVER_ERROR
            told = f"The agent refuses the request.{_quoted(as_text(refused.get('message')))}"
            return Refused(number, "agent-refused", told, {"rpc_code": code})
        result = as_mapping(body.get("result"))
        task = as_mapping(result.get("task")) or (result if "status" in result else {})
        message = as_mapping(result.get("message")) or result
        if not task and "parts" in message:
            return _answer(as_list(message["parts"]))
        task_id = as_text(task.get("id"))
        if not 0 < len(task_id) <= _LONGEST_ID or not task_id.isprintable():
            raise UnreachableError("The answer of the agent is neither a message nor a task with an id.")
        ended = as_mapping(task.get("status"))
        state = as_text(ended.get("state"))[:40].lower().removeprefix("task_state_").replace("_", "-")
        said = as_list(as_mapping(ended.get("message")).get("parts"))
        made = [part for one in as_list(task.get("artifacts")) for part in as_list(as_mapping(one).get("parts"))]
        # What a task has made is its output; what its status says is about how it ended.
        return _answer(made if made and state == "completed" else said, task_id, printable(state))

    def _rpc(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}


def _answer(listed: list[Any], *task: str) -> AgentAnswer:
    parts = [as_mapping(part) for part in listed]
    text = "\n".join(one["text"] for one in parts if isinstance(one.get("text"), str))
    files = [one for one in parts if not one.keys().isdisjoint(("url", "raw", "file"))]
    return AgentAnswer(text, [one["data"] for one in parts if "data" in one], files, *task)


def _quoted(text: str) -> str:
    return f' The agent says: "{printable(text[:_LONGEST_QUOTE])}"' if text else ""
