"""Audits of trainings with Opacus: honest ones pass, broken ones fail with the cause in front."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

EXAMPLES = 400
BATCH = 40
STEPS = 40


class Training:
    """A small training with Opacus and the audit that stands around it.

    ``private`` is passed on to ``make_private``. The loop is cut into ``step`` so that a test can
    do more, or something else, in each step.
    """

    def __init__(
        self, *between, seed=1, adam=False, net=None, engine=None, attach=True, lr=0.1, **private
    ):
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(seed)
        self.x = torch.randn(EXAMPLES, 16)
        self.y = torch.randint(4, (EXAMPLES,))
        net = network(*between) if net is None else net
        kind = torch.optim.Adam if adam else torch.optim.SGD
        plain = private.pop("optimizer", None) or kind(net.parameters(), lr=lr)
        loader = DataLoader(TensorDataset(self.x, self.y), batch_size=BATCH)
        self.engine = engine or PrivacyEngine()
        self.criterion = torch.nn.CrossEntropyLoss()
        settings = {"noise_multiplier": 1.0, "max_grad_norm": 0.1, **private}
        parts = self.engine.make_private(
            module=net, optimizer=plain, data_loader=loader, **settings
        )
        self.net = net
        self.model, self.optimizer, self.loader = parts[0], parts[1], parts[-1]
        if len(parts) == 4:
            self.criterion = parts[2]
        self.audit = self.attach() if attach else None

    def attach(self, **options):
        from oraudit.ways.opacus import attach

        return attach(self.optimizer, self.model, self.loader, **options)

    def batches(self, steps=STEPS, loader=None):
        done = 0
        while done < steps:
            for batch in self.loader if loader is None else loader:
                yield batch
                done += 1
                if done == steps:
                    return

    def loss(self, x, y):
        return self.criterion(self.model(x), y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        self.loss(x, y).backward()
        self.optimizer.step()

    def run(self, steps=STEPS):
        for x, y in self.batches(steps):
            self.step(x, y)
        return self

    def result(self):
        return self.audit.result()


def network(*between):
    return torch.nn.Sequential(
        torch.nn.Linear(16, 12), *between, torch.nn.ReLU(), torch.nn.Linear(12, 4)
    )


def assert_fails(result, name, words="", side=None):
    """The first finding is of this check, in these words."""
    assert result.status == "failed", result.text
    first = result.findings[0]
    assert first.name == name, result.text
    assert words in first.text, result.text
    if side:
        assert first.side == side


# --------------------------------------------------------------------------------- honest variants

ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.01,
    "unclipped_num_std": 2.0,
}

HONEST = {
    "sgd": {},
    "adam": {"adam": True},
    "sum": {"loss_reduction": "sum", "lr": 0.002},
    "functorch": {"grad_sample_mode": "functorch"},
    "expanded weights": {"grad_sample_mode": "ew"},
    "per layer": {"clipping": "per_layer", "max_grad_norm": [0.05, 0.1, 0.05, 0.1]},
    "adaptive": ADAPTIVE,
    "ghost": {"grad_sample_mode": "ghost"},
}


@pytest.mark.parametrize("private", HONEST.values(), ids=HONEST)
def test_honest_trainings_pass(private):
    training = Training(**private)
    if private.get("loss_reduction") == "sum":
        training.criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    result = training.run().result()
    result.check()
    assert not result.findings, result.text
    assert "layers" not in result.text
    assert "depend" not in result.text
