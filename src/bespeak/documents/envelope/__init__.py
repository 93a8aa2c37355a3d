"""Semantic envelopes and capability registrations: JSON-LD to profiles and back (IoA 6)."""
