"""Canaries: elements with secret coins, and what the right guesses at them prove."""
