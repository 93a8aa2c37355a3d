"""Rules over contracts; the server registers an endpoint only if the normative ones find nothing."""
