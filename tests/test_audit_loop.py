"""Audits of a loop of one's own: what is told of each step, in NumPy, PyTorch and JAX."""

import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from oraudit import Audit
from oraudit.records.noise import NoiseRecord, step_numbers

EXAMPLES = 400
RATE = 0.15
CLIP = 0.5
SIGMA = 1.5
STEPS = 40
SHAPES = {"bias": (7,), "kernel": (30, 7)}


def training(steps=STEPS, seed=5, *, lr=0.1, clips=None):
    """The numbers of each step of an honest training, as keywords of ``Audit.step``."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(EXAMPLES, 30)).astype(np.float32)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    for _ in range(steps):
        rows = np.flatnonzero(rng.random(EXAMPLES) < RATE)
        gradients = {
            name: rng.standard_exponential((len(rows), *shape), dtype=np.float32)
            for name, shape in SHAPES.items()
        }
        norms = {
            name: np.sqrt((g.reshape(len(g), -1) ** 2).sum(1)) for name, g in gradients.items()
        }
        if clips is None:
            together = np.sqrt(sum(norm**2 for norm in norms.values()))
            factors = dict.fromkeys(SHAPES, np.minimum(1, CLIP / together))
        else:
            pairs = zip(SHAPES, clips, strict=True)
            factors = {name: np.minimum(1, clip / norms[name]) for name, clip in pairs}
        clipped = {name: np.einsum("i,i...", factors[name], g) for name, g in gradients.items()}
        bound = CLIP if clips is None else np.hypot(*clips)
        noise = {
            name: (SIGMA * bound * rng.normal(size=shape)).astype(np.float32)
            for name, shape in SHAPES.items()
        }
        noisy = {name: clipped[name] + noise[name] for name in SHAPES}
        yield {
            "per_example": gradients,
            "clipped": clipped,
            "noisy": noisy,
            "clip": CLIP if clips is None else list(clips),
            "sigma": SIGMA,
            "rate": RATE,
            "inputs": data[rows],
            "weights": {name: value.copy() for name, value in weights.items()},
            "buffers": {"mean": np.zeros(3, np.float32), "count": np.arange(2)},
        }
        weights = {name: w - lr * noisy[name] / 60 for name, w in weights.items()}


def audited(change=None, *, without=(), steps=None, **options):
    """The result of an audit of the training, each step of which may be changed."""
    audit = Audit(examples=EXAMPLES, **options)
    for number, step in enumerate(training() if steps is None else steps, 1):
        if change is not None:
            change(number, step)
        audit.step(**{name: value for name, value in step.items() if name not in without})
    return audit.result()


def named(result):
    return [finding.name for finding in result.findings]


# ------------------------------------------------------------------------------- honest trainings


def test_honest_training_passes():
    result = audited(accountant=[(SIGMA, RATE, STEPS)])
    result.check()
    assert not result.findings
    assert str(result).splitlines()[-1].split(maxsplit=1)[1].startswith("how gradients are made")


def test_weights_after_their_move_pass():
    steps = list(training(STEPS + 1))
    for step, following in pairwise(steps):
        step["weights"] = following["weights"]
    result = audited(steps=steps[:-1])
    assert not result.findings
    assert "weights" not in str(result).splitlines()[-1]


def test_clips_for_each_tensor():
    result = audited(steps=training(clips=(0.3, 0.4)))
    assert not result.findings
    assert "an example adds at most 1 C" in str(result)


def test_what_is_not_given_is_said():
    arguments = ("per_example", "inputs", "weights", "buffers", "rate")
    last = str(audited(without=arguments)).splitlines()[-1]
    assert all(f"{name} was not given" in last for name in arguments)
    assert "the accountant (none was given)" in last

    def sometimes(number, step):
        if number % 2:
            del step["inputs"]

    assert f"inputs given in {STEPS // 2} of {STEPS} steps" in str(audited(sometimes))


@pytest.mark.parametrize("name", ["w", "v"])
def test_one_tensor_without_noise_is_seen(name):
    """The others get theirs, and are most of the weights or few of them."""
    shapes = {"w": (40, 30), "v": (8, 10)}
    rng = np.random.default_rng(3)
    weights = {each: np.zeros(shape) for each, shape in shapes.items()}
    audit = Audit(examples=600)
    for _ in range(30):
        clipped = {each: rng.normal(size=shape) / 5 for each, shape in shapes.items()}
        noisy = {each: sums + rng.normal(size=sums.shape) for each, sums in clipped.items()}
        audit.step(clipped=clipped, noisy=noisy, clip=1.0, sigma=1.0, rate=0.1, weights=weights)
        pushes = {**noisy, name: clipped[name]}
        weights = {each: weights[each] - 0.1 * pushes[each] for each in shapes}
    first = audit.result().findings[0]
    assert (first.name, first.side) == ("noise-in-weights", "less private")


def test_momentum_is_not_looked_at():
    speed = {name: 0.0 for name in SHAPES}
    weights = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}

    def momentum(_number, step):
        for name in SHAPES:
            speed[name] = 0.9 * speed[name] + step["noisy"][name]
            weights[name] = weights[name] - 0.01 * speed[name]
        step["weights"] = dict(weights)

    result = audited(momentum)
    assert not result.findings
    assert "not move by multiples of the noisy sums: as by momentum" in str(result)


def in_torch(dtype, *, momentum=0.0, set_in=()):
    """A change to a loop in PyTorch with SGD and weights of a type, set by the data in some steps.

    The momentum, which comes with weight decay, is in single precision.
    """
    torch = pytest.importorskip("torch")
    weights = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    speed = {name: torch.zeros(shape) for name, shape in SHAPES.items()}

    def change(number, step):
        step.update(converted(torch.asarray, step))
        for name in SHAPES:
            speed[name] = momentum * speed[name] + step["noisy"][name] / 60
            moved = (1 - momentum / 100) * weights[name].float() - 0.1 * speed[name]
            if number in set_in and name == "kernel":
                moved = moved + step["inputs"].mean(0)[:, None]
            weights[name] = moved.to(getattr(torch, dtype))
        step["weights"] = dict(weights)

    return change


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("momentum", [0.5, 0.9])
def test_rounded_weights_with_momentum_pass(dtype, momentum):
    result = audited(in_torch(dtype, momentum=momentum))
    assert not result.findings
    assert "what else moves the weights (" in str(result).splitlines()[-1]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rounded_weights_set_by_data(dtype):
    assert not audited(in_torch(dtype)).findings
    result = audited(in_torch(dtype, set_in=(12, 25)))
    assert [(each.name, each.step) for each in result.findings] == [("weights-outside", 12)]
    assert result.status == "cannot tell"


def test_resumed_audit_goes_on():
    steps = list(training())
    first = Audit(examples=EXAMPLES)
    for step in steps[:15]:
        first.step(**step)
    second = Audit(examples=EXAMPLES)
    second.load_state_dict(first.state_dict())
    whole = Audit(examples=EXAMPLES)
    for number, step in enumerate(steps):
        whole.step(**step)
        if number >= 15:
            second.step(**step)
    assert str(second.result()) == str(whole.result())


# ----------------------------------------------------------------------------------------- faults


def test_half_the_noise_fails():
    def halve(_number, step):
        for name, before in step["clipped"].items():
            step["noisy"][name] = before + (step["noisy"][name] - before) / 2

    result = audited(halve, without=["weights"])
    assert result.status == "failed"
    assert result.findings[0].side == "less private"
    assert result.findings[0].number == pytest.approx(0.5, abs=0.02)


def test_unclipped_sum_fails():
    def unclip(number, step):
        if number == 7:
            for name, g in step["per_example"].items():
                noise = step["noisy"][name] - step["clipped"][name]
                step["clipped"][name] = g.sum(0)
                step["noisy"][name] = g.sum(0) + noise

    result = audited(unclip, without=["weights"])
    assert named(result)[0] == "clipped-sum"
    assert result.findings[0].step == 7


def test_weights_moved_beside_steps():
    def shrink(number, step):
        if number > 20:
            step["weights"]["kernel"] = 0.9 * step["weights"]["kernel"]

    result = audited(shrink)
    assert result.status == "cannot tell"
    assert [(each.name, each.step) for each in result.findings] == [("weights-outside", 21)]
    assert audited(shrink, allow=["weights-outside"]).status == "passed"


def test_rate_that_follows_the_batch():
    weights = {name: np.zeros(shape) for name, shape in SHAPES.items()}

    def divide(_number, step):
        for name in SHAPES:
            weights[name] = weights[name] - step["noisy"][name] / len(step["inputs"])
        step["weights"] = dict(weights)

    result = audited(divide)
    assert named(result) == ["follows-batch"]
    assert "the learning rate follows the size of its own batch" in str(result)


def test_changed_buffer_is_named():
    def count(number, step):
        step["buffers"]["count"] = step["buffers"]["count"] + number  # integers may
        if number >= 9:
            step["buffers"]["running_mean"] = step["buffers"].pop("mean") + 1
        else:
            step["buffers"]["running_mean"] = step["buffers"].pop("mean")

    result = audited(count)
    assert result.status == "failed"
    assert result.findings[0].step == 9
    assert "running_mean" in result.findings[0].text


def test_sum_for_an_empty_batch():
    def empty(number, step):
        if number == 3:
            step["per_example"] = {name: g[:0] for name, g in step["per_example"].items()}
            step["inputs"] = step["inputs"][:0]

    assert "clipped-sum" in named(audited(empty))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_none(number):
    def spoil(step_number, step):
        if step_number == 4:
            step["noisy"]["kernel"][2, 3] = number

    result = audited(spoil, without=["weights"])
    assert result.status == "failed"
    assert (result.findings[0].name, result.findings[0].step) == ("not-finite", 4)


# ------------------------------------------------------------------------------------- accountants


@pytest.mark.parametrize(
    ("history", "side", "words"),
    [
        ([(SIGMA, RATE, STEPS - 10)], "less private", "told 30 steps, 40 were done"),
        ([(SIGMA, RATE, STEPS + 10)], "safer", "told 50 steps, 40 were done"),
        ([(SIGMA, RATE, 20), (2 * SIGMA, RATE, 20)], "less private", "in 20 of 40 steps, first 21"),
        ([(SIGMA, RATE / 2, STEPS)], "less private", "told rate 0.075, the training says 0.15"),
    ],
)
def test_what_the_accountant_was_told(history, side, words):
    first = audited(accountant=history).findings[0]
    assert (first.name, first.side) == ("accountant", side)
    assert words in first.text


def test_accountant_that_knew_other_steps():
    accountant = SimpleNamespace(history=[(3.0, 0.5, 12)])
    audit = Audit(examples=EXAMPLES, accountant=accountant)
    for step in training():
        audit.step(**step)
        accountant.history = [(3.0, 0.5, 12), (SIGMA, RATE, len(audit._record.told))]
    result = audit.result()
    assert not result.findings
    assert "the 12 steps that the accountant knew before" in str(result)


def test_noise_is_held_against_the_accountant():
    result = audited(accountant=[(2 * SIGMA, RATE, STEPS)])
    assert named(result) == ["accountant", "noise-size"]
    assert result.findings[1].number == pytest.approx(0.5, abs=0.02)


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clip": 0}, "clip is 0; it must be a number > 0"),
        ({"clip": [1.0]}, r"clip is \[1.0\]; it must be a number > 0, or a list of 2"),
        ({"sigma": -1.0}, "sigma is -1.0; it must be a number >= 0"),
        ({"sigma": "2x"}, "sigma is '2x'; it must be"),
        ({"rate": 1.5}, r"rate is 1.5; it must be a number in \(0, 1\]"),
        ({"noisy": {"bias": np.zeros(7)}}, "noisy has the arrays 'bias'; it must have"),
        (
            {"weights": {"bias": np.zeros(7), "kernel": np.zeros(3)}},
            r"weights has the shape \(3,\)",
        ),
        ({"noisy": {"bias": np.zeros(7), "kernel": np.zeros((30, 7), int)}}, "noisy has the type"),
        ({"batch": 3}, "the numbers of examples differ: .* batch 3"),
        ({"batch": -1}, "batch is -1; it must be a whole number >= 0"),
    ],
)
def test_errors_of_a_step(change, words):
    step = next(training())
    with pytest.raises(ValueError, match=words):
        Audit(examples=EXAMPLES).step(**(step | change))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"examples": 0}, "examples is 0; it must be a whole number > 0"),
        ({"claim": (1.0, 2.0)}, r"claim is \(1.0, 2.0\); it must be"),
        ({"allow": "weights-outside"}, "allow is 'weights-outside'; it must be a list"),
        ({"accountant": 3}, "accountant is 3; it must be a list"),
        ({"accountant": [(1.0, 2)]}, r"accountant has the entry \(1.0, 2\); it must be"),
    ],
)
def test_errors_of_an_audit(options, words):
    with pytest.raises(ValueError, match=words):
        Audit(**options)


# -------------------------------------------------------------------------------------- frameworks


def converted(array, tree):
    if isinstance(tree, dict):
        return {name: converted(array, branch) for name, branch in tree.items()}
    return array(tree) if isinstance(tree, np.ndarray) else tree


def faulty(number, step):
    for name in SHAPES:
        step["noisy"][name] = step["noisy"][name] * np.float32(1.2)
    if number > 20:
        step["weights"]["kernel"] = step["weights"]["kernel"] + 1
        step["buffers"]["mean"] = step["buffers"]["mean"] + 1


@pytest.mark.torch
@pytest.mark.parametrize("change", [None, faulty], ids=["honest", "faulty"])
@pytest.mark.parametrize("framework", ["torch", "jax.numpy"])
def test_reports_agree_between_frameworks(framework, change):
    array = pytest.importorskip(framework).asarray
    steps = []
    for number, step in enumerate(training(), 1):
        if change is not None:
            change(number, step)
        steps.append(step)
    here = audited(steps=steps)
    there = audited(steps=[converted(array, step) for step in steps])
    assert str(there) == str(here)
    assert bool(there.findings) == (change is not None)


@pytest.mark.torch
def test_callback_inside_jit():
    jax = pytest.importorskip("jax")
    audit = Audit(examples=EXAMPLES)

    def note(**arrays):
        audit.step(clip=CLIP, sigma=SIGMA, rate=RATE, **arrays)

    @jax.jit
    def step(arrays):
        jax.debug.callback(note, ordered=True, **arrays)
        return arrays["noisy"]["bias"] * 2

    steps = list(training())
    for each in steps:
        step({name: each[name] for name in ("clipped", "noisy", "per_example", "inputs")})
    jax.effects_barrier()
    without = ("weights", "buffers")
    assert str(audit.result()) == str(audited(steps=steps, without=without))


# ------------------------------------------------------------------------- the fast way in PyTorch


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("way", ["in blocks", "at once"])
def test_fast_noise_numbers_are_the_plain_ones(dtype, way, monkeypatch):
    torch = pytest.importorskip("torch")
    from oraudit.records import torch_noise

    monkeypatch.setattr(torch_noise, "SMALL", 0 if way == "in blocks" else 10**6)
    generator = torch.Generator().manual_seed(1)
    shapes = ((3,), (70_000, 2), (40, 50), (1,))
    kind = getattr(torch, dtype)
    clipped = [torch.randn(shape, generator=generator).to(kind) for shape in shapes]
    noisy = [each + 3 * torch.randn(each.shape, generator=generator).to(kind) for each in clipped]
    noisy[2] = noisy[2].T.contiguous().T
    before = [each.clone() for each in (*clipped, *noisy)]
    record = NoiseRecord()
    record.add(clipped, noisy, 3.0)
    assert all(torch.equal(old, new) for old, new in zip(before, (*clipped, *noisy), strict=True))
    record.finished()
    wanted, beneath, _ = step_numbers(
        [each.double().numpy() for each in clipped],
        [each.double().numpy() for each in noisy],
        record._places,
        record._head,
    )
    found = [each.double().numpy() for each in record._kept[0]]
    assert [each.shape for each in found] == [each.shape for each in wanted]
    squares, products, sums, largest, sample, rounding, heads = zip(found, wanted, strict=True)
    # Products are as large as noise and sum together, unless their signs cancel.
    error = np.abs(products[0] - products[1]) / np.sqrt(squares[1] * sums[1])
    assert error.max() < 1e-5
    for ours, plain in (squares, sums, largest, sample, heads):
        np.testing.assert_allclose(ours, plain, rtol=2e-5, atol=1e-6)
    precisions = torch.finfo(kind).eps, np.finfo(float).eps
    np.testing.assert_allclose(record.last()[0].double().numpy(), beneath, rtol=1e-6)
    under_and_over = record.sampled(noisy).double().numpy()
    np.testing.assert_allclose(under_and_over, beneath + sample[1], rtol=2e-5, atol=1e-6)
    assert rounding[0] / precisions[0] == pytest.approx(rounding[1] / precisions[1], rel=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("size", [20, 6000])
def test_ten_kilobytes_are_kept_a_step(size):
    torch = pytest.importorskip("torch")
    record = NoiseRecord()
    tensors = [torch.randn(10, size, requires_grad=True) for _ in range(100)]
    for _ in range(32):
        record.add(tensors, [each + 1 for each in tensors], 1.0)
    assert not record._measured
    kept = [each for step in record._kept for each in step]
    storages = {each.untyped_storage().data_ptr(): each for each in kept}
    assert sum(each.untyped_storage().nbytes() for each in storages.values()) <= 32 * 10_000
    assert not any(each.requires_grad for each in kept)


@pytest.mark.torch
def test_sums_of_many_numbers_are_precise():
    """Long sums in single precision would accuse honest noise after some hundred steps."""
    torch = pytest.importorskip("torch")
    noise = torch.randn(3_000_000, generator=torch.Generator().manual_seed(2))
    record = NoiseRecord()
    record.add([torch.zeros_like(noise)], [noise], 1.0)
    squares = record.finished().squares[0, 0]
    assert squares == pytest.approx(float((noise.double() ** 2).sum()), rel=1e-6)


@pytest.mark.torch
def test_price_table_keeps_other_machines(tmp_path, capsys):
    price = pytest.importorskip("benchmarks.witness_price", exc_type=ImportError)
    words = ["--small", "--cpu", "--steps", "3", "--out", str(tmp_path)]
    price.main(words)
    path = tmp_path / "witness-price.csv"
    assert path.read_text() == capsys.readouterr().out
    head, *rows = path.read_text().splitlines()
    assert head.startswith("machine,way,weights")
    assert {row.split(",")[1] for row in rows} >= {"loop"}
    other = rows[0].replace("one CPU thread", "H200")
    path.write_text("\n".join([head, other, *rows]) + "\n")
    price.main(words)
    lines = path.read_text().splitlines()
    assert (len(lines), lines.count(other)) == (len(rows) + 2, 1)


def test_a_loop_imports_no_framework():
    """A training in NumPy loads neither PyTorch nor a compiler, and no distributions of SciPy."""
    code = "import sys; from oraudit import Audit; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert not loaded & {"torch", "jax", "numba", "pandas", "scipy.stats", "oralib"}
