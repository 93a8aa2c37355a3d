import pytest
from library import app

import bespeak

AGENT = "0a3f" * 16


def test_a_book_is_reserved_once_per_key() -> None:
    with bespeak.connect_sync(app, agent_id=AGENT, scopes=["books:lend"]) as library:
        assert library.call("RESERVE", "/books/{isbn}", isbn="0441013597") == {"loans": 1}
        for _ in range(2):
            reply = library.request("RESERVE", "/books/{isbn}", {"isbn": "0441013597"}, idempotency_key="a1")
            assert reply.output == {"loans": 2}


def test_a_caller_without_the_scope_is_refused() -> None:
    with bespeak.connect_sync(app, agent_id=AGENT) as library, pytest.raises(bespeak.AuthorityMissingError):
        library.call("RESERVE", "/books/{isbn}", isbn="0441013597")
