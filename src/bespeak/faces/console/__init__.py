"""The console: try and watch a service in the browser. Its JSON API is described in docs/reference/console.md."""
