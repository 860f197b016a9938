"""Run Aegis from the command line; each command is a module that calls a public function."""
