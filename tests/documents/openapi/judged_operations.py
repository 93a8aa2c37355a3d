"""Operations that a person judged, in `judged_operations.txt`, and the judgement of the importer on each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.documents.openapi.reading import document, read

from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.adoption.facade import Facade
from bespeak.documents.openapi.facade import make_facades

TABLE: Final = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True, slots=True)
class Judged:
    """One operation with every answer that the person accepted."""

    method: str
    path: str
    name: str
    summary: str
    answers: tuple[str, ...]
    verbs: tuple[str, ...]
    impacts: tuple[str, ...]
    paths: tuple[str, ...]
    intent: tuple[str, ...]

    def wrong(self, facade: Facade) -> list[str]:
        """Name the parts in which an endpoint differs from the judgement."""
        endpoint = facade.endpoint
        semantic = endpoint.semantic
        intent = semantic.intent.lower()
        parts = {
            f"verb {endpoint.method}": endpoint.method in self.verbs,
            f"impact {semantic.impact}": semantic.impact in self.impacts,
            f"path {endpoint.path}": not self.paths or endpoint.path in self.paths,
            f"intent {semantic.intent!r}": all(word in intent for word in self.intent) and _is_prose(semantic.intent),
        }
        return [part for part, is_right in parts.items() if not is_right]

    @property
    def operation(self) -> dict[str, Any]:
        """The operation as a description has it."""
        given = {"operationId": self.name, "summary": self.summary}
        return {**{key: value for key, value in given.items() if value}, "responses": dict(map(_answer, self.answers))}


def _answer(written: str) -> tuple[str, dict[str, Any]]:
    status, shape = written[:3], written[3:]
    schema = {"type": "array", "items": {"type": "object"}} if shape == "[]" else {"type": "object"}
    content = {} if shape == "-" else {"content": {"application/json": {"schema": schema}}}
    return status, {"description": "An answer.", **content}


def _is_prose(intent: str) -> bool:
    """Return True if an intent has no brackets, no version and no joined words."""
    return re.search(r"\b[a-z]+[A-Z]|([A-Z][a-z]+){3}|[(){}_]|\bv[0-9]+\b", intent) is None


def read_table() -> list[list[Judged]]:
    """Read the judged operations, one list for each API."""
    groups: list[list[Judged]] = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            groups.append([])
        elif line and not line.startswith("#"):
            call, name, summary, *sets = (cell.strip() for cell in line.split("|"))
            method, path = call.split()
            groups[-1].append(Judged(method, path, name, summary, *(tuple(cell.split()) for cell in sets)))
    return groups


def judge_group(group: Sequence[Judged]) -> Iterator[tuple[Judged, Facade]]:
    """Import the operations of one API as one description."""
    paths: dict[str, dict[str, Any]] = {}
    for one in group:
        names = re.findall(r"\{([^{}]*)\}", one.path)
        parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
        paths.setdefault(one.path, {"parameters": parameters})[one.method.lower()] = one.operation
    facades, left_out = make_facades(read(document(paths))[0], load_bundled())
    assert not left_out, left_out
    found = {(facade.candidate.method, facade.candidate.path): facade for facade in facades}
    for one in group:
        yield one, found[one.method, one.path]
