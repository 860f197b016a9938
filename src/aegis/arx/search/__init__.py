"""The search for the smallest sum of losses by hitting sets of the rule."""
