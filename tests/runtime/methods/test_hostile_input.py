"""Every parameter of every standard method refuses what its schema excludes, and nothing is changed by that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.cases import check_each
from tests.service import Reply, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import FLOOR
from bespeak.contract.standard.methods import STANDARD, choose_methods
from bespeak.state.store.transfer import export_store

pytestmark = pytest.mark.anyio

ON_THE_FLOOR = {"EXECUTE", "PLAN", "NOTIFY", "SUSPEND"}
"""Floor methods that belong to the standard ones."""
METHODS = [
    *STANDARD.values(),
    *(method for method in FLOOR if method.name in ON_THE_FLOOR),
]
SCOPES = ", ".join(sorted({scope for method in METHODS for scope in method.scopes}))

DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]

HOSTILE: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "negative": -1,
    "huge number": 10**30,
    "fraction": 0.5,
    "no text": "",
    "long text": "x" * 5_000,
    "NUL": "a\x00b",
    "escape": "\x1b[2J",
    "line break": "a\nb",
    "NaN": "NaN",
    "list": [],
    "list of lists": [[[]]],
    "long list": [1] * 2_000,
    "object": {},
    "strange object": {"$from": "x", "__proto__": {"a": None}},
    "nested": DEEP,
}
RAW: Mapping[str, bytes] = {
    "NaN literal": b"NaN",
    "infinity": b"-Infinity",
    "exponent": b"1e999999",
    "half a surrogate": b'"\\ud800"',
    "not UTF-8": b'"\xff\xfe"',
    "very deep": b"[" * 20_000 + b"]" * 20_000,
}
SAMPLES: tuple[Any, ...] = ("x", "FETCH", "/news", "USD", "2099-01-01T00:00:00Z", "1", 1, 0.5, True, {}, [])


class Case(NamedTuple):
    """One request, and what it should be refused for."""

    method: StandardMethod
    place: str
    value: str
    reply: Reply

    def __str__(self) -> str:
        return f"{self.method.name} {self.place}={self.value}: {self.reply.status} {self.reply.json}"[:400]


def compiled(schema: Mapping[str, Any]) -> Validator:
    validator = compile_schema(schema)
    assert isinstance(validator, Validator)
    return validator


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a value that a schema accepts."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("properties"):
        return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
    if schema.get("type") == "array":
        return [sample(schema["items"])] * schema.get("minItems", 0)
    accepts = compiled(schema).is_valid
    return next(value for value in SAMPLES if accepts(value))


def least(method: StandardMethod) -> dict[str, Any]:
    """Return the smallest body that the schema of a method accepts."""
    return {name: sample(method.parameters[name]) for name in method.required}


def places(schema: Mapping[str, Any], place: str) -> Iterator[Place]:
    """Yield every place inside a value: its pointer, its schema, and what builds the value around another one."""
    yield place, schema, lambda value: value
    for name, inner in schema.get("properties", {}).items():
        around = {**sample(schema)}
        for deeper, its, build in places(inner, f"{place}/{name}"):
            yield (
                deeper,
                its,
                partial(lambda around, name, build, one: {**around, name: build(one)}, around, name, build),
            )
    for deeper, its, build in places(schema["items"], f"{place}/0") if "items" in schema else ():
        yield deeper, its, partial(lambda build, one: [build(one)], build)


Place = tuple[str, Mapping[str, Any], Callable[[Any], Any]]
Body = tuple[str, str, bytes]
"""A place, the name of its value, and a body that is right but for that place."""


def excluded(method: StandardMethod) -> Iterator[Body]:
    """Yield bodies that a schema refuses, and those that are not JSON."""
    for field, schema in method.parameters.items():
        accepts = compiled(schema).is_valid
        for place, _, build in places(schema, f"/{field}"):
            for name, value in HOSTILE.items():
                if not accepts(made := build(value)):
                    yield place, name, msgspec.json.encode({**least(method), field: made})
        marked = msgspec.json.encode({**least(method), field: "~here~"})
        for name, raw in RAW.items():
            yield f"/{field}", name, marked.replace(b'"~here~"', raw)


def incomplete(method: StandardMethod) -> Iterator[Body]:
    """Yield bodies without one of the required parameters."""
    for field in method.required:
        yield field, "missing", msgspec.json.encode({k: v for k, v in least(method).items() if k != field})


def let_through(method: StandardMethod) -> Iterator[Body]:
    """Yield hostile bodies that a schema accepts."""
    for field, schema in method.parameters.items():
        accepts = compiled(schema).is_valid
        for name, value in HOSTILE.items():
            if accepts(value):
                yield field, name, msgspec.json.encode({**least(method), field: value})


async def send_each(bench: StatefulBench, make: Callable[[StandardMethod], Iterator[Body]]) -> list[Case]:
    return [
        Case(method, place, name, await bench.send(method.name, "/", body, authority_scope=SCOPES))
        for method in METHODS
        for place, name, body in make(method)
    ]


async def exported(bench: StatefulBench) -> bytes:
    rows: list[bytes] = []
    await export_store(bench.store, rows.append)
    return b"".join(rows)


def check_refusal(case: Case) -> None:
    """Show that a refusal is of the caller's making, names the field, and gives nothing away."""
    assert 400 <= case.reply.status < 500
    assert case.reply.error["message"]
    if case.value in HOSTILE:
        assert (case.reply.status, case.reply.error["code"]) == (422, "input-validation-failed")
        # A value with a choice of forms is named as a whole.
        named = [one["pointer"] for one in case.reply.error["violations"]]
        assert any(one.startswith(case.place) or case.place.startswith(one) for one in named if one), named
    assert "Traceback" not in str(case.reply.json)


def check_missing(case: Case) -> None:
    assert (case.reply.status, case.reply.error["code"]) == (422, "input-validation-failed")
    assert case.place in case.reply.error["message"]


def check_answer(case: Case) -> None:
    """Show that whatever is answered is declared: a result, a refusal, or that something is not there."""
    if case.reply.status >= 500:
        declared = {error.name: error.status for error in case.method.errors} | {"not-implemented": 501}
        assert declared.get(case.reply.error["code"]) == case.reply.status


async def test_every_parameter_refuses_what_its_schema_excludes_and_nothing_changes() -> None:
    async with keeping(make_endpoint("FETCH", "/news", dict), methods=choose_methods(["*"])) as bench:
        before = await exported(bench)
        check_each(await send_each(bench, excluded), check_refusal)
        assert await exported(bench) == before


@pytest.mark.requirement(
    "METHODS-5.1-3",
    "METHODS-5.2-1",
    "METHODS-5.3-1",
    "METHODS-5.4-1",
    "METHODS-5.5-1",
    "METHODS-5.6-1",
    "METHODS-5.7-1",
    "METHODS-5.8-1",
    "METHODS-5.9-2",
    "METHODS-5.10-1",
    "METHODS-7.1-1",
    "METHODS-7.2-1",
    "METHODS-7.3-1",
    "METHODS-7.4-1",
    "METHODS-7.5-1",
    "METHODS-8.1-1",
    "METHODS-8.2-1",
    "METHODS-8.3-1",
    "METHODS-8.4-1",
    "METHODS-8.5-1",
    "METHODS-8.6-1",
    "METHODS-8.7-1",
    "METHODS-8.8-2",
    "METHODS-8.9-1",
)
async def test_a_call_without_a_required_parameter_names_it_and_changes_nothing() -> None:
    async with keeping(methods=choose_methods(["*"])) as bench:
        before = await exported(bench)
        check_each(await send_each(bench, incomplete), check_missing)
        assert await exported(bench) == before


async def test_what_a_schema_lets_through_ends_in_an_answer_or_a_declared_refusal() -> None:
    async with keeping(make_endpoint("FETCH", "/news", dict), methods=choose_methods(["*"])) as bench:
        check_each(await send_each(bench, let_through), check_answer)
