"""RESUME tells workflows from sessions by their ids."""

from __future__ import annotations

import pytest
from tests.service import AGENT
from tests.stateful import keeping

from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.workflows.methods import is_workflow_id
from bespeak.runtime.workflows.spec import Spec, StepSpec, encode
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.commands.steps import PAUSED, WORKFLOW

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


async def test_a_workflow_whose_time_ran_out_while_it_was_paused_is_408() -> None:
    workflow_id = "chain-" + "0" * 32
    spec = Spec(method="CHAIN", steps=(StepSpec("BOOK", "/rooms"),), authority=Authority(AGENT, (), {}), deadline=1.0)
    async with keeping(methods=("CHAIN", "PAUSE")) as bench:
        await bench.store.do(PutRecord(workflow_id, WORKFLOW, AGENT, PAUSED, encode(spec).decode()))
        reply = await bench.send("RESUME", "/", {"workflow_id": workflow_id})
        assert (reply.status, reply.error["code"]) == (408, "workflow-expired")
        assert (await bench.send("RESUME", "/", {"workflow_id": workflow_id})).status == 409
