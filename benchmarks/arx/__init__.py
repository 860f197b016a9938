"""Searches by Aegis and by ARX in turns. README.md says how to build ARX."""
