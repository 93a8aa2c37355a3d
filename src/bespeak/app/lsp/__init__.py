"""Language server: the findings of the command line, while a contract is being written."""
