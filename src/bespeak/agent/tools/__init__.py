"""Tools for language models: what a service offers, and calls of it by a model."""
