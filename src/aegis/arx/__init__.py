"""Comparison with other anonymisation tools: the losses that they minimise, a search for these
losses, and the import of their projects.
"""
