"""Memory that is freed between blocks in use goes back to the system only if the allocator is told so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bespeak.faces.limits import _find_trim, return_memory

BLOCK, BLOCKS = 64 * 1024, 1000


def resident() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(_find_trim() is None, reason="only glibc can return memory")
def test_freed_memory_between_blocks_in_use_is_returned() -> None:
    blocks = [os.urandom(BLOCK) for _ in range(BLOCKS)]
    del blocks[::2]
    before = resident()
    return_memory()
    assert before - resident() > BLOCK * BLOCKS // 4
