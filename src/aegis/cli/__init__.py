"""Run Aegis from the command line. Each command is a module that calls a public function."""
