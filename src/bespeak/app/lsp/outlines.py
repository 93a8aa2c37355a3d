"""Fields of documents without a JSON Schema of their own, in its terms: names, descriptions, choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.checks.lint.config import Config
from bespeak.checks.lint.subject import Kind
from bespeak.contract.handler import HANDLER_TYPES, Composition, ExternalService, RegisteredFunction
from bespeak.contract.policy import Policies
from bespeak.contract.semantic import Semantic
from bespeak.documents.ai.document import AUTH_TYPES
from bespeak.documents.ai.document import METHODS as HTTP_METHODS
from bespeak.documents.deployment.endpoint_shape import TYPES
from bespeak.documents.deployment.server_settings import ServerSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.budget import UNITS
from bespeak.text.reading.outline import Outline, outline_of, properties_of
from bespeak.text.reading.setting import VERB

SCHEMA: Final = "json-schema"
"""Format of a mapping that is a JSON Schema."""


def _text(about: str, **more: Any) -> Outline:
    return {"type": "string", "description": about, **more}


def _flag(about: str) -> Outline:
    return {"type": "boolean", "description": about}


def _number(about: str) -> Outline:
    return {"type": "number", "description": about}


def _texts(about: str, **item: Any) -> Outline:
    return {"type": "array", "description": about, "items": {"type": "string", **item}}


def _table(about: str, **properties: Outline) -> Outline:
    return {"type": "object", "description": about, "properties": properties}


def _tables(about: str, **properties: Outline) -> Outline:
    return {"type": "array", "description": about, "items": {"type": "object", "properties": properties}}


def _verb(about: str) -> Outline:
    return _text(about, format=VERB)


_FIELD: Final = {
    "name": _text("The name of the field."),
    "type": _text("Its type.", enum=list(TYPES)),
    "format": _text("The format of a string.", enum=["uuid", "date", "date-time", "time", "uri", "email"]),
    "description": _text("A description for people."),
    "default": {"description": "The default value."},
    "minimum": _number("The minimum."),
    "maximum": _number("The maximum."),
    "maxLength": _number("The maximum number of characters."),
    "pattern": _text("A regular expression that the text must match."),
    "enum": _texts("The allowed values."),
    "items": {"type": "object", "description": "The schema of the items of an array.", "format": SCHEMA},
}

_DEPRECATED: Final = _table(
    "When the endpoint became deprecated; every response then warns.",
    deprecated_in=_text("The version that deprecated it."),
    removed_in=_text("The version that removes it."),
    successor=_table("The replacement.", method=_verb("Its verb."), path=_text("Its path.")),
)

_HANDLER: Final = _table(
    "The handler of the endpoint.",
    type=_text("The kind of handler.", enum=list(HANDLER_TYPES)),
    **properties_of(RegisteredFunction),
    **properties_of(ExternalService),
    **properties_of(Composition),
)

_ENDPOINT: Final = {
    "method": _verb("A verb of the catalog."),
    "path": _text("A resource, with {parameters} as whole segments."),
    "description": _text("One sentence for people."),
    "namespace": _text("Groups endpoints in the manifest."),
    "required_scopes": _texts("The authority a caller must declare, as domain:action."),
    "semantic": outline_of(Semantic),
    "input_schema": {"type": "object", "description": "The JSON Schema of the parameters.", "format": SCHEMA},
    "output_schema": {"type": "object", "description": "The JSON Schema of the result.", "format": SCHEMA},
    "confirm": _flag("True if every call needs a confirmation by someone else, regardless of the policies."),
    "since": _text("The time of change in the output, such as rooms[].updated_at; ?since= uses it."),
    "internal": _flag("True to serve it without listing it in any published document."),
    "errors": _table("The errors of a call: names with descriptions, or a list of names."),
    "deprecated": _DEPRECATED,
    "cost": _table(
        "The maximum cost of a call; it is compared with Budget-Limit.",
        **{unit: _number(f"The most {unit} of one call.") for unit in UNITS},
    ),
}

_STEP: Final = {
    "method": _verb("The verb of the step."),
    "path": _text("The path of the step."),
    "parameters": _table("The input of the step."),
    "capture_as": _text("The name of the result for later steps."),
}

OUTLINES: Final[Mapping[Kind, Outline]] = {
    "endpoint": _table(
        "An endpoint file.",
        endpoint=_table(
            "The endpoint.",
            **_ENDPOINT,
            input=_table(
                "The parameters as lists of fields.",
                required=_tables("Required parameters.", **_FIELD),
                optional=_tables("Optional parameters.", **_FIELD),
            ),
            output=_tables("The result as a list of fields.", **_FIELD),
            handler=_HANDLER,
        ),
    ),
    "server": _table(
        "The server.",
        **properties_of(ServerDocument),
        lint=outline_of(Config),
    ),
    "recipes": _table(
        "The compositions of a server.",
        recipe=_tables(
            "One composition.",
            name=_text("Its name."),
            description=_text("What it does, for people."),
            version=_text("Its version."),
            pattern=_table(
                "The proposals it answers.",
                name_exact=_verb("The verb."),
                name_regex=_text("An expression the verb matches."),
                category=_text("A category of the catalog."),
                path_exact=_text("The path."),
                path_regex=_text("An expression the path matches."),
                has_parameters=_texts("Parameters the proposal has."),
            ),
            steps=_tables("What it does, in order.", **_STEP),
            aggregation=_table("How the results are combined.", mode=_text("The way.", enum=["last", "merge", "list"])),
        ),
    ),
    "manifest": _table(
        "A manifest.",
        agtp_version=_text("The version of AGTP."),
        agtp_api_version=_text("The version of AGTP-API."),
        document_version=_text("The version of the manifest."),
        catalog_version=_text("The version of the catalog."),
        catalog_versions_supported=_texts("Further versions the server understands."),
        server=outline_of(ServerSettings),
        policies=outline_of(Policies),
        endpoints=_tables("What the server offers.", **_ENDPOINT),
    ),
    "ai": _table(
        "A discovery document.",
        aiendpoint=_text("The version of the format."),
        service=_table(
            "The service.",
            name=_text("Its name."),
            description=_text("What it is for."),
            category=_texts("The fields it belongs to."),
            language=_texts("The supported languages."),
        ),
        capabilities=_tables(
            "What it can do.",
            id=_text("A machine-readable name."),
            description=_text("What it does."),
            endpoint=_text("The URL to call."),
            method=_text("The HTTP method.", enum=list(HTTP_METHODS)),
            params=_table("Its parameters, each with what it means."),
            returns=_text("What it returns."),
        ),
        auth=_table(
            "How callers authenticate.",
            type=_text("The way.", enum=list(AUTH_TYPES)),
            header=_text("The header that carries it."),
            docs=_text("The URL of its documentation."),
        ),
    ),
}
"""Outlines by kind of document; AGIS documents have their JSON Schema."""
