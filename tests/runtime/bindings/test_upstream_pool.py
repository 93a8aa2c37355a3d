from __future__ import annotations

import resource

import httpx
import pytest

from bespeak.runtime.bindings.upstream_pool import UpstreamPool

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("https://a.example/x", "https://a.example/y?z", True),
        ("https://a.example", "https://A.example:443/", True),
        ("https://a.example", "https://b.example", False),
        ("https://a.example", "https://a.example:444", False),
    ],
)
async def test_endpoints_of_one_host_and_port_share_their_connections(first: str, second: str, shared: bool) -> None:
    pool = UpstreamPool()
    assert (pool.transport(httpx.URL(first)) is pool.transport(httpx.URL(second))) is shared
    await pool.aclose()


async def test_a_closed_pool_is_empty_and_can_be_closed_again() -> None:
    pool = UpstreamPool()
    pool.transport(httpx.URL("https://a.example"))
    assert pool.hosts == 1
    await pool.aclose()
    await pool.aclose()
    assert pool.hosts == 0


def test_calls_leave_most_descriptors_of_the_process_to_others() -> None:
    places = UpstreamPool().places._value
    assert places == resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 8
