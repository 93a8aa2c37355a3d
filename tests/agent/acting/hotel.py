"""A small hotel to give instructions to, inside this process, and agents of its guests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.agent.client.scripted import endpoint, manifest
from tests.service import AGENT

from bespeak import App, Refusal
from bespeak.agent.acting.decision import Decision
from bespeak.app.server.agent import Agent

NOW = datetime(2026, 11, 19, 9, 0, tzinfo=ZoneInfo("Europe/Zurich"))  # a Thursday


class Desk:
    """What the hotel was asked to do."""

    def __init__(self) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.stays: dict[str, str] = {}

    def note(self, what: str, **given: Any) -> None:
        self.done.append((what, given))


def hotel(desk: Desk, **options: Any) -> App:
    app = App(
        "Harbour Hotel", server_id="harbour.example", operator="Harbour", contact="desk@harbour.example", **options
    )

    @app.endpoint("FIND", "/rooms", impact="informational", confidence=0.95)
    def find_rooms(beds: int = 1) -> dict[str, list[dict[str, Any]]]:
        """Find rooms with a number of beds.

        Outcome: The rooms are listed.
        """
        desk.note("find", beds=beds)
        return {"rooms": [{"room_id": "101", "beds": beds}, {"room_id": "102", "beds": beds}]}

    @app.endpoint(
        "BOOK",
        "/room",
        impact="irreversible",
        confidence=0.95,
        errors={"room_taken": "The room is taken."},
        state_transition={"stay.status": "NONE -> CONFIRMED"},
    )
    def book_room(room_id: str, nights: int) -> dict[str, Any]:
        """Book a room for a number of nights.

        Outcome: The room is booked.
        """
        if room_id == "taken":
            raise Refusal("room_taken", "The room is taken.")
        desk.note("book", room_id=room_id, nights=nights)
        return {"stay_id": "S1", "status": "CONFIRMED"}

    @app.endpoint("MODIFY", "/wake-up-call", impact="reversible", confidence=0.95)
    def modify_call(room_id: str) -> dict[str, Any]:
        """Modify the wake-up call of a room.

        Outcome: The wake-up call is modified.
        """
        desk.note("wake", room_id=room_id)
        return {"room_id": room_id}

    return app


class Guest:
    """What a guest was asked, and the answers."""

    def __init__(self, *, agrees: bool = True, grants: bool = True, **answers: Any) -> None:
        self.agrees = agrees
        self.grants = grants
        self.answers = answers
        self.asked: list[str] = []
        self.shown: list[str] = []
        self.scopes: list[tuple[str, ...]] = []

    def confirm(self, question: Any) -> bool:
        self.shown.append(question.text)
        return self.agrees

    def ask(self, asked: Any) -> Any:
        self.asked.append(asked.name)
        return self.answers.get(asked.name or "which")

    def step_up(self, place: Any, scopes: tuple[str, ...]) -> bool:
        self.scopes.append(scopes)
        return self.grants

    def functions(self) -> dict[str, Any]:
        return {"confirm": self.confirm, "ask": self.ask, "step_up": self.step_up}


@asynccontextmanager
async def staying(desk: Desk, guest: Guest | None = None, **options: Any) -> AsyncIterator[Agent]:
    """Return an agent of a guest of the hotel; without a guest nobody can be asked."""
    asking = {} if guest is None else guest.functions()
    async with Agent([hotel(desk)], now=NOW, agent_id=AGENT, **asking, **options) as agent:
        yield agent


async def decide_on(agent: Agent, method: str, instruction: str) -> Decision:
    """Decide about an endpoint that the user has chosen: what is tested is not the match."""
    [place] = agent.service_map.find(method)
    return await agent.decide(instruction, place=place)


def contract(method: str, path: str, **changes: Any) -> dict[str, Any]:
    """Return an endpoint of a scripted service; `impact` and others are of its semantic block."""
    made = endpoint(method, path, is_idempotent=changes.pop("is_idempotent", False))
    verb, noun = method.capitalize(), path.strip("/").replace("/", " ")
    semantic = {**made["semantic"], "intent": f"{verb} a {noun}.", "outcome": f"The {noun} is listed or changed."}
    semantic |= {
        name: changes.pop(name) for name in ("intent", "impact", "state_transition", "capability") if name in changes
    }
    properties = changes.pop("properties", {})
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    schema["required"] = changes.pop("required", [])
    return {**made, "semantic": semantic, "description": semantic["intent"], "input_schema": schema, **changes}


def served(*endpoints: dict[str, Any], **members: Any) -> dict[str, Any]:
    return manifest(*endpoints, versions=("1.1.0",), **members)
