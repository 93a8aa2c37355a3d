"""Endpoints declared in a Python file as the subject of a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bespeak.checks.lint.subject import Declared, Subject
from bespeak.contract.endpoint import Endpoint
from bespeak.text.source.python_tree import PythonSource, PythonTree
from bespeak.text.source.tree import Span, plain


def python_subject(text: str, file: str, endpoints: Sequence[Endpoint]) -> Subject:
    """Place endpoints in the text that declared them."""
    text, _ = plain(text)
    source = PythonSource(text)
    spans: dict[str, Span] = {}
    written: list[dict[str, Any]] = []
    declared: list[Declared] = []
    for number, endpoint in enumerate(endpoints):
        at = f"/endpoints/{number}"
        line = endpoint.location.line if endpoint.location else 1
        spans |= {f"{at}{inside}": span for inside, span in source.spans(line, endpoint.method, endpoint.path).items()}
        written.append(_written(endpoint))
        declared.append(Declared(endpoint, at, written[-1]))
    tree = PythonTree(text, file, {"endpoints": written}, spans)
    return Subject(kind="endpoint", tree=tree, endpoints=tuple(declared))


def _written(endpoint: Endpoint) -> dict[str, Any]:
    """Return what an author may have written; texts in it are not comments."""
    semantic = endpoint.semantic
    block = {
        "intent": semantic.intent,
        "outcome": semantic.outcome,
        "mcp_tool_name": semantic.mcp_tool_name,
        "concepts": list(semantic.concepts),
        "parameter_hints": dict(semantic.parameter_hints),
        "state_transition": dict(semantic.state_transition),
        "confidence_guidance": semantic.confidence_guidance,
    }
    return {
        "method": endpoint.method,
        "path": endpoint.path,
        "description": endpoint.description,
        "semantic": {name: value for name, value in block.items() if value},
        "input_schema": endpoint.input_schema,
        "output_schema": endpoint.output_schema,
    }
