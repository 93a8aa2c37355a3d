"""The first lines of a handler for an endpoint that has none, in TOML and in Python, ready to be copied."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from bespeak.authoring.signature import CONTEXT_NAMES
from bespeak.contract.endpoint import Endpoint

_ANNOTATIONS: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
_NO_NAME: Final = re.compile(r"\W+")


def draft(document: str, endpoint: Endpoint) -> str:
    """What to write beside a document to bind an endpoint, in both ways, going on with a sentence."""
    method, path = json.dumps(endpoint.method), json.dumps(endpoint.path)
    return "\n".join(
        (
            "write either, beside the document:",
            "",
            "# bespeak.toml",
            f"document = {json.dumps(document)}",
            "",
            f"[handlers.{json.dumps(str(endpoint))}]",
            'type = "registered_function"',
            f'function = "handlers.{_function_name(endpoint)}"',
            "",
            "# handlers.py",
            _function(endpoint),
            "",
            "or, in Python alone, and serve that file:",
            "",
            f"# {PurePath(document).stem}.py",
            "from bespeak import App",
            "",
            f"app = App.from_agis({json.dumps(document)})",
            "",
            "",
            f"@app.handler({method}, {path})",
            _function(endpoint),
        )
    )


def _function(endpoint: Endpoint) -> str:
    properties = endpoint.output_schema.get("properties")
    returned = [name for name in properties if name.isprintable()] if isinstance(properties, Mapping) else []
    what = f"  # with {', '.join(returned[:8])}" if returned else ""
    return f"def {_function_name(endpoint)}({_parameters(endpoint)}) -> dict:\n    return {{}}{what}"


def _function_name(endpoint: Endpoint) -> str:
    words = [endpoint.method, *(part for part in endpoint.path.split("/") if not part.startswith("{"))]
    return "_".join(_NO_NAME.sub("_", word.lower()) for word in words if word)


def _parameters(endpoint: Endpoint) -> str:
    properties = endpoint.input_schema.get("properties", {})
    if not properties:
        return ""
    if not all(_is_parameter(name) for name in properties):
        return "input: dict"  # a name that Python cannot have: the function takes the input as a whole
    required = endpoint.input_schema.get("required", ())
    needed = [_declared(name, properties[name]) for name in properties if name in required]
    optional = [_declared(name, properties[name], optional=True) for name in properties if name not in required]
    return ", ".join((*needed, *optional))


def _is_parameter(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in CONTEXT_NAMES


def _declared(name: str, schema: Any, *, optional: bool = False) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    annotation = _ANNOTATIONS.get(kind) if isinstance(kind, str) else None
    if annotation is None:
        return f"{name}=None" if optional else name
    return f"{name}: {annotation} | None = None" if optional else f"{name}: {annotation}"
