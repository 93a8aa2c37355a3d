from library import app

import bespeak


def test_two_agents_reserve_in_the_same_library() -> None:
    with bespeak.connect_sync(app, as_="ann", scopes=["books:lend"]) as ann:
        bob = ann.for_agent("bob", scopes=["books:lend"])
        eve = ann.for_agent("eve")
        assert ann.call("RESERVE", "/books/{isbn}", isbn="0441013597") == {"loans": 1}
        assert bob.call("RESERVE", "/books/{isbn}", isbn="0441013597") == {"loans": 2}
        assert eve.request("RESERVE", "/books/{isbn}", {"isbn": "0441013597"}).status == 455
