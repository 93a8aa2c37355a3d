"""Endpoints as tools for language models, in the form and the JSON Schema subset of each provider."""
