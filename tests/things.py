"""Services for tests whose functions take part in standard methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bespeak import App, Prediction
from bespeak.contract.participant import Participant


class Contract(msgspec.Struct):
    """Data of an entity."""

    title: str
    pages: int = 1


def joining(declare: Callable[[App], Any]) -> tuple[Participant, ...]:
    """Return the participants that a service declares."""
    app = App("Test", server_id="test.example", operator="Tests", contact="ops@test.example")
    declare(app)
    return app.service().participants


def contracts(app: App) -> None:
    """Declare the entities that most tests use."""
    app.entity("contract", model=Contract)


def estimates(app: App) -> None:
    """Declare a model."""

    @app.model("price")
    def price(rooms: int) -> Prediction:
        """Estimate a price."""
        return Prediction(rooms * 10.0, confidence=0.75, factors={"rooms": rooms * 10.0})
