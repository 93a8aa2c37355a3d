"""COMPUTE: methods that derive a result from what they are given, without changing anything (Tier 2 4)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.standard.definition import (
    ANYTHING,
    CONDITIONS,
    COUNT,
    EXPRESSION,
    FLAG,
    LINE,
    NAME,
    NUMBER,
    OBJECT,
    READING,
    ROWS,
    TEXT,
    MethodError,
    Schema,
    StandardMethod,
    list_of,
    object_of,
    one_of,
)
from bespeak.protocol import status

_LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": 10_000}
_FAILED: Final = MethodError("expression-failed", status.UNPROCESSABLE, "The expression has no value for the input.")
_INVALID: Final = MethodError("invalid-expression", status.BAD_REQUEST, "The expression is not valid.")
_BUSY: Final = MethodError("expressions-busy", status.UNAVAILABLE, "Too many expressions wait; try again later.")
_NOT_EXPRESSIBLE: Final = MethodError("not-expressible", status.UNPROCESSABLE, "The format cannot express the result.")
_INVALID_SCHEMA: Final = MethodError("invalid-schema", status.BAD_REQUEST, "The schema or a rule is not valid.")
FORMATS: Final = ("json", "jsonl", "yaml", "csv", "xml", "toml")
EXPRESSIONS: Final = (_INVALID, _FAILED, _BUSY)  # refusals of methods that evaluate expressions
_WEIGHTS: Final[Schema] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 64,
    "additionalProperties": {"type": "number", "minimum": -1000, "maximum": 1000},
}

_method = partial(StandardMethod, category="compute", stateless=True)
COMPUTE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="FILTER",
        description="Returns the rows that meet criteria: an expression in CEL, or a filter object.",
        intent="Filter a dataset to the records that match.",
        outcome="The matching rows are returned in their order.",
        takes={
            "data": ROWS,
            "criteria": {"oneOf": [EXPRESSION, CONDITIONS]},
            "output_format?": one_of(*FORMATS),
        },
        returns={
            "rows?": list_of(OBJECT, most=100_000),
            "content?": {"type": "string"},
            "media_type": NAME,
            "count": COUNT,
            "examined": COUNT,
            "failed": COUNT,
            "first_failure?": TEXT,
        },
        errors=(*READING, *EXPRESSIONS, _NOT_EXPRESSIBLE),
    ),
    _method(
        name="VALIDATE",
        description="Checks data against a JSON Schema or rules, or a call against the contract.",
        intent="Validate data, a document or a proposed action.",
        outcome="The verdict is returned with every error and warning, and its place.",
        takes={
            "target": ANYTHING,
            # A JSON Schema; {"rules": [...]}; or the name of an entity type. Without it the target is a call.
            "schema?": {"type": ["object", "string", "boolean"], "minLength": 1, "maxLength": 256},
            "strict?": FLAG,
        },
        returns={"valid": FLAG, "errors": list_of(OBJECT), "warnings": list_of(OBJECT), "checked_against": NAME},
        errors=(
            _INVALID_SCHEMA,
            MethodError("unknown-schema", status.UNPROCESSABLE, "The service has no schema of this name."),
            *EXPRESSIONS,
        ),
    ),
    _method(
        name="TRANSFORM",
        description="Converts data between formats, and its fields by a mapping of paths and expressions in CEL.",
        intent="Transform data into another format or schema.",
        outcome="The data is returned in the target format, with the fields of the source that were not used.",
        takes={
            # A text in `source_format`, data, or {"collection": ..., "filter": ...} without `source_format`.
            "source": {"type": ["string", "array", "object"]},
            "source_format?": one_of(*FORMATS),
            # A format; or a JSON Schema that the result, or each of its rows, must meet.
            "target_format": {"oneOf": [one_of(*FORMATS), OBJECT]},
            "mapping?": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 256,
                "additionalProperties": {
                    "type": ["string", "object"],
                    "minLength": 1,
                    "maxLength": 256,
                    "properties": {"expression": EXPRESSION},
                    "required": ["expression"],
                    "additionalProperties": False,
                },
                "description": 'Paths of the result with what is there: "order.sku", or {"expression": "qty * 2"}.',
            },
        },
        returns={
            "data?": ANYTHING,
            "content?": {"type": "string"},
            "media_type": NAME,
            "count": COUNT,
            "unused_fields": list_of(TEXT),
            "missing": OBJECT,
            "schema_applied_to?": NAME,
        },
        errors=(
            *READING,
            *EXPRESSIONS,
            MethodError("invalid-source", status.BAD_REQUEST, "The source is not a text in its format."),
            _INVALID_SCHEMA,
            MethodError("schema-not-met", status.UNPROCESSABLE, "The result does not meet the schema."),
            _NOT_EXPRESSIBLE,
        ),
    ),
    _method(
        name="NORMALIZE",
        description="Brings dates, phone numbers, addresses, amounts of money and units into a canonical form.",
        intent="Normalize values to their canonical form.",
        outcome="Each value is returned with its canonical form, or with the reason why it has none.",
        takes={
            "data": {"type": ["string", "number", "array", "object"]},
            "type": one_of("date", "phone", "address", "currency", "unit"),
            "locale?": {"type": "string", "pattern": "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$"},
            "fields?": list_of(NAME, least=1, most=64),  # columns to normalize, if the data is rows or a collection
        },
        returns={
            "results": list_of(OBJECT, most=5000),
            "rows?": list_of(OBJECT, most=5000),
            "count": COUNT,
            "failed": COUNT,
            "method": NAME,
        },
        errors=(
            *READING,
            MethodError("not-available", status.UNAVAILABLE, "The server lacks the libraries for it."),
        ),
    ),
    _method(
        name="RANK",
        description="Orders items by a column, an expression, weighted columns or the words of a text.",
        intent="Rank items by a criterion.",
        outcome="The items are returned the best first, each with its score.",
        takes={
            "items": ROWS,
            # A column, an expression in CEL, {"weights": ...} (negative: the smallest first) or {"words": ...}.
            "criterion": {
                "oneOf": [
                    EXPRESSION,
                    object_of({"weights": _WEIGHTS}, closed=True),
                    object_of({"words": LINE}, closed=True),
                ]
            },
            "limit?": _LIMIT,
        },
        returns={"ranked": list_of(OBJECT, most=10_000), "count": COUNT, "unranked": COUNT, "method": NAME},
        errors=(*READING, *EXPRESSIONS),
    ),
    _method(
        name="CALCULATE",
        description="Computes a formula exactly, or an expression in CEL.",
        intent="Calculate a value from named inputs.",
        outcome="The result is returned with the inputs and the formula that gave it.",
        takes={
            "expression": {"type": ["string", "object"], "minLength": 1, "maxLength": 4000, "maxProperties": 2},
            "inputs": {"type": "object", "maxProperties": 256},
            "precision?": {"type": "integer", "minimum": 0, "maximum": 20},
            "currency?": {"type": "string", "pattern": "^[A-Z]{3}$"},
        },
        returns={
            "result": ANYTHING,
            "inputs": OBJECT,
            "expression": ANYTHING,
            "method": NAME,
            "precision?": COUNT,
            "currency?": NAME,
        },
        errors=(
            MethodError("invalid-formula", status.BAD_REQUEST, "The formula is not valid."),
            MethodError("not-computable", status.UNPROCESSABLE, "The formula has no value for these inputs."),
            *EXPRESSIONS,
        ),
    ),
    _method(
        name="EVALUATE",
        description="Grades a target by weighted criteria, with a rationale.",
        intent="Evaluate a target against criteria.",
        outcome="A score for each criterion, their weighted mean and a rationale are returned.",
        takes={
            "target": OBJECT,
            "criteria": list_of(
                {
                    "type": "object",
                    "properties": {
                        "name": NAME,
                        "value": EXPRESSION,
                        "worst": NUMBER,
                        "best": NUMBER,
                        "description": TEXT,
                    },
                    "required": ["name", "value"],
                    "additionalProperties": False,
                },
                least=1,
                most=64,
            ),
            "weights?": {**_WEIGHTS, "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1000}},
            # Labels with the lowest score of each.
            "rubric?": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}},
        },
        returns={
            "score": NUMBER,
            "label?": TEXT,
            "criteria": list_of(OBJECT),
            "rationale": TEXT,
            "method": NAME,
        },
        errors=EXPRESSIONS,
    ),
)
