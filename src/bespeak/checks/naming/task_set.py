"""Task sets: endpoints that are named in several ways, and requests of which each means one of them."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from bespeak.contract.grammar.syntax import check_structure
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.rules import DUPLICATE, WRONG_VALUE
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table

MOST_ENDPOINTS: Final = 500
MOST_REQUESTS: Final = 50  # of an endpoint
LONGEST: Final = 1_000  # characters of a text
_HTTP: Final = "GET|POST|PUT|PATCH|DELETE"
_FORMS: Final = {
    "intent": (re.compile(rf"(?!(?:{_HTTP}) )[A-Z]{{2,32}} (/\S*)"), "a verb in capitals with a path, like BOOK /room"),
    "http": (re.compile(rf"(?:{_HTTP}) (/\S*)"), "a method of HTTP with a path, like POST /bookings"),
    "function": (
        re.compile(r"(?:create|get|list|update|delete)(?:_[a-z][a-z0-9]*)+()"),
        "create, get, list, update or delete with a noun, like create_booking",
    ),
}
NAMINGS: Final = ("intent", "http-verb", "http", "function")
"""Ways of naming. `http-verb` has the HTTP method before the path of the intent: only the verb differs."""


class NamedEndpoint(NamedTuple):
    """An endpoint with its names, and what people say who mean it."""

    intent: str
    http: str
    function: str
    description: str
    requests: tuple[str, ...]

    def named(self, naming: str) -> tuple[str, str, str]:
        """Return the name that is shown, its verb and its path."""
        path = self.intent.partition(" ")[2]
        name: str = f"{self.http.split()[0]} {path}" if naming == "http-verb" else getattr(self, naming)
        verb, _, rest = name.partition("_" if naming == "function" else " ")
        return name, verb, f"/{rest.removeprefix('/')}"


TaskSet = tuple[NamedEndpoint, ...]  # the endpoints of a service


def bundled_sets() -> list[TaskSet]:
    """Read the task sets of the package."""
    found = sorted(files(__package__).joinpath("data").iterdir(), key=lambda one: one.name)
    tables = [toml_table(file.read_text(encoding="utf-8"), file.name) for file in found]
    return [_read(table) for table in tables if isinstance(table, Table)]


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
    table.need_text("service", 'Name the service: service = "hotel".')
    table.text("description")
    rows = table.tables("endpoints")
    if not 2 <= len(rows) <= MOST_ENDPOINTS:
        table.error(WRONG_VALUE, "endpoints", f"a task set has 2 to {MOST_ENDPOINTS} endpoints; got {len(rows)}")
    known: set[str] = set()
    found = tuple(_read_endpoint(row, known) for row in rows[:MOST_ENDPOINTS])
    table.finish()
    return found


def _read_endpoint(row: Table, known: set[str]) -> NamedEndpoint:
    names = {naming: row.need_text(naming) for naming in _FORMS}
    for naming, name in names.items():
        form, wanted = _FORMS[naming]
        if name and ((match := form.fullmatch(name)) is None or (match[1] and check_structure(match[1]))):
            row.error(WRONG_VALUE, naming, f"`{naming}` is {brief(name)}, not {wanted}")
        if name and f"{naming} {name}" in known:
            row.error(DUPLICATE, naming, f"{brief(name)} is the name of two endpoints", "Give each its own name.")
        known.add(f"{naming} {name}")
    description, requests = row.need_text("description"), row.texts("requests")
    if not 1 <= len(requests) <= MOST_REQUESTS:
        row.error(WRONG_VALUE, "requests", f"an endpoint has 1 to {MOST_REQUESTS} requests; got {len(requests)}")
    for key, text in (("description", description), *(("requests", one) for one in requests)):
        if len(text) > LONGEST or (key == "requests" and not text.strip()):
            row.error(WRONG_VALUE, key, f"a text has 1 to {LONGEST} characters; got {len(text)}: {brief(text)}")
    row.finish()
    return NamedEndpoint(**names, description=description, requests=requests)
