"""A training loop of one's own in PyTorch, with gradients by vmap; in NumPy it looks the same."""

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

import oraudit  # the audit

EXAMPLES = 1000
RATE = 0.05
STEPS = 100
CLIP = 1.0
SIGMA = 1.0
LR = 0.1


def clipped_sum(gradients):
    """The sum of the examples' gradients, each of norm at most CLIP with all tensors together."""
    squares = [each.flatten(1).square().sum(1) for each in gradients.values()]
    factors = (CLIP / sum(squares).sqrt()).clamp(max=1)
    return {name: torch.einsum("i,i...", factors, each) for name, each in gradients.items()}


def with_noise(clipped):
    """The release: normal noise is added to each number of the sum."""
    return {name: each + SIGMA * CLIP * torch.randn_like(each) for name, each in clipped.items()}


def main(canaries=0):  # canaries=1000 for a bound
    inputs = torch.randn(EXAMPLES, 20)
    labels = (inputs[:, 0] > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    weights = {name: each.detach() for name, each in model.named_parameters()}

    def loss(weights, x, y):
        return cross_entropy(functional_call(model, weights, x[None]), y[None])

    gradients_of = vmap(grad(loss), in_dims=(None, 0, 0))
    # [audit]
    told = {"clip": CLIP, "sigma": SIGMA, "rate": RATE}  # the audit: what the accountant is told
    accountant = [(SIGMA, RATE, STEPS)]  # the audit: and of the whole training
    audit = oraudit.Audit(examples=EXAMPLES, accountant=accountant, canaries=canaries)  # the audit
    for _ in range(STEPS):
        batch = torch.rand(EXAMPLES) < RATE
        x, y = inputs[batch], labels[batch]
        gradients = gradients_of(weights, x, y)
        clipped = clipped_sum(gradients)
        clipped = audit.ride(clipped, clip=CLIP, rate=RATE)  # the audit: canaries, if any, join
        noisy = with_noise(clipped)
        seen = {"per_example": gradients, "inputs": x, "weights": weights}  # the audit
        audit.step(clipped=clipped, noisy=noisy, **told, **seen)  # the audit
        weights = {name: weights[name] - LR * noisy[name] / (RATE * EXAMPLES) for name in weights}
    result = audit.result()  # the audit
    print(result)  # the audit
    # [end]
    return result


if __name__ == "__main__":
    main()
