"""Arguments: from an instruction and an endpoint to schema-valid values, without a language model."""
