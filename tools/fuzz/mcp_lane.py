"""Invariant: whatever the fast lane of MCP answers, the SDK answers in the same way, and calls the same handler.

Run `python tools/fuzz/mcp_lane.py --seconds 600`. A third of the requests are for a server that demands tokens, a
third for one without sessions that records all calls. It prints how many requests it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import contextlib
import logging
import random
import sys
from pathlib import Path

from campaign import campaign

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faces.mcp.differential import Pair, pair
from tests.faces.mcp.mutated_requests import random_case

_running = contextlib.ExitStack()
_pairs: list[Pair] = []


def trial(source: random.Random, noted: list[object]) -> None:
    """Compare the answers to one request."""
    if not _pairs:
        kinds = ({}, {"tokens": True}, {"stateless": True, "audited": True})
        _pairs.extend(_running.enter_context(pair(**kind)) for kind in kinds)
    case = random_case(source)
    noted.append(case)
    found = source.choice(_pairs).compare(case)
    assert found is None, found


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with _running:
        code = campaign(__doc__, trial)
        print(f"the lane took {sum(each.taken for each in _pairs)} of {sum(each.seen for each in _pairs)} requests")
    sys.exit(code)
