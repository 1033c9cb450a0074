"""Audits of scores, guesses and counts from anywhere, and the files that hold them."""
