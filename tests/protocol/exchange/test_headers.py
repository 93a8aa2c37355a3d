"""Header blocks and responses."""

from __future__ import annotations

from bespeak.protocol.exchange.headers import HeaderBlock, is_header_name, is_header_value
from bespeak.protocol.exchange.messages import Response


def test_a_block_is_encoded_once_and_can_grow() -> None:
    block = HeaderBlock(("Server-ID", "a.example"))
    longer = block.plus(("Content-Type", "application/json"))
    assert block.encoded == b"Server-ID: a.example\r\n"
    assert longer.encoded == b"Server-ID: a.example\r\nContent-Type: application/json\r\n"


def test_a_header_is_found_in_either_place_by_any_case() -> None:
    response = Response(200, b"", HeaderBlock(("Server-ID", "a")), (("Task-ID", "t"),))
    assert (response.header("server-id"), response.header("TASK-ID"), response.header("ETag")) == ("a", "t", None)


def test_a_value_with_line_breaks_is_not_a_header_value() -> None:
    assert is_header_value("a b\tc")
    assert not any(is_header_value(value) for value in ("a\r\nb", "a\x00", "a\x7f", "\n"))


def test_a_name_is_one_token() -> None:
    assert is_header_name("X-Api-Key")
    assert not any(is_header_name(name) for name in ("", "a b", "a:", "ä"))
