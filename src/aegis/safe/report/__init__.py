"""Render reports on what a file reveals, and on advice from protected summaries."""
