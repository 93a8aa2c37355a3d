"""Single commands for tests: their result or Conflict; and a query that only tests need."""

from __future__ import annotations

from typing import Any

from bespeak.state.store.commands.sessions import Session
from bespeak.state.store.store import Command, Conflict, Result, Store, read_one


async def only(store: Store, command: Command) -> Any:
    """Return the result of a command, or its Conflict."""
    done = await store.do(command)
    return done if isinstance(done, Conflict) else done[0]


async def reason(store: Store, command: Command) -> str:
    """Return the reason of the Conflict in which a command ends."""
    conflict = await only(store, command)
    assert isinstance(conflict, Conflict)
    return conflict.reason


class ReadSession(Command, frozen=True):
    """Read a session that has not expired."""

    session_id: str

    def steps(self) -> Result[Session | None]:
        sql = f"SELECT {', '.join(Session.__struct_fields__)} FROM sessions WHERE session_id = ? AND expires > {{now}}"
        return read_one(Session, sql, self.session_id)
