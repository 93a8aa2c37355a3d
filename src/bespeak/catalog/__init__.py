"""The approved verbs, versioned."""
