"""Meaning as plain data: the core ontology of the IoA draft, its rules, ontologies, profiles and alignments."""
