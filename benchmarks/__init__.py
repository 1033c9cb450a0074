"""Speed of oralib as ratios against what a user would run instead: ``python -m benchmarks``."""
