"""From an OpenAPI description to a deployment, with every guess on the way told."""
