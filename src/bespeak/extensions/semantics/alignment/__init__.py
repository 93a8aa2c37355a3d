"""Alignments of two ontologies: artifacts, signals, scores, and the use of what was accepted (IoA 7)."""
