"""Ontologies: what they say, their documents, and whether they may be registered."""
