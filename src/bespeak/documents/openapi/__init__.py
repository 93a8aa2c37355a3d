"""Import of OpenAPI descriptions: a deployment with every guess listed."""
