"""Speed and memory of every step, as ratios within one run: `python -m benchmarks --help`."""
