"""The texts of an imported contract, such as an AGIS document, without what tells a model what to do (AGIS 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.service import Service
from bespeak.documents.adoption.guess import LeftOut
from bespeak.documents.adoption.plain_text import plain_text
from bespeak.documents.openapi.schema_fit import SchemaFitter


def without_instructions(service: Service) -> tuple[Service, list[LeftOut]]:
    """Return a service without texts that instruct a model, and what was left out.

    An endpoint cannot do without intent and outcome, so it goes with them. Of every other text the part before the
    instruction stays.
    """
    left_out: list[LeftOut] = []
    endpoints = []
    for endpoint in service.endpoints:
        fault = next(_faults(endpoint), "")
        if fault:
            left_out.append(LeftOut(str(endpoint), fault))
        else:
            endpoints.append(_clean(endpoint, left_out))
    name, description = service.identity.name, service.description
    return replace(
        service,
        identity=replace(service.identity, name=_text(name, "the name of the service", left_out)),
        description=_text(description, "the description of the service", left_out),
        endpoints=tuple(endpoints),
    ), left_out


def _faults(endpoint: Endpoint) -> Iterator[str]:
    semantic = endpoint.semantic
    for name, text in (("intent", semantic.intent), ("outcome", semantic.outcome), ("actor", semantic.actor)):
        fault = plain_text(text).fault
        if fault:
            yield f"its {name} holds {fault}"


def _clean(endpoint: Endpoint, left_out: list[LeftOut]) -> Endpoint:
    errors = tuple(
        DeclaredError(one.name, _text(one.description, f"{endpoint}, error {one.name}", left_out))
        for one in endpoint.errors
    )
    return replace(
        endpoint,
        description=_text(endpoint.description, str(endpoint), left_out),
        errors=errors,
        input_schema=_schema(endpoint.input_schema, f"{endpoint}, input", left_out),
        output_schema=_schema(endpoint.output_schema, f"{endpoint}, output", left_out),
    )


def _text(text: str, what: str, left_out: list[LeftOut]) -> str:
    plain = plain_text(text, 600)
    if plain.fault:
        left_out.append(LeftOut(what, f"a part of the text is left out: it holds {plain.fault}"))
    return plain.text if plain.fault else text


def _schema(schema: Mapping[str, Any], what: str, left_out: list[LeftOut]) -> Mapping[str, Any]:
    """Return a schema without texts, names and values that instruct a model; the same one if it has none."""
    clean, lost = SchemaFitter(verbatim=True).clean(schema)
    spoken = [loss for loss in lost if "text" in loss]
    left_out += [LeftOut(what, f"without {loss}") for loss in spoken]
    return clean if spoken else schema
