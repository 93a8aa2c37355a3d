"""The deployment that is put through faults: one endpoint that cannot be undone, one that needs no state."""

from __future__ import annotations

from pathlib import Path
from typing import Final

AGENT: Final = "a" * 64

_CONFIGURATION = """
[server]
server_id = "faults.example"
operator = "Fault Air"
contact = "desk@faults.example"

[policies]
scope_required_for_invocation = false

[idempotency]
# As short as can be: a request whose process was killed is soon taken over by another one.
lease = 1
"""

_BOOK = """
[endpoint]
method = "BOOK"
path = "/seat"
description = "Reserve a seat for a passenger."
namespace = "seats"
errors = []

[endpoint.semantic]
intent = "Reserve a seat for a passenger."
actor = "agent"
outcome = "A seat is reserved and its ticket_id is returned."
capability = "transaction"
confidence = 0.9
impact = "irreversible"
is_idempotent = false

[[endpoint.input.required]]
name = "passenger"
type = "string"

[[endpoint.output]]
name = "ticket_id"
type = "string"

[[endpoint.output]]
name = "passenger"
type = "string"

[endpoint.handler]
type = "registered_function"
function = "desk.book_seat"
"""

_FIND = """
[endpoint]
method = "FIND"
path = "/seats"
description = "Find seats that are free."
namespace = "seats"
errors = []
input = {}

[endpoint.semantic]
intent = "Find seats that are free."
actor = "agent"
outcome = "The number of free seats is returned."
capability = "retrieval"
confidence = 0.9
impact = "informational"
is_idempotent = true

[[endpoint.output]]
name = "free"
type = "integer"

[endpoint.handler]
type = "registered_function"
function = "desk.find_seats"
"""

# Every run of the handler makes another ticket, so that an answer tells which run it comes from.
_DESK = """
import asyncio
import uuid


async def book_seat(passenger: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"ticket_id": str(uuid.uuid4()), "passenger": passenger}


def find_seats() -> dict[str, int]:
    return {"free": 7}
"""


def write_deployment(folder: Path, configuration: str = "") -> Path:
    """Write the deployment into a folder that is made, with more configuration behind its own."""
    (folder / "endpoints").mkdir(parents=True)
    (folder / "bespeak.toml").write_text(_CONFIGURATION + configuration, "utf-8")
    (folder / "endpoints" / "book-seat.toml").write_text(_BOOK, "utf-8")
    (folder / "endpoints" / "find-seats.toml").write_text(_FIND, "utf-8")
    (folder / "desk.py").write_text(_DESK, "utf-8")
    return folder
