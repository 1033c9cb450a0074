"""Recipes of book/recipes: each passes as it is, and fails with its cause once it is broken."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from oraudit.__main__ import main as oraudit_command

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "book" / "recipes"
#: The most lines of a recipe, which are read and copied.
LONGEST = 60
#: Seconds after which two processes must have trained.
PATIENCE = 240


def trains(test):
    """Mark a test that trains; Opacus, Transformers and JAX have warnings of their own."""
    for mark in (pytest.mark.torch, pytest.mark.filterwarnings("ignore")):
        test = mark(test)
    return test


@pytest.fixture
def recipe(monkeypatch, tmp_path):
    """A recipe as a module, in a folder of its own for what it writes."""

    def load(name, *packages):
        for package in packages:
            pytest.importorskip(package)
        monkeypatch.syspath_prepend(RECIPES)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    yield load
    for path in RECIPES.glob("*.py"):
        sys.modules.pop(path.stem, None)


def halve_noise(monkeypatch):
    """Add half the noise with Opacus, whose accountant is told of all of it."""
    from opacus.optimizers import DPOptimizer

    add_noise = DPOptimizer.add_noise

    def half(optimizer):
        told = optimizer.noise_multiplier
        optimizer.noise_multiplier = told / 2
        add_noise(optimizer)
        optimizer.noise_multiplier = told

    monkeypatch.setattr(DPOptimizer, "add_noise", half)


#: The cause that is named where half of the noise is there, as it is measured.
HALF = r"FAILED +the noise is 0\.(49\d|5|50\d) of what the accountant was told: less private\n"


def has_half_the_noise(report):
    return re.match(HALF, str(report)) is not None


# ------------------------------------------------------------------------------------ in a process


@trains
def test_plain_opacus(recipe, capsys):
    (result,) = recipe("plain_opacus", "opacus").main()
    assert result.status == "passed"
    assert str(result) in capsys.readouterr().out


@trains
def test_plain_opacus_with_half_the_noise(recipe, monkeypatch):
    plain_opacus = recipe("plain_opacus", "opacus")
    halve_noise(monkeypatch)
    (result,) = plain_opacus.main()
    assert has_half_the_noise(result)


@trains
def test_unit_tests(recipe):
    tests = recipe("test_training", "opacus")
    tests.test_training_is_private_as_stated()
    tests.test_an_example_moves_a_step_by_at_most_the_clip()


@trains
def test_unit_tests_without_clipping(recipe, monkeypatch):
    tests = recipe("test_training", "opacus")
    from opacus.optimizers import DPOptimizer

    def unclipped(optimizer):
        for parameter in optimizer.params:
            parameter.summed_grad = parameter.grad_sample.sum(dim=0)

    monkeypatch.setattr(DPOptimizer, "clip_and_accumulate", unclipped)
    for test in (
        tests.test_training_is_private_as_stated,
        tests.test_an_example_moves_a_step_by_at_most_the_clip,
    ):
        with pytest.raises(AssertionError, match=r"^FAILED .*: less private"):
            test()


@trains
def test_command_on_plain_opacus(recipe, monkeypatch, capsys):
    recipe("plain_opacus", "opacus")
    script = str(RECIPES / "plain_opacus.py")
    assert oraudit_command(["run", script]) == 0
    assert "PASSED" in capsys.readouterr().out
    halve_noise(monkeypatch)
    assert oraudit_command(["run", script]) == 1
    assert re.search(HALF, capsys.readouterr().out)


@trains
def test_own_loop(recipe):
    assert recipe("own_loop", "torch").main().status == "passed"


@trains
def test_own_loop_with_twice_the_clip(recipe, monkeypatch):
    own_loop = recipe("own_loop", "torch")
    clipped_sum = own_loop.clipped_sum

    def doubled(gradients):
        halves = {name: each / 2 for name, each in gradients.items()}
        return {name: 2 * each for name, each in clipped_sum(halves).items()}

    monkeypatch.setattr(own_loop, "clipped_sum", doubled)
    cause = "FAILED    examples are clipped at 2 C: an example adds up to 2 C: less private"
    assert str(own_loop.main()).startswith(cause)


@trains
@pytest.mark.parametrize("name", ["plain_opacus", "own_loop"])
def test_canaries_join(recipe, name):
    result = recipe(name, "opacus").main(canaries=1000)
    counts = (result[0] if isinstance(result, list) else result).counts
    assert counts.canaries == 1000


@trains
def test_jax_loop(recipe):
    assert recipe("jax_loop", "jax_privacy", "optax").main().status == "passed"


@trains
def test_jax_loop_with_half_the_noise(recipe, monkeypatch):
    jax_loop = recipe("jax_loop", "jax_privacy", "optax")
    privatizer = jax_loop.gaussian_privatizer

    def halved(stddev, **options):
        return privatizer(stddev=stddev / 2, **options)

    monkeypatch.setattr(jax_loop, "gaussian_privatizer", halved)
    assert has_half_the_noise(jax_loop.main())


@trains
@pytest.mark.slow
def test_trainer_with_lora(recipe, monkeypatch):
    trainer_lora = recipe("trainer_lora", "opacus", "transformers", "peft")
    result = trainer_lora.main()
    assert result.status == "passed"
    assert "layers' rules" not in str(result)  # they were looked at, as the loss is not an output
    halve_noise(monkeypatch)
    assert has_half_the_noise(trainer_lora.main())


# ------------------------------------------------------------------------------------ two processes

#: What each of two processes does; the group of processes can be made only once.
TOGETHER = """
import json, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import torch.distributed as distributed
import accelerate_ddp, fsdp2
from opacus import optimizers

def halve_noise(kind):
    add_noise = kind.add_noise
    def half(optimizer):
        told = optimizer.noise_multiplier
        optimizer.noise_multiplier = told / 2
        add_noise(optimizer)
        optimizer.noise_multiplier = told
    kind.add_noise = half

distributed.init_process_group("gloo")
distributed.init_process_group = distributed.destroy_process_group = lambda *_: None
reports = [str(recipe.main()) for recipe in (accelerate_ddp, fsdp2)]
halve_noise(optimizers.DistributedDPOptimizer)
halve_noise(optimizers.FSDPOptimizerFastGradientClipping)
reports += [str(recipe.main()) for recipe in (accelerate_ddp, fsdp2)]
Path(sys.argv[1], f"{distributed.get_rank()}.json").write_text(json.dumps(reports))
"""


@trains
@pytest.mark.slow
def test_two_processes(tmp_path):
    for package in ("opacus", "accelerate"):
        pytest.importorskip(package)
    script = tmp_path / "together.py"
    script.write_text(TOGETHER)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    environment = {**os.environ, "PYTHONPATH": str(RECIPES), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launch, "--nproc-per-node", "2", str(script), str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        timeout=PATIENCE,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert [report.split()[0] for report in first] == ["PASSED", "PASSED", "FAILED", "FAILED"]
    assert all(map(has_half_the_noise, first[2:]))
    assert first == second


# ------------------------------------------------------------------------------- what a reader sees


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_is_short(path):
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize(
    "name", ["accelerate_ddp", "fsdp2", "jax_loop", "own_loop", "trainer_lora"]
)
def test_without_its_marked_lines_no_audit_is_left(name):
    lines = (RECIPES / f"{name}.py").read_text().splitlines()
    left = [line for line in lines if not re.search("# the audit|^ *# ", line)]
    assert "audit" not in "\n".join(left)
    compile("\n".join(left), name, "exec")


def test_workflow_runs_commands_that_exist():
    workflow = yaml.safe_load((RECIPES / "audit.yml").read_text())
    steps = workflow["jobs"]["audit"]["steps"]
    commands = [shlex.split(step["run"], comments=True) for step in steps if "run" in step]
    install, test, run = commands
    assert install[:2] == ["pip", "install"]
    assert test[0] == "pytest"
    assert (RECIPES / test[1]).is_file()
    assert run[:2] == ["oraudit", "run"]
    assert (RECIPES / run[-1]).is_file()
    kept = steps[-1]["with"]["path"]
    assert test[-1].startswith(f"--junitxml={kept}/")
    assert run[3].startswith(f"{kept}/")
