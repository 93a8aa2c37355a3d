"""The deployment under test: an endpoint whose effect cannot be undone, and an audit trail."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bespeak.state.identity.jws import generate_key, private_text

AGENT: Final = "a" * 64
EFFECTS: Final = "effects.log"
"""File with the effects of steps outside the store: a line with the key of the step and its mark."""
LEASE: Final = 1
"""Lease in seconds; the minimum, so that another process soon takes over a request whose process was killed."""

_CONFIGURATION = """
[server]
server_id = "faults.example"
operator = "Fault Air"
contact = "desk@faults.example"
{server}
[idempotency]
lease = {lease}

[methods]
enable = ["CHAIN", "BATCH", "LOG"]
"""

_SIGNING = 'signing_key = "server.pem"'
_AUDIT = """
[audit]
enabled = true
checkpoint_every = 50
"""

_SEAT = """
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

_TAXI = """
[endpoint]
method = "BOOK"
path = "/taxi"
description = "Reserve a taxi."
namespace = "taxis"
errors = []

[endpoint.semantic]
intent = "Reserve a taxi for a passenger."
actor = "agent"
outcome = "A taxi is reserved."
capability = "transaction"
confidence = 0.9
impact = "reversible"
is_idempotent = false

[[endpoint.input.required]]
name = "mark"
type = "string"

[[endpoint.output]]
name = "mark"
type = "string"

[endpoint.handler]
type = "registered_function"
function = "desk.book_taxi"
"""

# Every run of the handler makes another ticket, so that an answer tells which run it comes from. It takes a moment, in
# which its process can be killed or stopped.
_DESK = """
import asyncio
import os
import random
import uuid

from bespeak import Context

LOG = os.path.join(os.path.dirname(__file__), "effects.log")


async def book_seat(passenger: str) -> dict[str, str]:
    await asyncio.sleep(random.random() * 0.005)
    return {"ticket_id": str(uuid.uuid4()), "passenger": passenger}


async def book_taxi(mark: str, context: Context) -> dict[str, str]:
    line = context.request.headers["idempotency-key"] + "\\t" + mark + "\\n"
    log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line.encode())
    os.close(log)
    await asyncio.sleep(random.random() * 0.01)
    return {"mark": mark}
"""


def write_deployment(folder: Path, *, audited: bool = True) -> Path:
    """Write the deployment into a new folder; `audited` records and signs every response."""
    (folder / "endpoints").mkdir(parents=True)
    configuration = _CONFIGURATION.format(server=_SIGNING if audited else "", lease=LEASE)
    if audited:
        (folder / "server.pem").write_text(private_text(generate_key()), "utf-8")
        configuration += _AUDIT
    (folder / "bespeak.toml").write_text(configuration, "utf-8")
    (folder / "endpoints" / "book-seat.toml").write_text(_SEAT, "utf-8")
    (folder / "endpoints" / "book-taxi.toml").write_text(_TAXI, "utf-8")
    (folder / "desk.py").write_text(_DESK, "utf-8")
    return folder
