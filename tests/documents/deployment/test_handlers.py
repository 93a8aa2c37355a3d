"""Handlers that a configuration binds to endpoints of an AGIS document."""

from __future__ import annotations

from bespeak.contract.handler import ExternalService, RegisteredFunction
from bespeak.documents.deployment.endpoint_toml import HandlerEntry, read_handlers
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import toml_table


def read(text: str) -> tuple[tuple[HandlerEntry, ...], list[Diagnostic]]:
    table = toml_table(text, "bespeak.toml")
    assert not isinstance(table, Diagnostic)
    return read_handlers(table, "handlers"), table.findings.found


def test_every_kind_of_handler_can_be_bound() -> None:
    entries, findings = read(
        """
        [handlers."BOOK /room"]
        type = "registered_function"
        function = "rooms.book"
        inline = true

        [handlers."fetch  /room/{id}"]
        type = "external_service"
        url = "https://rooms.example/fetch"
        method = "GET"
        """
    )
    assert findings == []
    book, fetch = entries
    assert (book.method, book.path) == ("BOOK", "/room")
    assert book.handler == RegisteredFunction(function="rooms.book", inline=True)
    assert (book.location.file, book.location.line) == ("bespeak.toml", 2)
    assert (fetch.method, fetch.path) == ("FETCH", "/room/{id}")
    assert isinstance(fetch.handler, ExternalService)


def test_a_setting_of_the_past_is_refused_with_what_to_write() -> None:
    _, [finding] = read('[handlers."BOOK /room"]\ntype = "registered_function"\nfunction = "a.b"\nblocking = true\n')
    assert (finding.severity, finding.pointer) == ("error", "/handlers/BOOK ~1room/blocking")
    assert "every `def` runs in a thread" in finding.message
    assert finding.help == "Remove it. Write `inline = true` for a quick `def` that may run in the event loop."


def test_key_without_an_endpoint_and_unknown_kind_are_errors_and_no_table_means_no_handlers() -> None:
    entries, [finding] = read('[handlers.BOOK]\ntype = "registered_function"\nfunction = "rooms.book"\n')
    assert entries == ()
    assert (finding.rule, finding.severity) == ("D104", "error")
    assert '[handlers."BOOK /reservation"]' in finding.help
    entries, findings = read('handlers."FIND /room" = "rooms.find"\n[handlers."BOOK /room"]\ntype = "function"\n')
    assert entries == ()
    assert {finding.rule for finding in findings} == {"D104", "D106"}
    assert findings
    assert read("") == ((), [])
