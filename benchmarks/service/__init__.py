"""The service under load, with a large catalog, and its workbench in a browser."""
