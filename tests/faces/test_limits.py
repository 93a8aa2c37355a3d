"""The bounds that all connections of a process share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bespeak.faces.limits import REFUSED, UNCOUNTED, Budget, Capacity, _find_trim, return_memory

KIB = 1024
BLOCK, BLOCKS = 64 * 1024, 1000


class Holder:
    """Releases its bytes when it is dropped, unless it is busy."""

    def __init__(self, budget: Budget, *, busy: bool = False) -> None:
        self.budget = budget
        self.busy = busy
        self.dropped = False

    def hold(self, size: int) -> None:
        self.budget.hold(self, size)

    def drop(self) -> None:
        if not self.busy:
            self.dropped = True
            self.hold(0)


def test_stalled_holders_are_dropped_first_and_busy_ones_passed_over() -> None:
    budget = Budget(100 * KIB, Holder.drop)
    stalled, active, newest = (Holder(budget) for _ in range(3))
    for holder in (stalled, active, newest):
        holder.hold(40 * KIB)
    assert (stalled.dropped, active.dropped, newest.dropped) == (True, False, False)
    assert budget.held == 80 * KIB
    budget = Budget(100 * KIB, Holder.drop)
    busy, idle = Holder(budget, busy=True), Holder(budget)
    busy.hold(90 * KIB)
    idle.hold(20 * KIB)
    assert (busy.dropped, idle.dropped) == (False, True)
    assert budget.held == 90 * KIB


def test_few_bytes_are_free_and_released_ones_can_be_held_again() -> None:
    budget = Budget(100 * KIB, Holder.drop)
    large, small = Holder(budget), Holder(budget)
    large.hold(100 * KIB)
    small.hold(UNCOUNTED)
    assert budget.held == 100 * KIB
    assert not large.dropped
    budget = Budget(100 * KIB, Holder.drop)
    for _ in range(10):
        holder = Holder(budget)
        holder.hold(60 * KIB)
        holder.hold(100 * KIB)
        holder.hold(0)
        assert not holder.dropped
    assert budget.held == 0


class Crowd:
    def __init__(self, count: int) -> None:
        self.count = count


def test_connections_of_all_faces_count_together_and_refused_peers_give_way() -> None:
    capacity = Capacity(connections=3)
    agtp, http = Crowd(1), Crowd(1)
    capacity.crowds += (agtp, http)
    assert not capacity.is_full
    http.count = 2
    assert capacity.is_full
    capacity = Capacity()
    capacity.crowds.append(Crowd(capacity.connections + REFUSED - 1))
    ended: list[int] = []
    for number in range(REFUSED + 2):
        capacity.refuse(number, lambda number=number: ended.append(number), 1.0)
    assert ended == [0, 1]
    assert not capacity.is_full
    assert capacity.refused_at == 1.0
    assert [Capacity(limit).most_refused for limit in (1, 80, 10_000)] == [1, 10, REFUSED]


def resident() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(_find_trim() is None, reason="only glibc can return memory")
def test_freed_memory_between_blocks_in_use_is_returned() -> None:
    blocks = [os.urandom(BLOCK) for _ in range(BLOCKS)]
    del blocks[::2]
    before = resident()
    return_memory()
    assert before - resident() > BLOCK * BLOCKS // 4
