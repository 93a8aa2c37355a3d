"""Handler bindings: how the handler of an endpoint is called."""
