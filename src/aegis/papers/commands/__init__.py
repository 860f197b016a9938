"""Commands of the papers: evaluate, publish, reconstruct; and files of published tables."""
