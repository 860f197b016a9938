"""The search for the least sum of losses by what the rule forbids."""
