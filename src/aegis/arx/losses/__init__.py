"""The losses that other tools minimise, and the options of these losses."""
