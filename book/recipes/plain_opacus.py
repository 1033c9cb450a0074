"""A training with Opacus, which knows nothing of its audit.

It is watched in a unit test by `test_training.py`, as a script by `oraudit run plain_opacus.py`,
and from Python by `main`.
"""

import torch
from opacus import PrivacyEngine
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import oraudit  # the audit

EXAMPLES = 1000
BATCH = 50  # the expected size: batches are drawn by Poisson sampling


def private_training():
    """The private model, its optimizer, the loader, and what does one step."""
    inputs = torch.randn(EXAMPLES, 20)
    examples = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        data_loader=DataLoader(examples, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )

    def step(inputs, labels):
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return model, optimizer, loader, step


def train(epochs=5):
    """Train the model."""
    model, _, loader, step = private_training()
    for _ in range(epochs):
        for inputs, labels in loader:
            step(inputs, labels)
    return model


# [audit]
def main(canaries=0):
    with oraudit.watch(canaries=canaries) as audits:  # the audit: canaries=1000 for a bound
        train()
    print(audits)  # the audit
    # [end]
    return [audit.result() for audit in audits]  # the audit


if __name__ == "__main__":
    train()
