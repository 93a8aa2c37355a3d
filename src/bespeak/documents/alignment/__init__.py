"""Alignment artifacts as documents: the JSON of the draft, SSSOM TSV and the Alignment API format."""
