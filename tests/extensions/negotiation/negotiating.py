"""A hotel whose endpoints agents compose by proposing others, with recipes that say how."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.extensions.negotiation.definitions import definition, fields
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe, RecipeStep, Source
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.state.audit.settings import AuditSettings

OTHER = "b" * 64
SESSION = "3f1c9a52d8e04b7a9c1de6f0a7b85d21"
ROOMS = {"type": "object", "properties": {"rooms": {"type": "array"}}, "required": ["rooms"]}


def find_rooms(city: str) -> dict[str, Any]:
    return {"rooms": [{"number": "12", "city": city}]}


def cancel_stay(stay: str) -> dict[str, Any]:
    return {"cancelled": stay}


FIND = make_endpoint(
    "FIND", "/rooms", find_rooms, properties={"city": {"type": "string"}}, required=("city",), output=ROOMS
)
CANCEL = make_endpoint(
    "CANCEL",
    "/stays",
    cancel_stay,
    properties={"stay": {"type": "string"}},
    required=("stay",),
    output=fields("cancelled"),
    impact="irreversible",
    scopes=("stays:cancel",),
)


def given(name: str) -> Source:
    return Source(kind="proposal", value=name)


def recipe(path: str, step: tuple[str, str], method: str = "FIND", **inputs: Source) -> Recipe:
    """Return a recipe of one step that answers the proposals of a path."""
    called = RecipeStep(method=step[0], path=step[1], input=inputs)
    return Recipe(name=path[1:], steps=(called,), pattern={"name_exact": method, "path_exact": path})


LODGINGS = recipe("/lodgings", ("FIND", "/rooms"), city=given("town"))
REFUNDS = recipe("/refunds", ("CANCEL", "/stays"), "REFUND", stay=given("stay"))


def lodgings(**changes: Any) -> dict[str, Any]:
    """Return the definition of an endpoint that LODGINGS carries out."""
    return definition(**{"path": "/lodgings", "input_schema": fields("town"), "output_schema": ROOMS, **changes})


def refunds(impact: str = "irreversible", **changes: Any) -> dict[str, Any]:
    """Return the definition of an endpoint that REFUNDS carries out."""
    given = definition(method="REFUND", path="/refunds", input_schema=fields("stay"), output_schema=fields("cancelled"))
    given["output_schema"]["additionalProperties"] = True
    return {**given, "semantic": {**given["semantic"], "impact": impact}, **changes}


@asynccontextmanager
async def negotiating(
    *endpoints: Endpoint,
    recipes: tuple[Recipe, ...] = (LODGINGS, REFUNDS),
    policies: dict[str, Any] | None = None,
    document: ServerDocument | None = None,
    service: dict[str, Any] | None = None,
    store: Any = None,
    audit: bool = False,
    **settings: Any,
) -> AsyncIterator[StatefulBench]:
    """Serve the hotel. Keywords are settings of `[negotiation]`."""
    given = {"scope_required_for_invocation": False, "synthesis_enabled": True, **(policies or {})}
    configured = document or ServerDocument(extension_tables={"negotiation": NegotiationSettings(**settings)})
    configured = replace(configured, audit=AuditSettings(records="all" if audit else "off"))
    served = endpoints or (FIND, CANCEL)
    async with keeping(
        *served, policies=Policies(**given), recipes=recipes, document=configured, store=store, **(service or {})
    ) as bench:
        yield bench
