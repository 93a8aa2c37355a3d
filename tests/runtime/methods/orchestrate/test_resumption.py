"""RESUME tells workflows from sessions by their ids."""

from __future__ import annotations

import pytest
from tests.stateful import keeping

from bespeak.runtime.methods.orchestrate.resumption import is_workflow_id

pytestmark = pytest.mark.anyio


def test_the_id_of_a_workflow_has_a_form_of_its_own() -> None:
    assert is_workflow_id(f"chain-{'0' * 32}")
    assert not is_workflow_id("trip-7")


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ({"workflow_id": f"chain-{'0' * 32}"}, 404, "workflow-not-found"),
        ({"workflow_id": "trip-7"}, 422, "invalid-resumption-nonce"),
    ],
)
async def test_what_is_not_there_is_not_found(given: dict[str, str], status: int, code: str) -> None:
    async with keeping(methods=("CHAIN",)) as bench:
        reply = await bench.send("RESUME", "/", given)
        assert (reply.status, reply.error["code"]) == (status, code)
