"""COMPUTE: methods that derive a result from what they are given, without changing anything (Tier 2 4)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.standard import definition as d
from bespeak.contract.standard.definition import MethodError, StandardMethod
from bespeak.protocol import status

_FAILED: Final = MethodError("expression-failed", status.UNPROCESSABLE, "The expression has no value for the input.")
_INVALID: Final = MethodError("invalid-expression", status.BAD_REQUEST, "The expression is not valid.")
_BUSY: Final = MethodError("expressions-busy", status.UNAVAILABLE, "Too many expressions wait; try again later.")
_NOT_EXPRESSIBLE: Final = MethodError("not-expressible", status.UNPROCESSABLE, "The format cannot express the result.")
_INVALID_SCHEMA: Final = MethodError("invalid-schema", status.BAD_REQUEST, "The schema or a rule is not valid.")
FORMATS: Final = "json | jsonl | yaml | csv | xml | toml"
EXPRESSIONS: Final = (_INVALID, _FAILED, _BUSY)  # refusals of methods that evaluate expressions
_PAIR: Final = d.object_of(d.members("target: NAME, source: NAME, status: matched | doubtful, convert?: NAME"))
MAPPING: Final = d.object_of(
    d.members("map_id: NAME, unmapped_policy: ignore | flag | preserve, fields: [PAIR]", PAIR=_PAIR)
)  # schema of a document of MAP, as far as TRANSFORM reads it

_MODEL_ERRORS: Final = (
    MethodError("unknown-model", status.UNPROCESSABLE, "The caller may use no such model."),
    MethodError("invalid-input", status.UNPROCESSABLE, "The model cannot take the values of a row."),
    MethodError("model-failed", status.UNAVAILABLE, "The model has failed; the log of the server has the reason."),
)
_LABEL: Final = "label: NAME, description?: TEXT, keywords?: [NAME], examples?: [TEXT]"
_LABELS: Final = d.list_of({"oneOf": [d.NAME, d.object_of(d.members(_LABEL), closed=True)]}, least=1, most=500)
_IDS: Final = d.list_of({"type": ["string", "integer"]}, most=100)
_NAMES: Final = {"oneOf": [d.NAME, d.list_of(d.NAME, least=1, most=64)]}
_COLUMNS: Final = d.object_of({"maximize?": _NAMES, "minimize?": _NAMES}, closed=True)
_BUDGET: Final = d.object_of(d.members("column: NAME, max: NUMBER"), closed=True)

_method = partial(StandardMethod, category="compute", stateless=True)
_ENGINE: Final = "engine: NAME, model?: NAME, deterministic: FLAG, usage?: OBJECT"  # what made a result
_WEIGHT: Final = {"type": "number", "minimum": -1000, "maximum": 1000}
_WEIGHTS: Final = {"type": "object", "minProperties": 1, "maxProperties": 64}
_members = partial(
    d.members,
    LOCALE={"type": "string", "pattern": "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$"},
    SOURCE={"type": ["string", "object", "array"], "minLength": 1, "minItems": 1, "minProperties": 1},
    NAME_OR_OBJECT={"type": ["object", "string"], "minLength": 1, "maxLength": 256},
    STRING={"type": "string"},
)
COMPUTE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="EXTRACT",
        description="Finds the fields of a schema in a text or in data, by patterns and labels or a language model.",
        intent="Extract structured data from unstructured content.",
        outcome="The fields found are returned with confidence, place and method, and those that are missing.",
        # The schema is a JSON Schema of an object, or the name of an extractor of the service. The engine `auto` asks a
        # model, if there is one, for what is not found.
        takes=_members(
            "source: SOURCE, schema: NAME_OR_OBJECT, confidence_threshold?: SHARE, engine?: auto | pattern | model, "
            "locale?: LOCALE"
        ),
        returns=_members(
            "data: OBJECT, fields: [OBJECT], missing: [NAME], below_threshold: [OBJECT], conforms: FLAG, " + _ENGINE
        ),
        errors=(
            _INVALID_SCHEMA,
            MethodError("unknown-extractor", status.UNPROCESSABLE, "The service has no extractor of this name."),
            *d.ASKING,
        ),
    ),
    _method(
        name="FILTER",
        description="Returns the rows that meet criteria: an expression in CEL, or a filter object.",
        intent="Filter a dataset to the records that match.",
        outcome="The matching rows are returned in their order.",
        takes=_members(
            f"data: ROWS, criteria: CRITERIA, output_format?: {FORMATS}",
            CRITERIA={"oneOf": [d.EXPRESSION, d.CONDITIONS]},
        ),
        returns=_members(
            "rows?: [OBJECT 0..100000], content?: STRING, media_type: NAME, count: COUNT, examined: COUNT, "
            "failed: COUNT, first_failure?: TEXT"
        ),
        errors=(*d.READING, *EXPRESSIONS, _NOT_EXPRESSIBLE),
    ),
    _method(
        name="VALIDATE",
        description="Checks data against a JSON Schema or rules, or a call against the contract.",
        intent="Validate data, a document or a proposed action.",
        outcome="The verdict is returned with every error and warning, and its place.",
        # A JSON Schema; {"rules": [...]}; or the name of an entity type. Without a schema the target is a call.
        takes=_members(
            "target: ANYTHING, schema?: SCHEMA, strict?: FLAG",
            SCHEMA={"type": ["object", "string", "boolean"], "minLength": 1, "maxLength": 256},
        ),
        returns=_members("valid: FLAG, errors: [OBJECT], warnings: [OBJECT], checked_against: NAME"),
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
        # A source is a text in `source_format` (base64 of a Parquet file), data, or {"collection": ..., "filter": ...}
        # without `source_format`. The target is a format, or a JSON Schema that the result, or each of its rows, must
        # meet. `doubtful` says what becomes of the doubtful pairs of a document.
        takes=_members(
            f"source: SOURCE, source_format?: {FORMATS} | parquet, target_format: TARGET, mapping?: MAPPING, "
            "doubtful?: use | skip",
            SOURCE={"type": ["string", "array", "object"]},
            TARGET={"oneOf": [d.one_of(*FORMATS.split(" | "), "parquet"), d.OBJECT]},
            MAPPING={
                "anyOf": [
                    {
                        "type": "object",
                        "minProperties": 1,
                        "maxProperties": 256,
                        "additionalProperties": {
                            "type": ["string", "object"],
                            "minLength": 1,
                            "maxLength": 256,
                            "properties": {"expression": d.EXPRESSION},
                            "required": ["expression"],
                            "additionalProperties": False,
                        },
                    },
                    MAPPING,
                    d.NAME,
                ],
                "description": 'Paths of the result with what is there: "order.sku", or {"expression": "qty * 2"}; or '
                "a document of MAP, or its id.",
            },
        ),
        returns=_members(
            "data?: ANYTHING, content?: STRING, encoding?: base64, media_type: NAME, count: COUNT, "
            "unused_fields: [TEXT], missing: OBJECT, unconverted?: OBJECT, schema_applied_to?: NAME"
        ),
        errors=(
            *d.READING,
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
        takes=_members(
            "content: SOURCE, source_language?: LANGUAGE, target_language: LANGUAGE, formality?: formal | informal"
        ),
        returns=_members("content: ANYTHING, source_language: NAME, detected: FLAG, target_language: NAME, " + _ENGINE),
        errors=d.ASKING,
    ),
    _method(
        name="NORMALIZE",
        description="Brings dates, phone numbers, addresses, amounts of money and units into a canonical form.",
        intent="Normalize values to their canonical form.",
        outcome="Each value is returned with its canonical form, or with the reason why it has none.",
        # The fields are columns to normalize, if the data is rows or a collection.
        takes=_members(
            "data: DATA, type: date | phone | address | currency | unit, locale?: LOCALE, fields?: [NAME 1..64]",
            DATA={"type": ["string", "number", "array", "object"]},
        ),
        returns=_members(
            "results: [OBJECT 0..5000], rows?: [OBJECT 0..5000], count: COUNT, failed: COUNT, method: NAME"
        ),
        errors=(
            *d.READING,
            MethodError("not-available", status.UNAVAILABLE, "The server lacks the libraries for it."),
        ),
    ),
    _method(
        name="PREDICT",
        description="Applies a model of the service to an object, to rows or to a collection.",
        intent="Predict a value or a label with a model.",
        outcome="A prediction is returned for each row, with the confidence and the factors that there are.",
        # The input is one object, rows, the name of a collection, or {"collection": ..., "filter": ...}.
        takes=_members(
            "input: INPUT, model_id?: NAME, confidence_floor?: SHARE, explain?: FLAG",
            INPUT={"type": ["object", "array", "string"], "items": d.OBJECT, "minLength": 1, "maxLength": 256},
        ),
        returns=_members(
            "model_id: NAME, predictions: [OBJECT], count: COUNT, withheld: COUNT, confidence_method: NAME, "
            "explanation_method?: NAME"
        ),
        errors=(
            *d.READING,
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
        # A column, an expression in CEL, {"weights": ...} (negative: the smallest first) or {"words": ...}.
        takes=_members(
            "items: ROWS, criterion: CRITERION, limit?: 1..10000",
            CRITERION={
                "oneOf": [
                    d.EXPRESSION,
                    d.object_of({"weights": {**_WEIGHTS, "additionalProperties": _WEIGHT}}, closed=True),
                    d.object_of({"words": d.LINE}, closed=True),
                ]
            },
        ),
        returns=_members("ranked: [OBJECT 0..10000], count: COUNT, unranked: COUNT, method: NAME"),
        errors=(*d.READING, *EXPRESSIONS),
    ),
    _method(
        name="CLASSIFY",
        description="Assigns labels of a taxonomy to texts and rows, by their words or by a model of the service.",
        intent="Classify items by a known scheme.",
        outcome="Each item is returned with its labels and their confidence; one that fits no label has none.",
        # Labels, the name of a collection with a column `label` or `name`, or {"model": ...}.
        takes=_members(
            "items: TEXTS, taxonomy: TAXONOMY, multi_label?: FLAG, confidence_threshold?: SHARE",
            TEXTS={
                **d.ROWS,
                "items": {"type": ["string", "object"]},
                "description": f"Texts. {d.ROWS['description']}",
            },
            TAXONOMY={"oneOf": [_LABELS, d.NAME, d.object_of({"model": d.NAME}, closed=True)]},
        ),
        returns=_members(
            "classified: [OBJECT], count: COUNT, unassigned: COUNT, method: NAME, confidence_method: NAME"
        ),
        errors=(
            *d.READING,
            MethodError("invalid-taxonomy", status.BAD_REQUEST, "The taxonomy does not tell its labels apart."),
            *_MODEL_ERRORS,
        ),
    ),
    _method(
        name="CALCULATE",
        description="Computes a formula exactly, or an expression in CEL.",
        intent="Calculate a value from named inputs.",
        outcome="The result is returned with the inputs and the formula that gave it.",
        # An expression in CEL; a formula; or the name of one that the service declares: {"formula": "vat"}.
        takes=_members(
            "expression: FORMULA, inputs: INPUTS, precision?: 0..20, currency?: CURRENCY",
            FORMULA={"type": ["string", "object"], "minLength": 1, "maxLength": 4000, "maxProperties": 2},
            INPUTS={"type": "object", "maxProperties": 256},
            CURRENCY={"type": "string", "pattern": "^[A-Z]{3}$"},
        ),
        returns=_members(
            "result: ANYTHING, inputs: OBJECT, expression: ANYTHING, method: NAME, formula?: NAME, precision?: COUNT, "
            "currency?: NAME"
        ),
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
        # A rubric has labels with the lowest score of each.
        takes=_members(
            "target: OBJECT, criteria: [CRITERION 1..64], weights?: WEIGHTS, rubric?: RUBRIC",
            CRITERION=d.object_of(
                d.members("name: NAME, value: EXPRESSION, worst?: NUMBER, best?: NUMBER, description?: TEXT"),
                closed=True,
            ),
            WEIGHTS={**_WEIGHTS, "additionalProperties": {**_WEIGHT, "minimum": 0}},
            RUBRIC={"type": "object", "minProperties": 1, "additionalProperties": d.NUMBER},
        ),
        returns=_members("score: NUMBER, label?: TEXT, criteria: [OBJECT], rationale: TEXT, method: NAME"),
        errors=EXPRESSIONS,
    ),
    _method(
        name="GENERATE",
        description="Makes a text, code, JSON, HTML or Markdown from a source, by a template or a language model.",
        intent="Generate content from a specification, data or a prompt.",
        outcome="The content is returned with its type; code is marked for review.",
        joined_by="template",
        needs_table="language_model",
        # The format is such as the language of code; for JSON, a schema that it must meet.
        takes=_members(
            "source?: SOURCE, output_type: text | code | json | html | markdown, format?: FORMAT, length?: LENGTH, "
            "style?: formal | casual | technical | neutral, template?: NAME",
            FORMAT={"type": ["string", "object"], "minLength": 1, "maxLength": 256},
            LENGTH={"type": ["integer", "string"], "minimum": 1, "maximum": 100_000, "maxLength": 64},
        ),
        returns=_members(
            "output_type: NAME, content: ANYTHING, media_type: NAME, sha256: NAME, review_required: FLAG, "
            f"review?: TEXT, template?: NAME, {_ENGINE}"
        ),
        errors=(
            _INVALID_SCHEMA,
            MethodError("unknown-template", status.UNPROCESSABLE, "The service has no template of this name."),
            MethodError("schema-not-met", status.UNPROCESSABLE, "The result does not meet the schema."),
            *d.ASKING,
        ),
    ),
    _method(
        name="RECOMMEND",
        description="Recommends rows of a collection for a context and a goal, within hard limits.",
        intent="Recommend items for a context.",
        outcome="The best rows are returned in order, each with its score, rationale and confidence.",
        # A context is a text, or an object: `history` and `liked` are ids, `preferences` a filter that is not a limit.
        # The goal is words, or columns: {"maximize": "rating", "minimize": ["price"]}.
        takes=_members(
            "context: CONTEXT, goal: GOAL, constraints?: LIMITS, from?: NAME, limit?: 1..1000, explain?: FLAG",
            CONTEXT={
                "type": ["string", "object"],
                "properties": {"history": _IDS, "liked": _IDS, "preferences": d.CONDITIONS},
            },
            GOAL={"oneOf": [d.LINE, {**_COLUMNS, "minProperties": 1}]},
            LIMITS=d.object_of({"filter?": d.CONDITIONS, "exclude?": _IDS, "budget?": _BUDGET}, closed=True),
        ),
        returns=_members(
            "collection: NAME, recommendations: [OBJECT], count: COUNT, candidates: COUNT, unscored: COUNT, "
            "method: NAME, confidence_method: NAME"
        ),
        errors=(
            *d.READING,
            MethodError("collection-required", status.BAD_REQUEST, "There are several collections; name one."),
        ),
    ),
)
