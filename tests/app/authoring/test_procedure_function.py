"""`@app.procedure` declares what RUN may run; mistakes raise at declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bespeak import App
from bespeak.errors import ContractError


def make_app() -> App:
    return App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@rooms.example")


def check(room: str) -> dict[str, str]:
    """Check a room."""
    return {"room": room}


def test_a_decorated_function_is_a_procedure() -> None:
    app = make_app()
    declared = app.procedure("check-room", idempotent=True, timeout=5, scopes=["rooms:check"])(check)
    (procedure,) = app.service().procedures
    assert declared is check
    assert (procedure.procedure_id, procedure.target, procedure.idempotent) == ("check-room", check, True)
    assert (procedure.timeout, procedure.scopes) == (5, ("rooms:check",))


def take(number: int) -> dict[str, int]:
    """Take a number."""
    return {"number": number}


@pytest.mark.parametrize(
    ("procedure_id", "function", "fields"),
    [
        ("rm -rf /", check, {}),
        ("taken", check, {}),
        ("check", check, {"input": {"type": "object", "properties": {"guest": {"type": "string"}}}}),
    ],
)
def test_a_mistake_raises(procedure_id: str, function: Callable[..., Any], fields: dict[str, Any]) -> None:
    app = make_app()
    app.procedure("taken")(take)
    with pytest.raises(ContractError, match="cannot be run"):
        app.procedure(procedure_id, **fields)(function)
    assert len(app.service().procedures) == 1
