"""The predictive utility deviation as those estimate it who do not see the raw table."""
