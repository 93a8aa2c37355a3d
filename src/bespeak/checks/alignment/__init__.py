"""Alignment of two ontologies: signals, scores, conflicts, and the use of what was accepted (IoA 7)."""
