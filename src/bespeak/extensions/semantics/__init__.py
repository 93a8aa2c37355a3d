"""Meaning at run time: the registry of ontologies, and what calls mean."""
