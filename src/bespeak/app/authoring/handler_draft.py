"""Handler templates in TOML and Python for an endpoint without a handler."""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.projections.deployment_files import HANDLERS, function_names, whole_input_name
from bespeak.runtime.functions.signature import CONTEXT_NAMES

_ANNOTATIONS: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


def draft(document: str, endpoint: Endpoint) -> str:
    """Write the TOML and the Python that bind an endpoint of a document. The text continues a sentence."""
    method, path = _quoted(endpoint.method), _quoted(endpoint.path)
    function = _function(endpoint)
    return "\n".join(
        (
            "write these files beside the document:",
            "",
            "# bespeak.toml",
            f"document = {_quoted(document)}",
            "",
            f"[handlers.{_quoted(str(endpoint))}]",
            'type = "registered_function"',
            f'function = "{HANDLERS}.{_name(endpoint)}"',
            "",
            f"# {HANDLERS}.py",
            function,
            "",
            "or write this file and serve it:",
            "",
            f"# {PurePath(document).stem}.py",
            "from bespeak import App",
            "",
            f"app = App.from_agis({_quoted(document)})",
            "",
            "",
            f"@app.handler({method}, {path})",
            function,
        )
    )


def _function(endpoint: Endpoint) -> str:
    properties = endpoint.output_schema.get("properties")
    returned = [name for name in properties if name.isprintable()] if isinstance(properties, Mapping) else []
    what = f"  # with {', '.join(returned[:8])}" if returned else ""
    return f"def {_name(endpoint)}({_parameters(endpoint)}) -> dict:\n    return {{}}{what}"


def _quoted(text: str) -> str:
    """Quote a string in a form that TOML and Python both accept."""
    return json.dumps(text, ensure_ascii=False)


def _name(endpoint: Endpoint) -> str:
    return function_names([endpoint])[0]


def _parameters(endpoint: Endpoint) -> str:
    properties = endpoint.input_schema.get("properties", {})
    if not properties:
        return ""
    if not all(_is_parameter(name) for name in properties):
        # A name that is not a Python identifier: the function takes the whole input.
        return f"{whole_input_name(properties)}: dict"
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
