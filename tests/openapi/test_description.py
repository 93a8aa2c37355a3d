"""The one form of every OpenAPI description."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from bespeak.openapi.description import Description, Operation


def test_a_description_cannot_be_changed_behind_anybodys_back() -> None:
    operation = Operation(method="GET", path="/pets", base="https://pets.example", pointer="/paths/~1pets/get")
    description = Description(openapi="3.1.0", operations=(operation,))
    with pytest.raises(FrozenInstanceError):
        description.title = "other"  # type: ignore[misc]
    assert description.operations[0].security == ()
