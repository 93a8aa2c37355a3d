"""COMPUTE: methods that derive a result from what they are given, without changing anything (Tier 2 4)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.standard.definition import (
    ANYTHING,
    ASKING,
    CONDITIONS,
    COUNT,
    EXPRESSION,
    FLAG,
    LANGUAGE,
    LINE,
    NAME,
    NUMBER,
    OBJECT,
    READING,
    ROWS,
    SHARE,
    TEXT,
    MethodError,
    Schema,
    StandardMethod,
    list_of,
    members,
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
_LOCALE: Final = {"type": "string", "pattern": "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$"}
_WEIGHTS: Final[Schema] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 64,
    "additionalProperties": {"type": "number", "minimum": -1000, "maximum": 1000},
}
MAPPING: Final[Schema] = {
    "type": "object",
    "properties": {
        "map_id": NAME,
        "unmapped_policy": one_of("ignore", "flag", "preserve"),
        "fields": list_of(
            object_of(members("target: NAME, source: NAME, status: matched | doubtful, convert?: NAME")), most=1000
        ),
    },
    "required": ["map_id", "unmapped_policy", "fields"],
}  # schema of a document of MAP, as far as TRANSFORM reads it

_MODEL_ERRORS: Final = (
    MethodError("unknown-model", status.UNPROCESSABLE, "The caller may use no such model."),
    MethodError("invalid-input", status.UNPROCESSABLE, "The model cannot take the values of a row."),
    MethodError("model-failed", status.UNAVAILABLE, "The model has failed; the log of the server has the reason."),
)
_INPUT: Final = {"type": ["object", "array", "string"], "items": OBJECT, "minLength": 1, "maxLength": 256}
_LABEL: Final = object_of(members("label: NAME, description?: TEXT, keywords?: [NAME], examples?: [TEXT]"), closed=True)
_LABELS: Final = list_of({"oneOf": [NAME, _LABEL]}, least=1, most=500)
_IDS: Final = list_of({"type": ["string", "integer"]}, most=100)
_NAMES: Final = {"oneOf": [NAME, list_of(NAME, least=1, most=64)]}
_COLUMNS: Final = object_of({"maximize?": _NAMES, "minimize?": _NAMES}, closed=True)
_BUDGET: Final = object_of({"column": NAME, "max": NUMBER}, closed=True)

_method = partial(StandardMethod, category="compute", stateless=True)
_ENGINE: Final = {"engine": NAME, "model?": NAME, "deterministic": FLAG, "usage?": OBJECT}  # what made a result
_SOURCE: Final = {"type": ["string", "object", "array"], "minLength": 1, "minItems": 1, "minProperties": 1}
COMPUTE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="EXTRACT",
        description="Finds the fields of a schema in a text or in data, by patterns and labels or a language model.",
        intent="Extract structured data from unstructured content.",
        outcome="The fields found are returned with confidence, place and method, and those that are missing.",
        takes={
            "source": _SOURCE,
            # A JSON Schema of an object; or the name of an extractor of the service.
            "schema": {"type": ["object", "string"], "minLength": 1, "maxLength": 256},
            "confidence_threshold?": SHARE,
            "engine?": one_of("auto", "pattern", "model"),  # auto asks a model, if there is one, for what is not found
            "locale?": _LOCALE,
        },
        returns=members("data: OBJECT, fields: [OBJECT], missing: [NAME], below_threshold: [OBJECT], conforms: FLAG")
        | _ENGINE,
        errors=(
            _INVALID_SCHEMA,
            MethodError("unknown-extractor", status.UNPROCESSABLE, "The service has no extractor of this name."),
            *ASKING,
        ),
    ),
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
            # A text in `source_format`, data, or {"collection": ..., "filter": ...} without `source_format`. The text
            # of a Parquet file is base64.
            "source": {"type": ["string", "array", "object"]},
            "source_format?": one_of(*FORMATS, "parquet"),
            # A format; or a JSON Schema that the result, or each of its rows, must meet.
            "target_format": {"oneOf": [one_of(*FORMATS, "parquet"), OBJECT]},
            "mapping?": {
                "anyOf": [
                    {
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
                    },
                    MAPPING,
                    NAME,
                ],
                "description": 'Paths of the result with what is there: "order.sku", or {"expression": "qty * 2"}; or '
                "a document of MAP, or its id.",
            },
            "doubtful?": one_of("use", "skip"),  # what becomes of the doubtful pairs of a document
        },
        returns={
            "data?": ANYTHING,
            "content?": {"type": "string"},
            "encoding?": one_of("base64"),
            "media_type": NAME,
            "count": COUNT,
            "unused_fields": list_of(TEXT),
            "missing": OBJECT,
            "unconverted?": OBJECT,
            "schema_applied_to?": NAME,
        },
        errors=(
            *READING,
            *EXPRESSIONS,
            MethodError("invalid-source", status.BAD_REQUEST, "The source is not a text in its format."),
            _INVALID_SCHEMA,
            MethodError("unknown-mapping", status.UNPROCESSABLE, "The caller may read no such mapping document."),
            MethodError("doubtful-mapping", status.UNPROCESSABLE, "Nobody has said what becomes of doubtful pairs."),
            MethodError("schema-not-met", status.UNPROCESSABLE, "The result does not meet the schema."),
            _NOT_EXPRESSIBLE,
        ),
    ),
    _method(
        name="TRANSLATE",
        description="Translates a text, or the texts in data, by a language model. Placeholders and tags stay.",
        intent="Translate content into another language.",
        outcome="The content is returned in the target language, with both languages.",
        needs_table="language_model",
        takes={
            "content": _SOURCE,
            "source_language?": LANGUAGE,
            "target_language": LANGUAGE,
            "formality?": one_of("formal", "informal"),
        },
        returns={"content": ANYTHING, "source_language": NAME, "detected": FLAG, "target_language": NAME, **_ENGINE},
        errors=ASKING,
    ),
    _method(
        name="NORMALIZE",
        description="Brings dates, phone numbers, addresses, amounts of money and units into a canonical form.",
        intent="Normalize values to their canonical form.",
        outcome="Each value is returned with its canonical form, or with the reason why it has none.",
        takes={
            "data": {"type": ["string", "number", "array", "object"]},
            "type": one_of("date", "phone", "address", "currency", "unit"),
            "locale?": _LOCALE,
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
        name="PREDICT",
        description="Applies a model of the service to an object, to rows or to a collection.",
        intent="Predict a value or a label with a model.",
        outcome="A prediction is returned for each row, with the confidence and the factors that there are.",
        # The input is one object, rows, the name of a collection, or {"collection": ..., "filter": ...}.
        takes=members("input: INPUT, model_id?: NAME, confidence_floor?: SHARE, explain?: FLAG", INPUT=_INPUT),
        returns=members(
            "model_id: NAME, predictions: [OBJECT], count: COUNT, withheld: COUNT, confidence_method: NAME,"
            "explanation_method?: NAME"
        ),
        errors=(
            *READING,
            MethodError("model-required", status.BAD_REQUEST, "The service has several models; name one."),
            *_MODEL_ERRORS,
        ),
        joined_by="model",
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
        name="CLASSIFY",
        description="Assigns labels of a taxonomy to texts and rows, by their words or by a model of the service.",
        intent="Classify items by a known scheme.",
        outcome="Each item is returned with its labels and their confidence; one that fits no label has none.",
        takes={
            "items": {**ROWS, "items": {"type": ["string", "object"]}, "description": f"Texts. {ROWS['description']}"},
            # Labels, the name of a collection with a column `label` or `name`, or {"model": ...}.
            "taxonomy": {"oneOf": [_LABELS, NAME, object_of({"model": NAME}, closed=True)]},
            **members("multi_label?: FLAG, confidence_threshold?: SHARE"),
        },
        returns=members("classified: [OBJECT], count: COUNT, unassigned: COUNT, method: NAME, confidence_method: NAME"),
        errors=(
            *READING,
            MethodError("invalid-taxonomy", status.BAD_REQUEST, "The taxonomy does not tell its labels apart."),
            *_MODEL_ERRORS,
        ),
    ),
    _method(
        name="CALCULATE",
        description="Computes a formula exactly, or an expression in CEL.",
        intent="Calculate a value from named inputs.",
        outcome="The result is returned with the inputs and the formula that gave it.",
        takes={
            # An expression in CEL; a formula; or the name of one that the service declares: {"formula": "vat"}.
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
            "formula?": NAME,
            "precision?": COUNT,
            "currency?": NAME,
        },
        errors=(
            MethodError("invalid-formula", status.BAD_REQUEST, "The formula is not valid."),
            MethodError("unknown-formula", status.UNPROCESSABLE, "The service has no formula of this name."),
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
    _method(
        name="GENERATE",
        description="Makes a text, code, JSON, HTML or Markdown from a source, by a template or a language model.",
        intent="Generate content from a specification, data or a prompt.",
        outcome="The content is returned with its type; code is marked for review.",
        joined_by="template",
        needs_table="language_model",
        takes={
            "source?": _SOURCE,
            "output_type": one_of("text", "code", "json", "html", "markdown"),
            # Such as the language of code; for JSON, a schema that it must meet.
            "format?": {"type": ["string", "object"], "minLength": 1, "maxLength": 256},
            "length?": {"type": ["integer", "string"], "minimum": 1, "maximum": 100_000, "maxLength": 64},
            "style?": one_of("formal", "casual", "technical", "neutral"),
            "template?": NAME,
        },
        returns=members(
            "output_type: NAME, content: ANYTHING, media_type: NAME, sha256: NAME, review_required: FLAG,"
            "review?: TEXT, template?: NAME"
        )
        | _ENGINE,
        errors=(
            _INVALID_SCHEMA,
            MethodError("unknown-template", status.UNPROCESSABLE, "The service has no template of this name."),
            MethodError("schema-not-met", status.UNPROCESSABLE, "The result does not meet the schema."),
            *ASKING,
        ),
    ),
    _method(
        name="RECOMMEND",
        description="Recommends rows of a collection for a context and a goal, within hard limits.",
        intent="Recommend items for a context.",
        outcome="The best rows are returned in order, each with its score, rationale and confidence.",
        takes={
            # A text, or an object: `history` and `liked` are ids, `preferences` a filter that is not a limit.
            "context": {
                "type": ["string", "object"],
                "properties": {"history": _IDS, "liked": _IDS, "preferences": CONDITIONS},
            },
            # Words, or columns: {"maximize": "rating", "minimize": ["price"]}.
            "goal": {"oneOf": [LINE, {**_COLUMNS, "minProperties": 1}]},
            "constraints?": object_of({"filter?": CONDITIONS, "exclude?": _IDS, "budget?": _BUDGET}, closed=True),
            **members("from?: NAME, limit?: 1..1000, explain?: FLAG"),
        },
        returns=members(
            "collection: NAME, recommendations: [OBJECT], count: COUNT, candidates: COUNT, unscored: COUNT,"
            "method: NAME, confidence_method: NAME"
        ),
        errors=(
            *READING,
            MethodError("collection-required", status.BAD_REQUEST, "There are several collections; name one."),
        ),
    ),
)
