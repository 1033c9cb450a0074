"""Real trainings: DP-SGD by Opacus on PyTorch, with canaries among the data.

A canary is an ordinary example with a linear loss. Its input is 0 except for one feature, and its
loss is a multiple of one output of a linear model. So its gradient is 0 except on one weight,
whatever the weights are, and Opacus clips it to the clipping threshold like any other. The other
examples are scikit-learn's handwritten digits, with their usual loss.

Coins decide which canaries are included. A canary that is left out stays in the data with a loss of
0, so that the number of examples does not depend on the coins: Opacus scales gradients by it.

Opacus is not changed: sampler, clipping and noise are all audited. This needs ``make torch``.
"""

from orabook.trainings.leak import release_noise

__all__ = ["release_noise"]
