"""Whoever is to decide a case is told: an agent in its inbox, an address by a posting."""

from __future__ import annotations

import msgspec
import pytest
from tests.messaging import ANN, BOB, contents, inbox, sent
from tests.stateful import keeping

from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.posting import TOPIC
from bespeak.state.store.commands.cases import ReadCase
from bespeak.state.store.commands.messages import NextOutbox
from bespeak.state.store.commands.workers import MeasureQueues
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

HOOK = "http://127.0.0.1:9/hook"
RAISED = {"task_id": "t-1", "reason": "scope_limit", "context": {"amount": 9}}


async def test_an_agent_finds_an_escalation_in_its_inbox_once(shared_place: str) -> None:
    async with keeping(store=open_store(shared_place)) as bench:
        raised = {**RAISED, "recipient": BOB, "priority": "urgent"}
        case_id = (await sent(bench, "ESCALATE", raised))["escalation_id"]
        assert (await sent(bench, "ESCALATE", raised))["escalation_id"] == case_id
        [message] = await inbox(bench)
        assert message["content"]["content"]["context"] == {"amount": 9}
        assert (message["sender"], message["urgency"]) == (ANN, "critical")
        confirmed = await sent(bench, "CONFIRM", {"target_id": case_id, "status": "accepted"}, BOB)
        assert confirmed["target_id"] == case_id


@pytest.mark.parametrize("recipient", [None, "the night desk", "mailto:desk@hotel.example"])
async def test_a_person_is_left_the_case_and_nothing_waits_for_delivery(recipient: str | None) -> None:
    async with keeping() as bench:
        raised = RAISED if recipient is None else {**RAISED, "recipient": recipient}
        case_id = (await sent(bench, "ESCALATE", raised))["escalation_id"]
        assert (await bench.store.read(ReadCase(case_id))).recipient == (recipient or "operator")
        assert await bench.store.read(NextOutbox("escalation")) is None
        assert (await bench.store.read(MeasureQueues(TOPIC))).postings == 0


async def test_an_address_gets_a_posting() -> None:
    document = ServerDocument(delivery=DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",)))
    async with keeping(document=document) as bench:
        case_id = (await sent(bench, "ESCALATE", {**RAISED, "recipient": HOOK}))["escalation_id"]
        [row] = [row for row in await contents(bench) if HOOK in row]
        posting = msgspec.json.decode(next(cell for cell in row if str(cell).startswith("{")))
        assert (posting["posting_id"], posting["content"]["agent_id"]) == (case_id, ANN)
