"""A clinic whose endpoints say what they mean in the terms of two ontologies."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak import App, Context, Refusal

CLINICAL = "https://y.org/onto/clinical#"
CS = "https://ex.org/onto/cs#"
LAW = "https://ex.org/onto/law#"
SENSES = {f"{CS}LargeLanguageModel": "large language model", f"{LAW}MasterOfLaws": "Master of Laws"}

app = App("Harbour Clinic", server_id="clinic.example", operator="Harbour Clinic", contact="records@clinic.example")


@dataclass
class Summary:
    """The essence of a note."""

    summary: str
    capability: str
    """Capability as the clinic understood the call."""


@dataclass
class Expansion:
    """What an abbreviation stands for."""

    term: str
    meaning: str


@app.endpoint("SUMMARIZE", "/note", impact="informational", confidence=0.9, concepts=[f"{CLINICAL}note-summarize"])
def summarize_note(text: str, context: Context) -> Summary:
    """Summarize a clinical note for the next person who reads it.

    Outcome: The last sentence of the note, which has the assessment, is returned.
    """
    sentences = [part.strip() for part in text.split(".") if part.strip()]
    meant = context.semantic.capability_refs[0] if context.semantic is not None else "not said"
    return Summary(f"{sentences[-1]}." if sentences else "", meant)


@app.endpoint(
    "TRANSLATE",
    "/abbreviation",
    impact="informational",
    confidence=0.9,
    concepts=[f"{CS}TechTranslation", f"{LAW}LegalTranslation"],
    errors={"sense_unknown": "The call does not say what the abbreviation means."},
)
def translate_abbreviation(term: str, context: Context) -> Expansion:
    """Translate an abbreviation into the words that it stands for in the caller's domain.

    Outcome: The meaning that the semantic profile of the call binds to the term is returned.
    """
    profile = context.semantic
    bindings = profile.context.term_bindings if profile is not None and profile.context is not None else ()
    sense = next((binding.sense for binding in bindings if binding.term == term), "")
    if sense not in SENSES:
        raise Refusal("sense_unknown", f"Bind {term!r} to a sense in the profile.")
    return Expansion(term, SENSES[sense])
