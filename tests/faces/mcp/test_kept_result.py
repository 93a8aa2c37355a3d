"""Results that are kept for their callers."""

from __future__ import annotations

from bespeak.faces.mcp import results as kept_result
from bespeak.faces.mcp.results import LIFETIME, KeptResults


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def keeping(clock: Clock | None = None) -> KeptResults:
    return KeptResults("Rooms.example", 10, clock or Clock())


def kept(results: KeptResults, text: str = "0123456789abcdef", caller: str = "ann") -> str:
    uri = results.keep(text, "application/json", caller)
    assert uri is not None
    return uri


def test_a_result_is_read_whole_or_in_parts() -> None:
    results = keeping()
    uri = kept(results)
    assert uri.startswith("bespeak://rooms.example/results/")
    assert results.read(uri, "ann") == {"uri": uri, "mimeType": "application/json", "text": "0123456789abcdef"}
    assert results.read(f"{uri}/2", "ann") == {"uri": f"{uri}/2", "mimeType": "text/plain", "text": "abcdef"}
    assert results.parts("0123456789abcdef") == 2
    for wrong in ("0", "3", "x", "1/2", "-1", "９"):
        assert results.read(f"{uri}/{wrong}", "ann") is None


def test_a_result_belongs_to_its_caller() -> None:
    results = keeping()
    uri = kept(results)
    assert results.read(uri, "bob") is None
    assert results.read(uri, "") is None
    assert results.read("bespeak://rooms.example/results/x", "ann") is None
    assert results.read("bespeak://rooms.example/manifest", "ann") is None


def test_a_result_is_forgotten_after_a_while() -> None:
    clock = Clock()
    results = keeping(clock)
    uri = kept(results)
    clock.now = LIFETIME - 1
    assert results.read(uri, "ann") is not None
    clock.now = LIFETIME
    assert results.read(uri, "ann") is None


def test_the_oldest_results_make_room() -> None:
    results = keeping()
    uris = [kept(results) for _ in range(kept_result.MOST_KEPT_RESULTS + 1)]
    assert results.read(uris[0], "ann") is None
    assert results.read(uris[1], "ann") is not None


def test_all_results_together_are_bounded() -> None:
    results = keeping()
    large = "a" * (kept_result.MOST_KEPT_CHARACTERS // 4)
    uris = [kept(results, large) for _ in range(5)]
    assert [results.read(uri, "ann") is not None for uri in uris] == [False, True, True, True, True]
    assert results.keep(large + "a", "text/plain", "ann") is None
