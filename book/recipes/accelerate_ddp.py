"""Accelerate, data parallel, with Opacus: `torchrun --nproc-per-node 2 accelerate_ddp.py`.

Each process draws its own part of the batch, and the first adds the noise.
"""

import torch
from accelerate import Accelerator
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as PrivateParallel
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import oraudit  # the audit


def main():
    accelerator = Accelerator(cpu=True)
    inputs = torch.randn(1000, 20, generator=torch.Generator().manual_seed(1))  # alike on each
    examples = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    model = PrivateParallel(model.to(accelerator.device))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(examples, batch_size=50),  # of all processes together
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )  # and none of these is given to accelerator.prepare
    audit = oraudit.attach(optimizer, model, loader)  # the audit: on each process
    for _ in range(5):
        for inputs, labels in loader:
            optimizer.zero_grad()
            accelerator.backward(cross_entropy(model(inputs), labels))
            optimizer.step()
    result = audit.result()  # the audit: each process says the same of all
    if accelerator.is_main_process:  # the audit
        print(result)  # the audit
    accelerator.end_training()
    return result


if __name__ == "__main__":
    main()
