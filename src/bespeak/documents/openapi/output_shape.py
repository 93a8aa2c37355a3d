"""The output of an endpoint: the upstream's successful answer as one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.schema.view import SchemaView
from bespeak.documents.adoption.definitions import Definitions
from bespeak.documents.adoption.guess import Guess
from bespeak.documents.adoption.sanitizer import SchemaFitter, bound
from bespeak.documents.openapi.description import DocumentedResponse, Operation, media_form

_OPEN: Final[Mapping[str, Any]] = {"type": "object"}
_LISTED: Final = "items"
_ONE: Final = "result"
_TEXT: Final = "text"


@dataclass(slots=True)
class OutputShape:
    """An output schema, and the handler settings that turn an answer into an object."""

    schema: dict[str, Any] = field(default_factory=lambda: dict(_OPEN))
    answer: str = "json"
    output_field: str | None = None
    guesses: list[Guess] = field(default_factory=list)


Known = dict[tuple[int, ...], tuple[list[DocumentedResponse], "OutputShape"]]
"""Outputs by the ids of their schemas; the responses are included to keep those ids in use."""


def shape_output(operation: Operation, fitter: SchemaFitter, known: Known) -> OutputShape | str:
    """Build the output of an operation, or return why that is impossible. Operations often share response schemas."""
    answers = operation.answers
    # 200 comes before 201; if no success is documented, the default response counts.
    good = sorted((one for one in answers if one.status.startswith("2")), key=lambda one: one.status.upper())
    good = good or [one for one in answers if one.status == "default" and not _is_problem(one)]
    if operation.method == "HEAD" or (good and all(answer.media_type is None for answer in good)):
        return OutputShape(answer="none")
    with_json = [one for one in good if one.media_type and media_form(one.media_type) in ("json", "json-like", "any")]
    if with_json:
        key = tuple(id(answer.schema) for answer in with_json)
        if key not in known:
            known[key] = (with_json, _json(with_json, fitter))
        return known[key][1]
    if any(answer.media_type and media_form(answer.media_type) == "text" for answer in good):
        schema = {"type": "object", "properties": {_TEXT: {"type": "string"}}, "required": [_TEXT]}
        return OutputShape(schema, "text", _TEXT)
    if not good:
        guess = _guess("any object", "no successful response is documented", 0.5, "the upstream's actual answer")
        return OutputShape(output_field=_ONE, guesses=[guess])
    media = next(answer.media_type for answer in good if answer.media_type) or ""
    if operation.method == "GET":
        return f"its answer is {media[:80]}; only JSON and text can be passed on"
    guess = _guess("nothing", f"an answer of {media[:80]} cannot be passed on", 0.5, "JSON or text")
    return OutputShape(answer="none", guesses=[guess])


def _is_problem(answer: DocumentedResponse) -> bool:
    said = answer.description.lower()
    return "error" in said or "problem" in (answer.media_type or "") or "fail" in said


def _json(answers: list[DocumentedResponse], fitter: SchemaFitter) -> OutputShape:
    shape = OutputShape()
    lost: dict[str, None] = {}
    definitions = Definitions()
    schemas: list[dict[str, Any]] = []
    for answer in answers:
        clean, given_up = fitter.clean(answer.schema or {})
        lost.update(dict.fromkeys(given_up))
        adopted = definitions.adopt(clean)
        if adopted not in schemas:
            schemas.append(adopted)
    said = [schema for schema in schemas if schema]
    if not said:
        shape.output_field = _ONE
        shape.guesses.append(_guess("any object", "no schema is given", 0.6, "the upstream's actual answer"))
        return shape
    whole = _one(said, definitions.found, shape)
    if definitions.found:
        whole["$defs"] = definitions.found
    fitted, cut = bound(whole)
    lost.update(dict.fromkeys(cut))
    shape.schema = fitted if fitted.get("type") == "object" else {**fitted, "type": "object"}
    shape.guesses += [_guess(f"without {loss}", "an endpoint file cannot express it", 0.7, "your own") for loss in lost]
    return shape


def _one(schemas: list[dict[str, Any]], definitions: Mapping[str, Any], shape: OutputShape) -> dict[str, Any]:
    """Combine all successes into one object; anything else becomes a field of one."""
    kinds = {_kind(schema, definitions) for schema in schemas}
    several = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if kinds == {"object"}:
        return _opened(schemas[0]) if len(schemas) == 1 else {"type": "object", "anyOf": [*map(_opened, schemas)]}
    if "object" in kinds or "any" in kinds:
        # The type is known only at run time: an object passes unchanged, anything else becomes the field.
        shape.output_field = _ONE
        shape.guesses.append(_guess(f"any object, or {_ONE}", "the answer is not always an object", 0.6, ""))
        return {"type": "object", "properties": {_ONE: several}} if "any" not in kinds else dict(_OPEN)
    shape.output_field = _LISTED if kinds == {"array"} else _ONE
    return {"type": "object", "properties": {shape.output_field: several}, "required": [shape.output_field]}


def _kind(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return `object`, `array` or `scalar`; `any` if it is unknown."""
    view = SchemaView(schema, {"$defs": definitions})
    kinds = {kind if kind in ("object", "array") else "scalar" for kind in view.kinds}
    if view.nullable and not isinstance(view.keywords.get("type"), list):
        kinds.add("scalar")
    return kinds.pop() if len(kinds) == 1 else "any"


def _opened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that allows further fields, as outputs should (AGTP-API 13.3)."""
    opened = {key: value for key, value in schema.items() if key != "additionalProperties" or value is not False}
    opened.pop("unevaluatedProperties", None)
    properties, required = opened.get("properties"), opened.get("required")
    if isinstance(properties, Mapping) and isinstance(required, list):
        parts = {name: part for name, part in properties.items() if isinstance(part, Mapping)}
        # Write-only properties are not returned.
        opened["required"] = [name for name in required if parts.get(name, {}).get("writeOnly") is not True]
    return {"type": "object", **opened} if "type" not in opened else opened


def _guess(text: str, why: str, confidence: float, otherwise: str) -> Guess:
    return Guess("/output_schema", text, why, confidence, otherwise)
