"""Pages and sections on what a file gives away, and on advice from protected summaries."""
