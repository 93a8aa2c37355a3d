"""Texts of tools: what a tool is for, and what it does besides."""

from __future__ import annotations

import pytest

from bespeak.documents.mcp.candidates import goal


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("Get recent messages from a channel.", "Get recent messages from a channel"),
        ("Notion | Retrieve a user\nError Responses:\n400: Bad request", "Retrieve a user"),
        ("🎯 Purpose:\n  1. Retrieves a list of objects.\n📦 Returns:\n  1. Objects.", "Retrieves a list of objects"),
        ("🛡️ Guardrails:\n 1. This tool modifies data.\n🎯 Purpose:\n 1. Creates objects.", "Creates objects"),
        ("## Weather\n\n- Shows the weather of a city.", "Shows the weather of a city"),
        ("Weather of a city", "Weather of a city"),
        ("", ""),
    ],
)
def test_goal_is_the_first_sentence_without_headings_and_labels(description: str, sentence: str) -> None:
    assert goal(description) == sentence
