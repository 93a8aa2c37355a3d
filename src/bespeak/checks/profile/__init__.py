"""Judgement of semantic profiles and registrations in the light of ontologies (IoA 5.4)."""
