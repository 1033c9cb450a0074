"""The way into trainings with Opacus: an audit stands around the private optimizer.

An optimizer of Opacus clips and sums (``clip_and_accumulate``; with ghost clipping the backward
pass clips, and ``accumulate`` sums), adds noise (``add_noise``), tells the accountant (its step
hook), and lets the optimizer that it wraps move the weights. The audit looks between these calls
and at the hooks of that optimizer. It changes none of their results, draws no random number, and
its ``detach`` takes it off. An error of its own never reaches the training.
"""
