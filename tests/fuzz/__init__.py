"""Fuzzing that stays: mutated inputs, rechecked releases, kills and faults.

`python -m tests.fuzz --inputs 100000 --releases 2000 --kills 300 --faults` runs at length and says at the end
what was tried and what failed; the tests in this folder run a little of each. Every case follows
from its kind and a seed, so that `python -m tests.fuzz --only KIND:SEED` brings a failure back.
"""
