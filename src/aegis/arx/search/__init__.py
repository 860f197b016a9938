"""The search for the least sum of losses over attributes, by hitting sets."""
