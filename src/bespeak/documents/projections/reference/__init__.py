"""The reference of a service for people who read it in a browser."""
