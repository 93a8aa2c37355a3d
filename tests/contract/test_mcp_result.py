"""Results of tool calls: output and structured content, errors with a remedy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.mcp_tool import Tool, make_tools, result_of
from bespeak.protocol.exchange.refusal import Outcome


def tool(**changes: Any) -> Tool:
    (made,) = make_tools([endpoint("FIND", "/rooms", **changes)]).values()
    return made


def error(outcome: Outcome, of: Tool | None = None) -> dict[str, Any]:
    result = result_of(of or tool(), outcome)
    assert result["isError"]
    found: dict[str, Any] = msgspec.json.decode(result["content"][0]["text"])["error"]
    return found


def test_an_object_is_text_and_structured_content() -> None:
    result = result_of(tool(), Outcome(200, {"a": 1}))
    assert result == {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}, "isError": False}


def test_mapped_call_is_noted_in_the_metadata_whatever_came_of_it() -> None:
    for outcome in (Outcome(200, {}, mapping="m"), Outcome(409, error={"code": "x", "message": "y"}, mapping="m")):
        assert result_of(tool(), outcome)["_meta"] == {"bespeak/semantic-mapping": "m"}


def test_a_list_is_wrapped_if_its_schema_is() -> None:
    of = tool(output_schema={"type": "array"})
    assert result_of(of, Outcome(200, [1]))["structuredContent"] == {"result": [1]}
    assert "structuredContent" not in result_of(tool(), Outcome(200, [1]))


def test_text_of_a_service_is_passed_on_as_text() -> None:
    assert result_of(tool(), Outcome(200, "hello"))["content"] == [{"type": "text", "text": "hello"}]


def test_an_output_that_breaks_the_published_schema_is_not_passed_on() -> None:
    of = tool(output_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    found = error(Outcome(200, {"secret": 1}), of)
    assert found["code"] == "output-validation-failed"
    assert "secret" not in str(found)


def test_a_declared_error_keeps_code_message_and_details() -> None:
    given = {"code": "taken", "message": "Taken.", "details": {"next": "14"}, "method": "FIND", "path": "/rooms"}
    found = error(Outcome(422, error=given))
    assert found == {
        "code": "taken",
        "message": "Taken.",
        "details": {"next": "14"},
        "remedy": "Act on the message and its details, or call again with other arguments.",
    }


@pytest.mark.parametrize(
    ("outcome", "remedy"),
    [
        (Outcome(455, error={"missing_scopes": ["a:b", "c:d"]}), "--scope a:b --scope c:d"),
        (Outcome(401), "--agent-id"),
        (Outcome(403, error={"remedy": "Say please."}), "Say please."),
    ],
)
def test_every_refusal_says_what_to_do(outcome: Outcome, remedy: str) -> None:
    of = tool(input_schema={"type": "object", "properties": {"beds": {}}})
    assert remedy in error(outcome, of)["remedy"]


def test_a_warning_is_in_the_meta_data() -> None:
    result = result_of(tool(), Outcome(200, {}, warning="deprecated; successor=QUERY"))
    assert result["_meta"] == {"bespeak/warning": "deprecated; successor=QUERY"}
