"""Published documents of a contract; each is a pure function of the model."""
