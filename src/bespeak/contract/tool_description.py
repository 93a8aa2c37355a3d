"""Descriptions of endpoints as tools, for language models (AGIS C.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from bespeak.contract.deprecation import Deprecation
from bespeak.contract.endpoint import Endpoint


def describe_tool(endpoint: Endpoint, names: Mapping[tuple[str, str], str]) -> str:
    """Describe an endpoint: the intent first, then what a caller should know (AGIS C.2(b)).

    `names` are the tools of the service by the key of their endpoint.
    """
    return "\n".join(_lines(endpoint, names))


def _lines(endpoint: Endpoint, names: Mapping[tuple[str, str], str]) -> Iterator[str]:
    semantic = endpoint.semantic
    yield semantic.intent or endpoint.description or str(endpoint)
    if semantic.outcome:
        yield f"Outcome: {semantic.outcome}"
    if semantic.impact == "irreversible":
        yield "It cannot be undone" + (
            "." if endpoint.confirm is False else ", so a person confirms it before it runs."
        )
    if endpoint.deprecated is not None:
        yield _deprecation(endpoint, endpoint.deprecated, names)
    if semantic.parameter_hints:
        yield "Hints: " + "; ".join(f"{name} = {_phrases(hint)}" for name, hint in semantic.parameter_hints.items())


def _phrases(hint: object) -> str:
    phrases = hint if isinstance(hint, list) else [hint]
    texts = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in phrases)
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def _deprecation(endpoint: Endpoint, deprecated: Deprecation, names: Mapping[tuple[str, str], str]) -> str:
    successor = (deprecated.successor_method or endpoint.method, deprecated.successor_path or endpoint.path)
    use = f" Use {names.get(successor, ' '.join(successor))} instead." if successor != endpoint.key else ""
    gone = f"; it will be removed in {deprecated.removed_in}" if deprecated.removed_in else ""
    return f"Deprecated since {deprecated.deprecated_in}{gone}.{use}"
