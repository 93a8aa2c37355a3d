"""The editor's side: a language server that says what the command line says, while a contract is being written."""
