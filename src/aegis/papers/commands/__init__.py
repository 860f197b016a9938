"""Add the papers' commands (evaluate, publish, reconstruct), and read files of published tables."""
