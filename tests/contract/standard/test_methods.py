"""The configuration chooses standard methods by name, by category, or all of them."""

from __future__ import annotations

from bespeak.contract.standard.methods import STANDARD, choose_methods


def test_methods_are_chosen_by_name_category_or_star() -> None:
    assert choose_methods(["log", "QUOTE"]) == ("QUOTE", "LOG")
    assert choose_methods(["communicate"]) == ("ALERT", "BROADCAST", "REPLY", "SEND", "REPORT")
    assert choose_methods(["*"]) == tuple(STANDARD)
    assert choose_methods([]) == choose_methods(["NAP"]) == ()
