"""What a user may say about looking up."""

from __future__ import annotations

from bespeak.agent.client.web_options import WebOptions


def test_nothing_is_allowed_by_default() -> None:
    options = WebOptions()
    assert (options.allow_private, options.refresh, options.trusted_hosts) == (False, False, ())
    assert options.most_capabilities == 100
