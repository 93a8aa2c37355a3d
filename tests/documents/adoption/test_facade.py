"""Files name the command that wrote them."""

from __future__ import annotations

from bespeak.documents.adoption.facade import ImportOrigin, made_by


def test_files_of_an_origin_begin_with_the_command_that_made_them() -> None:
    assert ImportOrigin(command="mcp", form="a tool list").made_by == made_by("mcp") == "Made by `bespeak import mcp`"
