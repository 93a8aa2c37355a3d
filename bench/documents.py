"""Inputs of the linters: AGIS documents and endpoint files, and OpenAPI files with as many operations and lines.

Each text depends only on a number, so two runs measure the same. Verbs, nouns and numbers differ between operations, so
caches do not help a linter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple


class Verb(NamedTuple):
    """A method and the forms of its verb in a sentence."""

    method: str
    present: str
    past: str


_VERBS: Final = (
    Verb("BOOK", "Books", "booked"),
    Verb("CANCEL", "Cancels", "cancelled"),
    Verb("SCHEDULE", "Schedules", "scheduled"),
    Verb("FIND", "Finds", "found"),
    Verb("NOTIFY", "Notifies", "notified"),
    Verb("TRANSFER", "Transfers", "transferred"),
    Verb("VALIDATE", "Validates", "validated"),
)
_NOUNS: Final = (
    *("restaurant", "room", "table", "invoice", "patient", "parcel", "flight", "ticket", "course", "product"),
    *("vehicle", "account", "meeting", "payment", "lesson", "voucher", "contract", "device", "customer", "member"),
)
_PLACES: Final = ("Oslo", "Lima", "Accra", "Turin", "Perth", "Quito", "Osaka", "Malmö", "Porto", "Davao", "Leeds")

_AGIS_HEAD: Final = """\
agis: "1.0"
service: Acme bookings
agtp: agtp://bookings.acme.example
description: Books and looks after the things of {place}
version: "1.0.0"
endpoints:
"""
_AGIS_ENDPOINT: Final = """\
  - method: {verb.method}
    path: /{noun}s-{number}/{{id}}
    semantic:
      intent: {verb.present} the {noun} with number {number} in {place} for the requesting agent
      actor: agent
      outcome: The {noun} {number} in {place} is {verb.past}, and its state is returned
      capability: transaction
      confidence_guidance: 0.9
      impact_tier: reversible
      is_idempotent: true
    input:
      type: object
      additionalProperties: false
      required: [id, start_date]
      properties:
        id:
          type: string
          description: The {noun} that is to be {verb.past}
        party_size:
          type: integer
          minimum: {number}
        start_date:
          type: string
          format: date
    output:
      type: object
      required: [status]
      properties:
        status:
          type: string
          enum: [CONFIRMED, PENDING]
        {noun}_id:
          type: string
    errors:
      - name: {noun}_unavailable
        description: The {noun} cannot be {verb.past} now
"""
_AGIS_TAIL: Final = """\
vocabulary:
  declared_verbs: [{verbs}]
  domain: hospitality
"""

_OPENAPI_HEAD: Final = """\
openapi: 3.1.0
info:
  {{title: Acme bookings, version: 1.0.0, description: The things of {place}, license: {{name: MIT, url: "https://x.example"}},
  contact: {{name: Acme, url: "https://acme.example", email: ops@acme.example}}}}
servers: [{{url: "https://bookings.acme.example"}}]
security: [{{key: []}}]
components: {{securitySchemes: {{key: {{type: apiKey, in: header, name: X-Key}}}}}}
tags: [{{name: bookings, description: What can be done with things}}]
paths:
"""
_OPENAPI_OPERATION: Final = """\
  /{noun}s-{number}/{{id}}:
    post:
      operationId: {verb.past}_{noun}_{number}
      summary: {verb.present} the {noun} with number {number}
      description: The {noun} {number} in {place} is {verb.past}, and its state is returned
      tags: [bookings]
      parameters:
        - name: id
          in: path
          required: true
          description: The {noun} that is to be {verb.past}
          schema:
            type: string
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [start_date]
              properties:
                party_size: {{type: integer, minimum: {number}}}
                start_date: {{type: string, format: date}}
      responses:
        "200":
          description: The {noun} is {verb.past}
          content:
            application/json:
              schema:
                type: object
                required: [status]
                properties:
                  status: {{type: string, enum: [CONFIRMED, PENDING]}}
                  {noun}_id:
                    type: string
        "409":
          description: The {noun} cannot be {verb.past} now
"""

_ENDPOINT_FILE: Final = """\
[endpoint]
method = "{verb.method}"
path = "/{noun}s-{number}/{{id}}"
description = "{verb.present} the {noun} {number} in {place}."
required_scopes = ["booking:{noun}"]

[endpoint.semantic]
intent = "{verb.present} the {noun} with number {number} in {place} for the requesting agent."
actor = "agent"
outcome = "The {noun} {number} in {place} is {verb.past}, and its state is returned."
capability = "transaction"
confidence = 0.9
impact = "reversible"
is_idempotent = true

[endpoint.input_schema]
type = "object"
required = ["id", "start_date"]
additionalProperties = false

[endpoint.input_schema.properties]
id = {{ type = "string", description = "The {noun} that is to be {verb.past}." }}
party_size = {{ type = "integer", minimum = {number} }}
start_date = {{ type = "string", format = "date" }}

[endpoint.output_schema]
type = "object"
required = ["status"]

[endpoint.output_schema.properties]
status = {{ type = "string", enum = ["CONFIRMED", "PENDING"] }}

[endpoint.errors]
list = ["{noun}_unavailable"]

[endpoint.handler]
type = "registered_function"
function = "bookings.serve"
"""


def _filled(template: str, number: int) -> str:
    return template.format(
        verb=_VERBS[number % len(_VERBS)],
        noun=_NOUNS[number % len(_NOUNS)],
        place=_PLACES[number % len(_PLACES)],
        number=number,
    )


def agis_document(first: int, count: int) -> str:
    """Return an AGIS document with that many endpoints."""
    numbers = range(first, first + count)
    verbs = sorted({_VERBS[number % len(_VERBS)].method for number in numbers})
    return (
        _filled(_AGIS_HEAD, first)
        + "".join(_filled(_AGIS_ENDPOINT, number) for number in numbers)
        + _AGIS_TAIL.format(verbs=", ".join(verbs))
    )


def openapi_document(first: int, count: int) -> str:
    """Return an OpenAPI document with the same operations on as many lines."""
    numbers = range(first, first + count)
    return _filled(_OPENAPI_HEAD, first) + "".join(_filled(_OPENAPI_OPERATION, number) for number in numbers)


def endpoint_file(number: int) -> str:
    """Return an endpoint file in TOML."""
    return _filled(_ENDPOINT_FILE, number)


def operations_in(lines: int) -> int:
    """Return the number of endpoints in an AGIS document of about `lines` lines."""
    return round(lines / _AGIS_ENDPOINT.count("\n"))


def write_files(folder: Path, suffix: str, texts: list[str]) -> int:
    """Write each text to a file in a new folder; return the total number of lines."""
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"bookings-{number:05}{suffix}").write_text(text, encoding="utf-8")
    return sum(text.count("\n") for text in texts)
