"""The catalog of approved verbs, versioned."""
