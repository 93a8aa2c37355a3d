"""When an offered contract gives everything that was asked for, and what is said when it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
from tests.cases import rows

from bespeak.agent.client.negotiation import ContractFit, Synthesis, Terms, define
from bespeak.contract.endpoint import Endpoint

ASKED = define(
    "FIND", "/rooms/cheap", given=["max_price:number", "city?"], needs=["rooms[].room_id:string", "rooms[].since:date"]
).endpoint
DEED = define("BOOK", "/room", given=["room_id"], needs=["reservation_id:string"], impact="reversible").endpoint
TEXT, NUMBER, DATE = {"type": "string"}, {"type": "number"}, {"type": "string", "format": "date"}


def with_room(**fields: Any) -> dict[str, Any]:
    row = {"type": "object", "properties": fields, "required": list(fields)}
    return {"type": "object", "properties": {"rooms": {"type": "array", "items": row}}, "required": ["rooms"]}


def with_inputs(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


def semantic(endpoint: Endpoint, **changes: Any) -> Endpoint:
    return replace(endpoint, semantic=replace(endpoint.semantic, **changes))


def compared(offered: Endpoint, asked: Endpoint = ASKED, **options: Any) -> ContractFit:
    own = {name: options.pop(name) for name in ("scopes", "confidence") if name in options}
    return Terms(**own).compare(asked, offered, **options)


def test_what_was_asked_for_fits_and_unstated_or_narrower_members_are_noted() -> None:
    assert compared(ASKED) == ContractFit((), (), ())
    fit = compared(semantic(ASKED, impact="irreversible"), definition=("method", "path", "input_schema"))
    assert fit.fits
    assert fit.unstated == ("the server does not state output_schema", "the server does not state semantic")
    price = {"type": "number", "maximum": 1000}
    fit = compared(replace(ASKED, input_schema=with_inputs("max_price", "city", max_price=price, city=TEXT)))
    assert fit.fits
    assert fit.notes == ("input `max_price`: `maximum` none -> 1000", "input `city`: is now required")
    assert compared(semantic(ASKED, is_idempotent=False)).notes == ("it is not idempotent",)


@rows(
    "offered",
    replace(ASKED, output_schema=with_room(room_id=TEXT, since=DATE, price=NUMBER)),
    replace(ASKED, output_schema=with_room(room_id={"type": "string", "pattern": "^r"}, since=DATE)),
    replace(ASKED, input_schema=with_inputs(max_price=NUMBER, city=TEXT, beds={"type": "integer"})),
    semantic(ASKED, confidence=0.9),
    semantic(ASKED, is_idempotent=False),
    semantic(ASKED, intent="Say it in other words."),
)
def test_more_than_was_asked_for_fits(offered: Endpoint) -> None:
    assert compared(offered).fits


@rows(
    "offered, said",
    (replace(ASKED, output_schema=with_room(room_id=TEXT)), "output `rooms[].since`: is removed"),
    (
        replace(ASKED, output_schema=with_room(room_id=NUMBER, since=DATE)),
        "output `rooms[].room_id`: type string -> number",
    ),
    (
        replace(ASKED, output_schema=with_room(room_id=TEXT, since=TEXT)),
        "output `rooms[].since`: `format` 'date' -> none",
    ),
    (
        replace(ASKED, output_schema=with_room(room_id={"type": ["string", "null"]}, since=DATE)),
        "type string -> null or string",
    ),
    (replace(ASKED, output_schema={"type": "object"}), "output `rooms`: is removed"),
    (replace(ASKED, input_schema=with_inputs("max_price", max_price=NUMBER)), "input `city`: is removed"),
    (
        replace(ASKED, input_schema=with_inputs("token", max_price=NUMBER, city=TEXT, token=TEXT)),
        "input `token`: is new and required",
    ),
    (
        replace(ASKED, input_schema=with_inputs(max_price=TEXT, city=TEXT)),
        "input `max_price`: type number -> string",
    ),
    (semantic(ASKED, impact="reversible"), "its impact is reversible, and at most informational is allowed"),
    (replace(ASKED, path="/rooms"), "it is FIND /rooms, not FIND /rooms/cheap"),
    (replace(ASKED, method="QUERY"), "it is QUERY /rooms/cheap, not FIND /rooms/cheap"),
)
def test_less_than_was_asked_for_is_named(offered: Endpoint, said: str) -> None:
    fit = compared(offered)
    assert not fit.fits
    assert any(said in difference for difference in fit.differences), fit.differences


def test_lesser_outputs_confidence_scopes_and_other_deeds_do_not_fit() -> None:
    row = {"type": "object", "properties": {"room_id": TEXT, "since": DATE}, "required": ["room_id"]}
    offered = {"type": "object", "properties": {"rooms": {"type": "array", "items": row}}, "required": ["rooms"]}
    assert compared(replace(ASKED, output_schema=offered)).differences == (
        "output `rooms[].since`: is no longer required",
    )
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"]}
    assert not compared(replace(ASKED, output_schema={**deep, "title": "x"}), replace(ASKED, output_schema=deep)).fits
    fit = compared(semantic(ASKED, confidence=0.7), confidence=0.8)
    assert fit.differences == ("its confidence is 0.7, and at least 0.8 is wanted",)
    assert compared(semantic(ASKED, confidence=0.8), confidence=0.8).fits
    offered = replace(ASKED, required_scopes=("rooms:read", "payments:write"))
    assert compared(offered).fits
    assert compared(offered, scopes=("rooms:*",)).differences == (
        "it requires the scope payments:write, which is not allowed here",
    )
    assert compared(replace(ASKED, method="QUERY", path="/rooms"), elsewhere=True).notes == (
        "it is QUERY /rooms, not FIND /rooms/cheap",
    )
    assert not compared(replace(DEED, method="CANCEL"), DEED, elsewhere=True).fits
    assert not compared(replace(DEED, path="/table"), DEED, elsewhere=True).fits


def test_synthesis_calls_its_endpoint_and_shows_its_contract() -> None:
    called: list[Mapping[str, Any]] = []
    endpoint = define("FIND", "/rooms/cheap", given=["max_price:number"]).endpoint
    synthesis = Synthesis(endpoint=endpoint, synthesis_id="syn-1", notes=("a note",), invoke=called.append)
    synthesis.call(max_price=90)
    assert called == [{"max_price": 90}]
    shown = msgspec.json.decode(msgspec.json.encode(synthesis.to_json()))
    assert (shown["synthesis_id"], shown["notes"], shown["endpoint"]["path"]) == ("syn-1", ["a note"], "/rooms/cheap")
    assert shown["endpoint"]["handler"] == {"type": "composition"}
