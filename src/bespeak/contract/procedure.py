"""Procedures: what RUN may run, because the operator has registered it (Tier 2 8.8, 10.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.settings import SCHEMA, setting
from bespeak.text.reading.table import Table

_ID: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
LONGEST_ID: Final = 128


def _read_steps(table: Table, key: str) -> tuple[Mapping[str, Any], ...]:
    table.check_json(key)
    return tuple(entry.data for entry in table.tables(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure that agents with the scope activation:run may run by its id."""

    procedure_id: str = setting("", "The id by which agents run it.", key="id", required=True)
    description: str = setting("", "What it does, for people.")
    function: str = setting("", "The function that does it, as module:function.")
    steps: tuple[Mapping[str, Any], ...] = setting(
        (), "The calls that do it, as the steps of CHAIN; `input` is its input.", kind="tables", read=_read_steps
    )
    input_schema: Mapping[str, Any] | None = setting(
        None,
        "The JSON Schema of its input. Without it: that of the parameters of the function.",
        kind="map",
        key="input",
        read=lambda table, key: table.json(key) if table.has(key) else None,
        format=SCHEMA,
    )
    idempotent: bool = setting(
        False, "True if it may run again after the server died while it ran. Without it, such a run fails."
    )
    timeout: float = setting(300.0, "Seconds that it may take.", kind="seconds", bounds=(0.1, 86400), security=True)
    scopes: tuple[str, ...] = setting((), "Scopes that running it takes beside activation:run.")
    errors: tuple[str, ...] = setting((), "Names of the errors that the function refuses with.")
    target: Callable[..., Any] | None = None  # the function itself, if the contract is written in Python
    overrides: Mapping[Any, Callable[..., Any]] | None = field(default=None, compare=False, repr=False)  # for tests

    def faults(self) -> list[str]:
        found = []
        if _ID.fullmatch(self.procedure_id) is None or len(self.procedure_id) > LONGEST_ID:
            found.append(f"the id must be lower-case words joined by . _ or -; got {brief(self.procedure_id)}")
        if bool(self.steps) == bool(self.function or self.target):
            found.append("it needs either a function or steps")
        if self.function and not self.target and self.function.count(":") != 1:
            found.append(f"`function` must be module:function; got {brief(self.function)}")
        return found


def find_repeated(procedures: Sequence[Procedure]) -> str | None:
    ids = [one.procedure_id for one in procedures]
    return next((one for one in ids if ids.count(one) > 1), None)
