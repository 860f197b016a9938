"""The command line: one module per command; each calls a public function."""
