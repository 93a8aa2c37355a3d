"""Proposals in the store: one synthesis for a contract, which ends with its session, its time or its release."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.state.store.single import only, reason

from bespeak.extensions.negotiation import store as proposals
from bespeak.extensions.negotiation.store import (
    TOPIC,
    DecideProposal,
    Filed,
    FileProposal,
    FindNegotiation,
    ListChanges,
    ListProposals,
    ProposalRow,
    PublishProposal,
    ReadProposal,
    ReleaseSynthesis,
    RevokeSynthesis,
    UseSynthesis,
    proposal_id_of,
)
from bespeak.state.store.commands.endpoints import ReadRevision
from bespeak.state.store.commands.sessions import BindSession
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

AGENT, OTHER, SESSION = "a" * 64, "b" * 64, "session-1"


class TimePasses(Command, frozen=True):
    """Puts the end of all rows of a table into the past."""

    table: str = "proposals"

    def steps(self) -> Steps:
        yield Statement(f"UPDATE {self.table} SET expires = 1")


def file(number: int = 1, state: str = "approved", **fields: Any) -> FileProposal:
    given: dict[str, Any] = {
        "negotiation_id": "n1",
        "agent_id": AGENT,
        "session_id": "",
        "method": "FIND",
        "path": "/rooms/cheap",
        "digest": "d1",
        "document": "{}",
        "granted": 60.0,
    }
    given |= fields
    return FileProposal(proposal_id=f"prop-{number}", state=state, **{"lasts": given["granted"], **given})


def find(**fields: Any) -> FindNegotiation:
    given: dict[str, Any] = {"agent_id": AGENT, "session_id": "", "method": "FIND", "path": "/rooms/cheap"}
    return FindNegotiation(**{**given, "contract": "", **fields})


async def read(store: Store, number: int = 1) -> ProposalRow:
    found = await store.read(ReadProposal(f"prop-{number}"))
    assert isinstance(found, ProposalRow)
    return found


async def test_proposal_is_read_back_unchanged(store: Store) -> None:
    filed = await only(store, file(document='{"a": 1}'))
    assert filed == Filed(await read(store), new=True)
    assert filed.proposal.document == '{"a": 1}'
    assert (filed.proposal.state, filed.proposal.persistent, filed.proposal.published) == ("approved", False, False)
    assert filed.proposal.synthesis_id == "syn-1"
    assert proposal_id_of("syn-1") == "prop-1"
    assert await store.read(ReadProposal("prop-2")) is None


async def test_the_same_contract_is_one_synthesis_while_it_lives(store: Store) -> None:
    await store.do(file())
    again = await only(store, file(2))
    assert (again.proposal.proposal_id, again.new) == ("prop-1", False)
    assert (await only(store, file(3, agent_id=OTHER))).new
    await store.do(TimePasses())
    assert (await only(store, file(4))).new


async def test_synthesis_that_is_approved_again_is_the_newest(store: Store) -> None:
    first = (await only(store, file(1))).proposal
    second = (await only(store, file(2, digest="d2"))).proposal
    again = (await only(store, file(3))).proposal
    assert again.proposal_id == first.proposal_id
    assert again.revision > second.revision > first.revision
    assert [row.proposal_id for row in await store.read(ListChanges(second.revision))] == ["prop-1"]
    await store.do(file(4, "pending", digest="d4"))
    assert (await only(store, file(5, "pending", digest="d4"))).proposal.revision == 0


@pytest.mark.parametrize("state", ["approved", "pending"])
async def test_contract_that_is_carried_out_in_another_way_is_another_synthesis(store: Store, state: str) -> None:
    await store.do(file(1, state))
    filed = await only(store, file(2, document='{"other": 1}'))
    assert (filed.new, filed.proposal.proposal_id) == (True, "prop-2")
    assert (await read(store, 1)).state == "released"


async def test_processes_that_approve_at_once_make_one_synthesis(first: Store, second: Store) -> None:
    stores = (first, second)
    filed = await asyncio.gather(*(only(stores[number % 2], file(number)) for number in range(6)))
    assert len({each.proposal.proposal_id for each in filed}) == 1
    assert sum(each.new for each in filed) == 1


async def test_synthesis_of_a_session_ends_with_it(store: Store) -> None:
    await store.do(BindSession(SESSION, AGENT, "", 60.0))
    await store.do(file(session_id=SESSION, granted=60.0))
    assert await only(store, UseSynthesis("prop-1", 60.0)) == pytest.approx(60, abs=5)
    await store.do(TimePasses("sessions"))
    assert (await read(store)).state == "expired"
    # The id of the session begins a new one, which has nothing of the old.
    await store.do(BindSession(SESSION, AGENT, "", 60.0))
    assert (await read(store)).state == "expired"
    assert await only(store, UseSynthesis("prop-1", 60.0)) is None
    assert (await only(store, file(2, session_id=SESSION))).new


async def test_synthesis_without_a_session_lives_as_long_as_it_is_used(store: Store) -> None:
    await store.do(file(granted=0.5))
    assert await only(store, UseSynthesis("prop-1", 40.0)) == 10.0
    proposal = await read(store)
    assert proposal.expires - proposal.created == pytest.approx(40, abs=5)
    await store.do(TimePasses())
    assert await only(store, UseSynthesis("prop-1", 40.0)) is None


async def test_use_does_not_extend_what_was_granted_for_a_time(store: Store) -> None:
    await store.do(file(persistent=True, granted=100.0))
    before = await read(store)
    assert await only(store, UseSynthesis("prop-1", 1e6)) == pytest.approx(100, abs=5)
    assert (await read(store)).expires == before.expires


async def test_each_agent_has_a_limit_of_living_and_pending_proposals(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.do(file(1, digest="d1", most_live=2))
    await store.do(file(2, "pending", digest="d2", most_live=2))
    assert await only(store, file(3, digest="d3", most_live=2)) == Conflict("too-many", {"most": 2})
    assert (await only(store, file(4, digest="d3", most_live=2, agent_id=OTHER))).new
    monkeypatch.setattr(proposals, "MOST_LIVE", 2)
    assert await reason(store, file(5, digest="d5", agent_id="c" * 64)) == "too-many"
    await store.do(TimePasses())
    assert (await only(store, file(6, digest="d3", most_live=2))).new


async def test_contracts_of_an_agent_have_a_limit_of_their_size(store: Store) -> None:
    large = "x" * proposals.MEAN_SIZE
    await store.do(file(1, document=large, most_live=2))
    assert await reason(store, file(2, digest="d2", document=f"{large}x", most_live=2)) == "too-large"
    assert (await only(store, file(3, digest="d3", document=large, most_live=2))).new
    assert (await only(store, file(4, agent_id=OTHER, document=large, most_live=2))).new


async def test_oldest_rejected_proposals_of_an_agent_are_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "MOST_REJECTED", 3)
    await store.do(file(9, "rejected", agent_id=OTHER))
    for number in range(6):
        await store.do(file(number, "rejected", path=f"/rooms/{number}"))
    kept = {row.proposal_id for row in await store.read(ListProposals("rejected"))}
    assert len(kept) == 4
    assert kept > {"prop-9", "prop-5"}


@pytest.mark.parametrize("is_published", [True, False])
async def test_operator_revokes_a_synthesis(store: Store, is_published: bool) -> None:
    await store.do(file())
    if is_published:
        await store.do(PublishProposal("prop-1", 60.0))
    before = await store.read(ReadRevision(TOPIC))
    row = await only(store, RevokeSynthesis("prop-1", "operator:kim", "It is wrong."))
    assert (row.state, row.decided_by, row.reason) == ("revoked", "operator:kim", "It is wrong.")
    assert [each.state for each in await store.read(ListChanges(before))] == ["revoked"]
    assert await only(store, UseSynthesis("prop-1", 60.0)) is None
    assert await only(store, RevokeSynthesis("prop-1", "operator:kim")) == Conflict(
        "not-approved", {"state": "revoked"}
    )
    assert await reason(store, RevokeSynthesis("prop-2", "operator:kim")) == "not-found"
    assert (await store.read(find())).revoked
    assert not (await store.read(find(path="/other"))).revoked
    assert not (await store.read(find(agent_id=OTHER))).revoked


async def test_rejections_of_a_negotiation_are_counted(store: Store) -> None:
    for number in (1, 2):
        filed = await only(store, file(number, "rejected", digest=f"d{number}"))
        assert filed.rejections == number
    await store.do(file(9, "rejected", agent_id=OTHER))
    assert (await store.read(find())).rejections == 2, "found by what is negotiated"
    assert (await store.read(find(path="/other"))).rejections == 0
    found = await store.read(find(path="/other", negotiation_id="n1"))
    assert (found.negotiation_id, found.rejections) == ("n1", 2)
    assert (await store.read(find(agent_id="c" * 64, negotiation_id="n1"))).rejections == 0
    await store.do(TimePasses())
    assert (await store.read(find())).rejections == 0


async def test_counter_proposal_is_found_by_its_digest_and_only_by_its_agent(store: Store) -> None:
    await store.do(file(1, "rejected", counter_digest="c1", document="offer"))
    assert (await store.read(find(contract="c1"))).offered == "offer"
    assert (await store.read(find(contract="d1"))).offered is None
    assert (await store.read(find(contract="c1", agent_id=OTHER))).offered is None


async def test_operator_decides_a_pending_proposal_once(store: Store) -> None:
    await store.do(file(1, "pending", granted=30.0, lasts=600.0))
    assert await store.read(ReadRevision(TOPIC)) == 0
    decided = await only(store, DecideProposal("prop-1", "approved", "operator:kim", "fine"))
    assert (decided.state, decided.decided_by, decided.reason) == ("approved", "operator:kim", "fine")
    assert decided.expires - decided.decided_at == pytest.approx(30, abs=5)
    assert await reason(store, DecideProposal("prop-1", "rejected", "operator:kim")) == "decided"
    assert await reason(store, DecideProposal("prop-2", "rejected", "operator:kim")) == "not-found"
    await store.do(file(3, "pending", digest="d3"), TimePasses())
    assert await reason(store, DecideProposal("prop-3", "approved", "operator:kim")) == "expired"


async def test_proposal_whose_session_has_ended_can_only_be_rejected(store: Store) -> None:
    await store.do(BindSession(SESSION, AGENT, "", 60.0))
    await store.do(file(1, "pending", session_id=SESSION))
    await store.do(TimePasses("sessions"))
    assert await reason(store, DecideProposal("prop-1", "approved", "operator:kim")) == "ended"
    assert (await read(store)).state == "pending"
    assert (await only(store, DecideProposal("prop-1", "rejected", "operator:kim"))).state == "rejected"


async def test_published_synthesis_outlives_its_session(store: Store) -> None:
    await store.do(BindSession(SESSION, AGENT, "", 60.0))
    await store.do(file(session_id=SESSION))
    published = await only(store, PublishProposal("prop-1", 1000.0))
    assert (published.persistent, published.published) == (True, True)
    await store.do(TimePasses("sessions"))
    assert (await read(store)).state == "approved"
    assert await reason(store, PublishProposal("prop-2", 1.0)) == "not-found"
    await store.do(file(2, "rejected"))
    assert await only(store, PublishProposal("prop-2", 1.0)) == Conflict("not-approved", {"state": "rejected"})


async def test_only_its_agent_releases_a_synthesis(store: Store) -> None:
    await store.do(file(1), file(2, digest="d2", persistent=True))
    assert await reason(store, ReleaseSynthesis("prop-1", OTHER)) == "not-found"
    assert await reason(store, ReleaseSynthesis("prop-2", OTHER)) == "not-found"
    await store.do(PublishProposal("prop-2", 60.0))
    assert await reason(store, ReleaseSynthesis("prop-2", OTHER)) == "of-another"
    assert (await only(store, ReleaseSynthesis("prop-1", AGENT))).state == "released"
    assert await reason(store, ReleaseSynthesis("prop-1", AGENT)) == "not-found"
    assert await only(store, UseSynthesis("prop-1", 60.0)) is None


@pytest.mark.parametrize("state", ["pending", "rejected"])
async def test_agent_withdraws_a_proposal_that_was_not_approved(store: Store, state: str) -> None:
    await store.do(file(1, state))
    assert await reason(store, ReleaseSynthesis("prop-1", OTHER)) == "not-found"
    assert (await only(store, ReleaseSynthesis("prop-1", AGENT))).state == "released"
    assert await store.read(ReadProposal("prop-1")) is None
    assert (await store.read(find())).rejections == 0


@pytest.mark.parametrize("is_called", [True, False])
async def test_synthesis_that_was_never_called_is_not_kept_after_its_release(store: Store, is_called: bool) -> None:
    await store.do(file())
    if is_called:
        await store.do(UseSynthesis("prop-1", 600.0))
    await store.do(ReleaseSynthesis("prop-1", AGENT))
    assert [row.state for row in await store.read(ListChanges(1))] == ["released"], "other processes are told"
    await store.do(PurgeExpired(kept=3600.0))
    assert (await store.read(ReadProposal("prop-1")) is not None) is is_called


async def test_changes_are_listed_in_their_order(store: Store) -> None:
    assert await store.read(ReadRevision(TOPIC)) == 0
    await store.do(file(1, digest="d1"), file(2, "rejected"), file(3, "pending", digest="d3"), file(4, digest="d4"))
    assert await store.read(ReadRevision(TOPIC)) == 2
    assert [each.proposal_id for each in await store.read(ListChanges(0))] == ["prop-1", "prop-4"]
    await store.do(ReleaseSynthesis("prop-1", AGENT))
    await store.do(PublishProposal("prop-4", 60.0))
    changes = await store.read(ListChanges(2))
    assert [(each.proposal_id, each.state, each.revision) for each in changes] == [
        ("prop-1", "released", 3),
        ("prop-4", "approved", 4),
    ]
    assert [each.proposal_id for each in await store.read(ListChanges(0))] == ["prop-4"]


async def test_proposals_are_listed_by_state(store: Store) -> None:
    await store.do(file(1), file(2, "rejected"), file(3, "pending", digest="d3"))
    assert [each.proposal_id for each in await store.read(ListProposals())] == ["prop-1", "prop-2", "prop-3"]
    assert [each.proposal_id for each in await store.read(ListProposals("pending"))] == ["prop-3"]
    assert len(await store.read(ListProposals(limit=2))) == 2
    await store.do(TimePasses())
    assert [each.state for each in await store.read(ListProposals())] == ["expired", "rejected", "expired"]


async def test_proposals_are_removed_some_time_after_their_end(store: Store) -> None:
    await store.do(file(1), file(2, "rejected", granted=-100.0))
    assert await only(store, PurgeExpired(kept=50.0)) == 1
    assert await only(store, PurgeExpired(kept=50.0)) == 0
    assert (await read(store)).state == "approved"
