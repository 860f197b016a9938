"""What the parts of a report say, each from the advice or release that it is about."""
