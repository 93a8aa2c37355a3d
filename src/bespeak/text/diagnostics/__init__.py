"""One finding type shared by loaders, registration, diffs and server start-up."""
