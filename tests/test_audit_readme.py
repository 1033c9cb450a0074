"""README's audit of a training: it passes an honest training, and fails one that is broken."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import oraudit
from orabook.results import recorded
from oraudit.__main__ import main

torch = pytest.importorskip("torch")

from opacus import PrivacyEngine  # noqa: E402
from torch.nn import Linear, Sequential, Tanh  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

README = (Path(__file__).parents[1] / "README.md").read_text()
(EXAMPLE,) = re.findall(r"```py\n(import oraudit\n.*?)```", README, re.DOTALL)
(REPORTED,) = re.findall(r"```text\n(FAILED .*?)\n```", README, re.DOTALL)
(COUNTED,) = re.findall(r"```text\n(counts .*?)\n```", README, re.DOTALL)
(ATTACHED,) = re.findall(r"```py\n(audit = oraudit.attach.*?)```", README, re.DOTALL)
(RIDDEN,) = re.findall(r"```py\n(audit = oraudit.Audit.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^\.venv/bin/oraudit ((?:expect|scores) .*)$", README, re.MULTILINE)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),  # of Opacus, about its hooks and its random numbers
]


def private_training(break_it):
    """A small training with Opacus; ``break_it`` changes its optimizer."""
    torch.manual_seed(1)
    inputs = torch.randn(600, 20)
    examples = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    model = Sequential(Linear(20, 16), Tanh(), Linear(16, 2))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(examples, batch_size=60),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    break_it(optimizer)

    def step(inputs, labels):
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step, model, optimizer, loader


@pytest.fixture
def readme_tests(monkeypatch):
    """README's two tests, of a training with this fault."""

    def of(break_it):
        def train():
            step, _, _, loader = private_training(break_it)
            for _ in range(10):
                for batch in loader:
                    step(*batch)

        def prepared():
            step, model, optimizer, loader = private_training(break_it)
            return step, model, optimizer, next(iter(loader))

        training = ModuleType("training")
        training.train = train
        training.prepared = prepared
        monkeypatch.setitem(sys.modules, "training", training)
        names = {}
        exec(EXAMPLE, names)
        return [names[name] for name in names if name.startswith("test_")]

    return of


def test_an_honest_training_passes_both(readme_tests):
    watched, compared = readme_tests(lambda optimizer: None)
    watched()
    compared()


def test_half_the_noise_fails_as_readme_says(readme_tests):
    def halved(optimizer):
        add_noise = optimizer.add_noise

        def half():
            told = optimizer.noise_multiplier
            optimizer.noise_multiplier = told / 2
            add_noise()
            optimizer.noise_multiplier = told

        optimizer.add_noise = half

    watched, compared = readme_tests(halved)
    with pytest.raises(AssertionError) as failed:
        watched()
    assert str(failed.value).splitlines()[0] == REPORTED
    compared()  # the noise is off there


def test_a_forgotten_clipping_fails_both(readme_tests):
    def unclipped(optimizer):
        def summed():
            for parameter in optimizer.params:
                parameter.summed_grad = parameter.grad_sample.sum(dim=0)

        optimizer.clip_and_accumulate = summed

    for test in readme_tests(unclipped):
        with pytest.raises(AssertionError, match=r"^FAILED .*: less private"):
            test()


def test_canaries_with_opacus_add_two_lines(capsys):
    """In the words of README, with the numbers of the chapter."""
    torch.manual_seed(1)
    inputs = torch.randn(600, 20)
    examples = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    model = Sequential(Linear(20, 50), Tanh(), Linear(50, 2))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(examples, batch_size=60),
        noise_multiplier=2.4224,
        max_grad_norm=1.0,
    )

    def train():
        for _ in range(10):
            for inputs, labels in loader:
                optimizer.zero_grad()
                cross_entropy(model(inputs), labels).backward()
                optimizer.step()

    names = {"oraudit": oraudit, "optimizer": optimizer, "model": model, "loader": loader}
    exec(ATTACHED, names | {"train": train})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("PASSED")
    said = [line for line in lines if line.startswith(("counts", "proved"))]
    assert list(map(without_numbers, said)) == list(map(without_numbers, COUNTED.splitlines()))


def without_numbers(line):
    """A line, cut where README cuts it."""
    return re.sub(r"[\d.]+", "#", line).partition("; all right would")[0]


def test_readme_quotes_the_chapter():
    """Its two lines are those of the honest training there."""
    found = recorded("auditing-a-real-training")
    counts, proved = COUNTED.splitlines()
    words = (
        f"counts    {found['right']:.0f} of {found['guesses']:.0f} right; {found['needed']:.0f} "
    )
    assert counts.startswith(words)
    assert f"in {found['power_for_half_the_noise']:.0%} of audits" in counts
    assert proved.startswith(f"proved    ε ≥ {int(found['bound'] * 1000) / 1000:g} at δ = 1e-05")


def test_canaries_in_a_loop_of_ones_own(capsys):
    rng = np.random.default_rng(1)

    def clipped_sum(weights):
        return rng.normal(size=weights.shape) / 40

    names = {"oraudit": oraudit, "np": np, "rng": rng, "sigma": 2.4224, "clipped_sum": clipped_sum}
    exec(RIDDEN, names | {"weights": np.zeros(1200)})
    report = capsys.readouterr().out
    assert report.startswith("PASSED")
    assert "\nproved    ε ≥ " in report


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_readme_are_answered(command, capsys):
    assert main(command.split()) == 0
    assert "a lower bound, not an estimate" in capsys.readouterr().out


def test_readme_has_both_commands():
    assert len(COMMANDS) == 2
