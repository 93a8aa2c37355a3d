"""The user's agreement: what is asked, and how often an answer counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.mcp_tool import Tool, make_tools
from bespeak.faces.asking import Asking
from bespeak.protocol.exchange.refusal import Outcome
from bespeak.runtime.confirmations import MOST_SUBJECT
from bespeak.state.store.commands.cases import Case
from bespeak.state.store.settings import MEMORY, CaseSettings, open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


def tool(**changes: Any) -> Tool:
    changes = {"impact": "irreversible", "intent": "Cancel a booking.", "outcome": "The room is free.", **changes}
    (made,) = make_tools([endpoint("CANCEL", "/bookings", **changes)]).values()
    return made


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store(MEMORY, role="sole")
    await opened.start()
    yield opened
    await opened.close()


async def opened(asking: Asking, arguments: dict[str, Any], caller: str = "a") -> Case:
    case = await asking.open(tool(), arguments, caller, ())
    assert isinstance(case, Case)
    return case


async def test_an_agreement_admits_one_call_and_the_same_call_is_one_case_until_then(store: Store) -> None:
    asking = Asking(store, CaseSettings(), None)
    first = await opened(asking, {"id": 1, "note": "x"})
    assert (await opened(asking, {"note": "x", "id": 1})).case_id == first.case_id
    await asking.decide(first, agreed=True)
    assert await asking.use(first, ()) is None
    assert (await opened(asking, {"id": 1, "note": "x"})).case_id != first.case_id
    case = await opened(asking, {"id": 1})
    await asking.decide(case, agreed=True)
    assert await asking.use(case, ()) is None
    assert (await asking.use(case, ())).error["code"] == "confirmation-used"


@pytest.mark.parametrize(("arguments", "caller"), [({"id": 2}, "a"), ({"id": 1}, "b")])
async def test_other_arguments_or_callers_are_other_cases(store: Store, arguments: dict[str, Any], caller: str) -> None:
    asking = Asking(store, CaseSettings(), None)
    first = await opened(asking, {"id": 1})
    assert (await opened(asking, arguments, caller)).case_id != first.case_id


async def test_nothing_is_admitted_without_an_agreement_and_cases_are_bounded(store: Store) -> None:
    asking = Asking(store, CaseSettings(), None)
    case = await opened(asking, {"id": 1})
    pending = await asking.use(case, ())
    await asking.decide(case, agreed=False)
    rejected = await asking.use(case, ())
    assert (pending.error["code"], rejected.error["code"]) == ("confirmation-pending", "confirmation-rejected")
    asking = Asking(store, CaseSettings(), "bespeak cases accept {case} rooms")
    assert "`bespeak cases accept conf-1 rooms`" in asking.remedy("conf-1")
    elsewhere = Asking(store, CaseSettings(), None)
    assert "elicitation" in elsewhere.remedy("conf-1")
    assert "operator of the service" in elsewhere.remedy("conf-1", demanded=True)
    asking = Asking(store, CaseSettings(most_open=1), None)
    large = await asking.open(tool(), {"note": "x" * MOST_SUBJECT}, "a", ())
    assert isinstance(large, Outcome)
    assert large.error["code"] == "too-large-to-confirm"
    await opened(asking, {"id": 1})
    other = await asking.open(tool(), {"id": 2}, "a", ())
    assert isinstance(other, Outcome)
    assert other.error["code"] == "too-many-cases"
