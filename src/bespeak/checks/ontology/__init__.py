"""Judgement of ontologies: whether they are consistent, and whether they may be registered."""
