"""Task sets: endpoints that are named in three ways, and requests of which each means one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from bespeak.contract.grammar.syntax import check_structure
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.rules import DUPLICATE, WRONG_VALUE
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table

MOST_ENDPOINTS: Final = 500  # of a file: a service with more is a task set that nobody has checked
MOST_REQUESTS: Final = 50  # of an endpoint
LONGEST: Final = 1_000  # characters of a text
_HTTP: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FUNCTIONS: Final = ("create", "get", "list", "update", "delete")
_VERB: Final = re.compile(r"[A-Z]{2,32}")
_FUNCTION: Final = re.compile(rf"(?:{'|'.join(_FUNCTIONS)})(?:_[a-z][a-z0-9]*)+")
_WRITTEN: Final = ("intent", "http", "function")  # names of an endpoint in a file
NAMINGS: Final = ("intent", "http-verb", "http", "function")
"""Ways of naming. `http-verb` has the HTTP method before the path of the intent: only the verb differs."""


class NamedEndpoint(NamedTuple):
    """An endpoint with its names, and what people say who mean it."""

    intent: str  # BOOK /room
    http: str  # POST /bookings
    function: str  # create_booking
    description: str
    requests: tuple[str, ...]

    def named(self, naming: str) -> tuple[str, str, str]:
        """Return the name that is shown, its verb and its path."""
        if naming == "http-verb":
            method, path = self.http.partition(" ")[0], self.intent.partition(" ")[2]
            return f"{method} {path}", method, path
        name: str = getattr(self, naming)
        verb, _, rest = name.partition("_" if naming == "function" else " ")
        return name, verb, f"/{rest.lstrip('/')}"


class TaskSet(NamedTuple):
    service: str
    endpoints: tuple[NamedEndpoint, ...]


def bundled_sets() -> list[TaskSet]:
    """Read the task sets of the package."""
    found: list[TaskSet] = []
    for file in sorted(files(__package__).joinpath("data").iterdir(), key=lambda one: one.name):
        table = toml_table(file.read_text(encoding="utf-8"), file.name)
        assert isinstance(table, Table)
        found.append(_read(table))
    return found


def read_task_set(path: Path) -> TaskSet | list[Diagnostic]:
    """Read a task set in TOML or JSON, or return what is wrong with it."""
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return [text]
    is_json = path.suffix.lower() == ".json"
    table = json_table(text.encode(), str(path)) if is_json else toml_table(text, str(path))
    if isinstance(table, Diagnostic):
        return [table]
    found = _read(table)
    return table.findings.found if table.findings.failed else found


def _read(table: Table) -> TaskSet:
    service = table.need_text("service", 'Name the service: service = "hotel".')
    table.text("description")
    rows = table.tables("endpoints")
    if not 2 <= len(rows) <= MOST_ENDPOINTS:
        table.error(WRONG_VALUE, "endpoints", f"a task set has 2 to {MOST_ENDPOINTS} endpoints; got {len(rows)}")
    endpoints = [_read_endpoint(row) for row in rows[:MOST_ENDPOINTS]]
    for naming in _WRITTEN:
        known: set[str] = set()
        for row, endpoint in zip(rows, endpoints, strict=False):
            if (name := getattr(endpoint, naming)) in known:
                row.error(DUPLICATE, naming, f"{name} is the name of two endpoints", "Give each a name of its own.")
            elif name:
                known.add(name)
    table.finish()
    return TaskSet(service, tuple(endpoints))


def _read_endpoint(row: Table) -> NamedEndpoint:
    names = {name: row.need_text(name) for name in _WRITTEN}
    for naming, text in names.items():
        if text and (wanted := _fault(naming, text)):
            row.error(WRONG_VALUE, naming, f"`{naming}` is {brief(text)}, not {wanted}")
    description, requests = row.need_text("description"), row.texts("requests")
    if not 1 <= len(requests) <= MOST_REQUESTS:
        message = f"an endpoint has 1 to {MOST_REQUESTS} requests; got {len(requests)}"
        row.error(WRONG_VALUE, "requests", message, 'Write what people say: requests = ["book me a room"].')
    for key, text in (("description", description), *(("requests", one) for one in requests)):
        if len(text) > LONGEST or (not text.strip() and key == "requests"):
            row.error(WRONG_VALUE, key, f"a text has 1 to {LONGEST} characters; got {len(text)}: {brief(text)}")
    row.finish()
    return NamedEndpoint(**names, description=description, requests=requests)


def _fault(naming: str, text: str) -> str:
    """Return what a name should look like; empty if it does."""
    method, _, path = text.partition(" ")
    if naming == "function":
        return "" if _FUNCTION.fullmatch(text) else f"one of {', '.join(_FUNCTIONS)} with a noun, like create_booking"
    if naming == "http":
        is_valid, wanted = method in _HTTP, f"one of {', '.join(_HTTP)} with a path, like POST /bookings"
    else:
        is_valid = _VERB.fullmatch(method) is not None and method not in _HTTP
        wanted = "a verb in capital letters with a path, like BOOK /room"
    return "" if is_valid and check_structure(path) is None else wanted


def requests_of(sets: list[TaskSet]) -> Iterator[tuple[int, int, str]]:
    """Yield each request with the places of its service and of the endpoint that it means."""
    for service, one in enumerate(sets):
        for place, endpoint in enumerate(one.endpoints):
            yield from ((service, place, request) for request in endpoint.requests)
