"""FSDP2 with Opacus's ghost clipping: `torchrun --nproc-per-node 2 fsdp2.py`.

Each process has a shard of the weights, and adds the noise of its shard.
"""

import torch
from opacus import PrivacyEngine
from opacus.utils.fsdp_utils import FSDP2Wrapper
from torch import distributed
from torch.utils.data import DataLoader, TensorDataset

import oraudit  # the audit


def main():
    distributed.init_process_group("gloo")
    inputs = torch.randn(1000, 20, generator=torch.Generator().manual_seed(1))  # alike on each
    examples = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    model = FSDP2Wrapper(model)
    model, optimizer, loss, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=torch.nn.CrossEntropyLoss(),
        data_loader=DataLoader(examples, batch_size=50),  # of all processes together
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost_fsdp",
    )
    audit = oraudit.attach(optimizer, model, loader)  # the audit: on each process
    for _ in range(5):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss(model(inputs), labels).backward()
            optimizer.step()
    result = audit.result()  # the audit: each process says the same of all
    if distributed.get_rank() == 0:  # the audit
        print(result)  # the audit
    distributed.destroy_process_group()
    return result


if __name__ == "__main__":
    main()
