"""Trainings with Opacus that have one bug each.

``planted`` makes a case of a training, of what replaces a method before it begins, and of what it
does in each step. Where the bug is in a step, the neighbour test is given the same step.
"""

import contextlib
import tempfile
from pathlib import Path

import torch

from .case import MAYBE_HARMLESS, Case
from .opacus_loop import (
    ADAPTIVE,
    BATCH,
    EXAMPLES,
    STEPS,
    Body,
    Centred,
    Running,
    Training,
    accountant_emptied,
    another_optimizer,
    averaged_weights,
    clip_with,
    divided_by_own_batch,
    each_example_twice,
    factor,
    late_head,
    late_head_by_hand,
    losses_looked_at,
    mean_clip_of_the_batch_before,
    median_clip,
    network,
    noise_again,
    noise_taken_off,
    noise_with,
    norms_of,
    numbers,
    plain_steps,
    rate_over_raw_norm,
    seed_in_each_step,
    told_every_second_step,
    told_more_noise,
)

LESS = "less private"
UNKNOWN = "side unknown"
SAFER = "safer"

LAYERS = {"clipping": "per_layer", "max_grad_norm": [0.05, 0.1, 0.05, 0.1]}
GHOST = {"grad_sample_mode": "ghost"}


def planted(
    name,
    truth,
    *cause,
    plant=None,
    late=None,
    after=None,
    steps=STEPS,
    near=False,
    between=(),
    witness=True,
    source="",
    **private,
):
    """A case of a training with a bug.

    ``plant`` changes the training before the audit is attached, ``late`` after it, and ``after``
    once the training has ended; ``near`` says that the neighbour test can see the bug.
    """

    def made(seed):
        training = Training(*(kind() for kind in between), seed=seed, attach=False, **private)
        if plant is not None:
            plant(training)
        return training

    def watched(seed):
        training = made(seed)
        training.audit = training.attach()
        if late is not None:
            late(training)
        training.run(steps)
        if after is not None:
            after(training)
        return training.result()

    def compared(seed):
        training = made(seed)
        if late is not None:
            late(training)
        return training.neighbours()

    return Case(
        name,
        source,
        "Opacus",
        truth,
        cause,
        watched if witness else None,
        compared if near else None,
    )


def watching(name, truth, *cause, train, source="", **options):
    """A case of several trainings in one process: the worst of their audits counts."""

    def watched(seed):
        from oraudit.ways.opacus.watch import watch

        with watch() as audits:
            train(seed)
        results = [audit.result() for audit in audits]
        order = ("failed", "cannot tell", "passed")
        return min(results, key=lambda result: order.index(result.status))

    return Case(name, source, "Opacus", truth, cause, watched, **options)


# ------------------------------------------------------------------------------- noise and clipping


def sums_with(change):
    """The clipped sum changed after it was added up: a function of optimizer, rows and sums."""

    def plant(training):
        optimizer = training.optimizer
        clip_and_accumulate = optimizer.clip_and_accumulate

        def changed():
            clip_and_accumulate()
            rows = [optimizer._get_flat_grad_sample(p) for p in optimizer.params]
            for p, found in zip(optimizer.params, change(optimizer, rows), strict=True):
                p.summed_grad = found

        optimizer.clip_and_accumulate = changed

    return plant


def clipped_after_the_mean(optimizer, rows):
    means = [each.mean(0) for each in rows]
    norm = torch.stack([each.norm() for each in means]).norm()
    share = (optimizer.max_grad_norm / norm).clamp(max=1)
    return [len(each) * mean * share for each, mean in zip(rows, means, strict=True)]


def means_of_four(optimizer, rows):
    groups = [torch.stack([part.mean(0) for part in each.split(4)]) for each in rows]
    norms = torch.stack([each.flatten(1).norm(dim=1) for each in groups]).norm(dim=0)
    factors = (optimizer.max_grad_norm / (norms + 1e-6)).clamp(max=1)
    return [torch.einsum("i,i...", factors, each) for each in groups]


def numbers_clamped(optimizer, rows):
    clip = optimizer.max_grad_norm
    return [each.clamp(-clip, clip).sum(0) for each in rows]


def raw_gradient_left(optimizer, rows):
    return [p.summed_grad + each.mean(0) for p, each in zip(optimizer.params, rows, strict=True)]


def highest_losses_dropped(training):
    """The tenth of the batch with the largest losses is not trained on."""

    def loss(x, y):
        losses = torch.nn.functional.cross_entropy(training.model(x), y, reduction="none")
        kept = losses <= losses.detach().quantile(0.9)
        return (losses * kept).sum() / len(x)

    training.loss = loss


def noise_changed(change):
    """The noise of each tensor changed: a function of noise, sum, place and step."""

    def plant(training):
        optimizer = training.optimizer
        add_noise = optimizer.add_noise
        done = []

        def noisy():
            add_noise()
            for place, p in enumerate(optimizer.params):
                total = p.summed_grad.view_as(p)
                p.grad = total + change(p.grad - total, total, place, len(done))
            done.append(True)

        optimizer.add_noise = noisy

    return plant


def noise_twice(training):
    optimizer = training.optimizer
    add_noise = optimizer.add_noise

    def twice():
        add_noise()
        for p in optimizer.params:
            size = optimizer.noise_multiplier * optimizer.max_grad_norm
            p.grad = p.grad + size * torch.randn_like(p.grad)

    optimizer.add_noise = twice


def same_noise_in_tensors(training):
    """Each tensor's generator is seeded alike."""
    optimizer = training.optimizer
    generator = torch.Generator()

    def add_noise():
        seed = int(torch.randint(10**9, (1,)))
        size = optimizer.noise_multiplier * optimizer.max_grad_norm
        for p in optimizer.params:
            generator.manual_seed(seed)
            noise = size * torch.randn(p.shape, generator=generator)
            p.grad = p.summed_grad.view_as(p) + noise
            p.summed_grad._processed = True

    optimizer.add_noise = add_noise


def follows_sum(training):
    """The noise is a share of the sum's own size."""
    optimizer = training.optimizer

    def add_noise():
        sums = [p.summed_grad for p in optimizer.params]
        size = 0.1 * torch.stack([each.norm() for each in sums]).norm()
        for p in optimizer.params:
            p.grad = (p.summed_grad + size * torch.randn_like(p.summed_grad)).view_as(p)
            p.summed_grad._processed = True

    optimizer.add_noise = add_noise


def norms_in_bf16(optimizer, rows):
    flat = torch.cat([each.flatten(1) for each in rows], 1)
    norms = flat.bfloat16().norm(dim=1).float()
    factors = (optimizer.max_grad_norm / (norms + 1e-6)).clamp(max=1)
    return [torch.einsum("i,i...", factors, each) for each in rows]


def clip_without_library(training):
    """No example is clipped, by a method that comes after the audit."""
    clip_with(lambda norms, c: torch.ones(len(norms), 1))(training)


def twice_the_layers_clips(training):
    training.optimizer.max_grad_norms = [0.1, 0.2, 0.1, 0.2]


def ghost_at(clip):
    def plant(training):
        training.model.max_grad_norm = clip

    return plant


def as_grad_samplers(kind, rules):
    """Run with other rules for layers, and put the old ones back."""

    @contextlib.contextmanager
    def changed():
        table = getattr(kind, rules)
        old = dict(table)
        try:
            yield table
        finally:
            table.clear()
            table.update(old)

    return changed()


def ghost_without_biases():
    """Ghost clipping whose norms leave the biases out."""

    def watched(seed):
        from opacus.grad_sample import GradSampleModuleFastGradientClipping as Ghost

        with as_grad_samplers(Ghost, "NORM_SAMPLERS") as rules:
            right = rules[torch.nn.Linear]
            rules[torch.nn.Linear] = lambda *given: {
                p: norm * (p.ndim == 2) for p, norm in right(*given).items()
            }
            return Training(seed=seed, **GHOST).run(20).result()

    def compared(seed):
        from opacus.grad_sample import GradSampleModuleFastGradientClipping as Ghost

        with as_grad_samplers(Ghost, "NORM_SAMPLERS") as rules:
            right = rules[torch.nn.Linear]
            rules[torch.nn.Linear] = lambda *given: {
                p: norm * (p.ndim == 2) for p, norm in right(*given).items()
            }
            return Training(seed=seed, attach=False, **GHOST).neighbours()

    cause = ("ghost clipping takes",)
    return Case("ghost norms without biases", "", "Opacus", LESS, cause, watched, compared)


def wrong_rule():
    """A custom rule of a layer that is wrong."""

    def watched(seed):
        from opacus.grad_sample import GradSampleModule

        with as_grad_samplers(GradSampleModule, "GRAD_SAMPLERS") as rules:
            right = rules[torch.nn.Linear]
            rules[torch.nn.Linear] = lambda *given: {p: g / 2 for p, g in right(*given).items()}
            return Training(seed=seed).run(20).result()

    cause = ("a layer's rule is wrong",)
    return Case("a layer's rule is wrong", "", "Opacus", MAYBE_HARMLESS, cause, watched)


# -------------------------------------------------------------------------- what a step does beside


def two_passes(training, step, x, y):
    """Two backward passes of the same batch, clipped apart, in one release."""
    for again in (True, False):
        training.backward(x, y)
        training.optimizer.signal_skip_step(again)
        training.optimizer.step()


def four_augmentations(training, step, x, y):
    """Four augmentations of each example stand in the batch as examples."""
    seen = torch.cat([x + 0.1 * torch.randn_like(x) for _ in range(4)])
    training.step(seen, torch.cat([y] * 4))


def validation_left(training, step, x, y):
    """The clipped gradients of a validation batch are still there when the optimizer steps."""
    known = slice(EXAMPLES - 20, EXAMPLES)
    training.backward(training.x[known], training.y[known])
    training.optimizer.signal_skip_step()
    training.optimizer.step()
    training.step(x, y)


def scaled_by_largest_norm(training):
    clip_with(lambda norms, c: (c / norms.norm(dim=1).max()).expand(len(norms), 1))(training)


def moving_mean_clip(training, step, x, y):
    training.backward(x, y)
    mean = float(norms_of(training).mean())
    optimizer = training.optimizer
    optimizer.max_grad_norm = 0.9 * optimizer.max_grad_norm + 0.1 * mean
    optimizer.step()


def contrastive(training):
    """Examples are told apart from the others of their batch."""

    def loss(x, y):
        out = training.model(x)
        alike = (out @ out.T).softmax(1).diagonal().log().neg().mean()
        return training.criterion(out, y) + 0.5 * alike

    training.loss = loss


def raw_second_moment(training, step, x, y):
    """Adam's second moment follows the gradient before clipping."""
    training.backward(x, y)
    optimizer = training.optimizer
    for p in optimizer.params:
        state = optimizer.state[p]
        if "exp_avg_sq" in state:
            raw = optimizer._get_flat_grad_sample(p).mean(0)
            state["exp_avg_sq"].mul_(0.9).add_(0.1 * raw.detach() ** 2)
    optimizer.step()


def calibrated(training, step, x, y):
    """The last bias follows the batch, after each step."""
    training.step(x, y)
    with torch.no_grad():
        training.net[-1].bias.add_(1e-3 * training.net(x).mean(0))


def calibrated_at_the_end(training):
    with torch.no_grad():
        training.net[-1].bias.add_(0.1 * training.net(training.x).mean(0))


def skipped_by_loss(training, step, x, y):
    """No step is taken where the loss is larger than the first one's."""
    training.backward(x, y)
    with torch.no_grad():
        loss = float(torch.nn.functional.cross_entropy(training.net(x), y))
    if step == 0:
        training.first = loss
    if step == 2:
        training.whole = loss
    most = training.whole + 1e-5 if step >= 2 and training.audit is None else training.first
    if step < 2 or loss < most:
        training.optimizer.step()


def empty_left_out(training, step, x, y):
    if len(x):
        training.step(x, y)


def one_step_of_four(training):
    hook = training.optimizer.step_hook
    steps = iter(range(10**6))
    training.optimizer.attach_step_hook(
        lambda optimizer: hook(optimizer) if next(steps) % 4 == 0 else None
    )


def sigma_halved(training, step, x, y):
    """The noise falls in the middle of the training, and the accountant is told the old one."""
    if step == 20:
        optimizer = training.optimizer
        add_noise = type(optimizer).add_noise

        def quieter():
            optimizer.noise_multiplier /= 2
            add_noise(optimizer)
            optimizer.noise_multiplier *= 2

        optimizer.add_noise = quieter
    training.step(x, y)


def frozen_weight_moved(training, step, x, y):
    if step == 20:
        with torch.no_grad():
            training.net.scale.add_(0.1)
    training.step(x, y)


class Scaled(torch.nn.Sequential):
    """A network with a weight that no optimizer has."""

    def __init__(self):
        super().__init__(*network())
        self.scale = torch.nn.Parameter(torch.ones(()), requires_grad=False)

    def forward(self, x):
        return super().forward(x) * self.scale


# ------------------------------------------------------------------------------------------ batches


def batches_of(draw):
    """Batches that are drawn otherwise than the loader does: a function of the step."""

    def plant(training):
        def batches(steps=STEPS, loader=None):
            training.order = []
            for step in range(steps):
                chosen = draw(training, step)
                yield training.x[chosen], training.y[chosen]

        training.batches = batches

    return plant


def rare_class_oftener(training, step):
    """One class is drawn three times as often as the others."""
    shares = torch.where(training.y == 0, 3.0, 1.0)
    return (torch.rand(EXAMPLES) < BATCH * shares / shares.sum()).nonzero()[:, 0]


def weighted_sampler(training, step):
    """Batches of a fixed size, drawn with weights and replacement."""
    return torch.multinomial(torch.where(training.y == 0, 3.0, 1.0), BATCH, replacement=True)


def cut_at_poisson_sizes(training, step):
    """A shuffled list, cut into batches whose sizes are those of Poisson sampling."""
    size = int((torch.rand(EXAMPLES) < BATCH / EXAMPLES).sum())
    if len(training.order) < size:
        training.order = torch.randperm(EXAMPLES).tolist()
    batch = training.order[:size]
    del training.order[:size]
    return torch.tensor(batch, dtype=torch.int64)


def rate_a_little_too_high(training, step):
    return (torch.rand(EXAMPLES) < 1.02 * BATCH / EXAMPLES).nonzero()[:, 0]


def copies():
    """Ten records of each person."""
    inputs, labels = numbers()
    people = torch.arange(EXAMPLES) // 10
    return inputs[people], labels[people]


# ---------------------------------------------------------------------------- several trainings


def wound_back(seed):
    """A resumed training whose generator is wound back."""
    torch.manual_seed(seed)
    first = Training(attach=False, seed=seed)
    state = torch.get_rng_state()
    first.run(20)
    second = Training(attach=False, seed=seed)
    second.net.load_state_dict(first.net.state_dict())
    second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    torch.set_rng_state(state)
    second.run(20)


def accountant_empty(seed):
    """A resumed training whose accountant begins anew."""
    first = Training(attach=False, seed=seed).run(20)
    second = Training(attach=False, seed=seed + 1_000_000)
    second.net.load_state_dict(first.net.state_dict())
    second.run(20)


def three_trials(seed):
    """Three learning rates are tried on the same data, and the accountant counts the best."""
    data = numbers()
    for place, lr in enumerate((0.05, 0.1, 0.2)):
        Training(attach=False, seed=seed + 1_000_000 * place, lr=lr, data=data).run(20)


def public_seed(seed):
    """Every training has the seed 42, which everybody knows."""
    Training(attach=False, seed=42).run()


def four_times_as_long():
    """The noise is for 10 epochs, and the training has 40."""

    def watched(seed):
        from oralib.dpsgd.accounting import composed_epsilon

        epsilon = composed_epsilon(((1.0, BATCH / EXAMPLES, 10),), 1e-5)
        training = Training(seed=seed, attach=False)
        training.audit = training.attach(claim=(epsilon, 1e-5))
        return training.run().result()

    cause = ("what the accountant was told is ε",)
    return Case(
        "noise for a quarter of the steps",
        "",
        "Opacus",
        LESS,
        cause,
        watched,
        needs=("attr", "numba"),
    )


# ---------------------------------------------------------------------- what may be post-processing


def projected(training, step, x, y):
    training.step(x, y)
    with torch.no_grad():
        for p in training.net.parameters():
            p.mul_(min(1.0, 0.5 / float(p.norm() + 1e-9)))


def averaged_after(training):
    """The end of the training is a mean of its weights."""
    with torch.no_grad():
        for p in training.net.parameters():
            p.mul_(0.9)


def best_restored(training, step, x, y):
    if step == 10:
        training.best = {k: v.clone() for k, v in training.net.state_dict().items()}
    training.step(x, y)
    if step == STEPS - 1:
        training.net.load_state_dict(training.best)


# --------------------------------------------------------------------------- noise that is deleted


def multiplier_zero(training):
    accountant = training.engine.accountant
    training.optimizer.noise_multiplier = 0.0
    training.optimizer.attach_step_hook(
        lambda optimizer: accountant.step(noise_multiplier=1.0, sample_rate=BATCH / EXAMPLES)
    )


def library_patched(seed):
    """The library's function for noise gives zeros."""
    import opacus.optimizers.optimizer as home

    draw = home._generate_noise
    home._generate_noise = lambda std, reference, **_: torch.zeros_like(reference)
    try:
        return Training(seed=seed).run().result()
    finally:
        home._generate_noise = draw


def clean_gradients(training):
    """A hook gives the optimizer the sum without noise."""

    def hook(*_):
        for p in training.optimizer.params:
            p.grad = (p.summed_grad / BATCH).view_as(p)

    training.optimizer.original_optimizer.register_step_pre_hook(hook)


class Clean(torch.optim.SGD):
    """An optimizer that steps with the sum before the noise."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(group["lr"] * p.summed_grad.view_as(p) / BATCH)


def own_step(training):
    """The step of the optimizer that is wrapped is replaced."""
    optimizer = training.optimizer

    def step(closure=None):
        with torch.no_grad():
            for p in optimizer.params:
                p.sub_(0.1 * p.summed_grad.view_as(p) / BATCH)

    optimizer.original_optimizer.step = step


def weights_of_a_clean_twin(training, step, x, y):
    """After each step the weights get what they would have without noise."""
    if step == 0:
        training.clean = [p.detach().clone() for p in training.optimizer.params]
    training.backward(x, y)
    training.optimizer.step()
    with torch.no_grad():
        for p, clean in zip(training.optimizer.params, training.clean, strict=True):
            clean -= 0.1 * p.summed_grad.view_as(p) / BATCH
            p.copy_(clean)


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from witness.opacus_loop import Training, noise_with
training = Training(attach=False, seed={seed})
noise_with(lambda place, step: 0)(training)
training.run(10)
"""


def run_as_script(seed):
    """A script under ``oraudit run``, with its exit status as a result."""
    import io
    import re
    from types import SimpleNamespace

    from oraudit.__main__ import main

    paths = [str(Path(__file__).parents[1])]
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT.format(paths=paths, seed=seed))
        with contextlib.redirect_stdout(printed):
            code = main(["run", str(script)])
    status = {0: "passed", 1: "failed", 3: "cannot tell"}[code]
    text, side = re.search(r"FAILED +(.*): ([a-z ]+)", printed.getvalue()).groups()
    return SimpleNamespace(status=status, findings=[SimpleNamespace(text=text, side=side)])


def quiet(seed):
    """A training without noise, under ``watch()``."""
    training = Training(seed=seed, attach=False)
    noise_with(lambda place, step: 0)(training)
    training.run()


NO_NOISE = "no noise"
NOTHING = noise_with(lambda place, step: 0)

DELETED = [
    planted("no noise: before the audit", LESS, NO_NOISE, plant=NOTHING),
    planted("no noise: after the audit was attached", LESS, NO_NOISE, late=NOTHING),
    planted("no noise: multiplier 0, and 1 told", LESS, "noise multiplier", plant=multiplier_zero),
    Case(
        "no noise: in the library's own function", "", "Opacus", LESS, (NO_NOISE,), library_patched
    ),
    planted("no noise: taken off before the step", LESS, "0 of the noise", habit=noise_taken_off),
    planted(
        "no noise: by a hook before the audit's", LESS, "0 of the noise", plant=clean_gradients
    ),
    planted("no noise: by a hook after the audit's", LESS, "0 of the noise", late=clean_gradients),
    planted(
        "no noise: by an optimizer of one's own", LESS, "without its noise", kind=Clean, near=True
    ),
    planted("no noise: by a step of one's own", MAYBE_HARMLESS, "stepped 0 times", plant=own_step),
    planted(
        "no noise: weights of a clean twin",
        MAYBE_HARMLESS,
        "weights",
        habit=weights_of_a_clean_twin,
    ),
    planted("no noise: Adam", LESS, NO_NOISE, plant=NOTHING, kind=torch.optim.Adam),
    planted("no noise: ghost clipping", LESS, NO_NOISE, plant=NOTHING, **GHOST),
    planted("no noise: per layer", LESS, NO_NOISE, plant=NOTHING, **LAYERS),
    planted("no noise: adaptive clipping", LESS, NO_NOISE, plant=NOTHING, **ADAPTIVE),
    watching("no noise: under watch()", LESS, NO_NOISE, train=quiet),
    # Its report tells ε, with dp_accounting.
    Case(
        "no noise: under oraudit run",
        "",
        "Opacus",
        LESS,
        (NO_NOISE,),
        run_as_script,
        needs=("attr", "numba"),
    ),
]


# ------------------------------------------------------------------------------------------- cases

MOVES = "what is released moves by"
BATCHES = "the accountant's ε is not for these batches"
SHUFFLED = f"{BATCHES}: they are cut from a shuffled list"

DESIGN = [
    planted("half of the noise", LESS, "the noise is 0.", plant=noise_with(lambda *_: 0.5)),
    planted(
        "half the noise in a tensor",
        LESS,
        "tensor 0.weight: the noise is 0.",
        plant=noise_with(lambda place, step: 1 - 0.5 * (place == 0)),
    ),
    planted(
        "no noise in a step",
        LESS,
        "first 18: no noise",
        plant=noise_with(lambda place, step: step != 17),
    ),
    planted("half of the noise from step 21", LESS, "first 21: the noise", habit=sigma_halved),
    planted(
        "the same noise in tensors",
        LESS,
        "get the same noise",
        "is correlated (1.00)",
        plant=same_noise_in_tensors,
    ),
    planted("noise again after 20 steps", LESS, "is that of step", habit=noise_again),
    planted("noise follows the sum", LESS, "rises and falls", plant=follows_sum, steps=80),
    planted(
        "noise on a grid",
        LESS,
        "few values",
        plant=noise_changed(lambda noise, *_: (noise * 50).round() / 50),
    ),
    planted(
        "noise in fp16",
        LESS,
        "precision of fp16",
        plant=noise_changed(lambda noise, *_: noise.half().float()),
    ),
    planted(
        "uniform noise",
        LESS,
        "not normal",
        plant=noise_changed(lambda noise, *_: (torch.rand_like(noise) - 0.5) * 12**0.5 * 0.1),
    ),
    planted(
        "the sum twice in the release",
        LESS,
        "times the clipped sum is in",
        plant=noise_changed(lambda noise, total, *_: noise + total),
    ),
    planted(
        "no clipping",
        LESS,
        "no example is clipped",
        plant=clip_with(lambda norms, c: torch.ones(len(norms), 1)),
        near=True,
    ),
    planted(
        "no clipping, planted after the audit",
        LESS,
        "no example is clipped",
        late=clip_without_library,
    ),
    planted(
        "a tensor left out of the norm",
        LESS,
        "tensor 0.weight is left out of the norm",
        plant=clip_with(lambda norms, c: factor(norms[:, 1:], c)),
        near=True,
    ),
    planted(
        "each tensor clipped by itself",
        LESS,
        "each tensor is clipped at C by itself",
        plant=clip_with(lambda norms, c: (c / norms).clamp(max=1)),
        near=True,
    ),
    planted(
        "clipped at 2 C",
        LESS,
        "clipped at 2 C",
        "multiplied by 2",
        plant=clip_with(lambda norms, c: factor(norms, 2 * c)),
        near=True,
    ),
    planted(
        "clipped after the mean",
        LESS,
        "the batch is clipped as a whole",
        "all examples get the same factor",
        plant=sums_with(clipped_after_the_mean),
        near=True,
    ),
    planted("norms in bf16", LESS, "computed in bf16", plant=sums_with(norms_in_bf16), near=True),
    planted(
        "per-layer clips apart", LESS, "clipped at 2 C", plant=twice_the_layers_clips, **LAYERS
    ),
    planted("ghost clips at 3 C", LESS, "clipped at 3 C", plant=ghost_at(0.3), near=True, **GHOST),
    planted(
        "accountant told every second step", LESS, "told 20 steps", plant=told_every_second_step
    ),
    planted("accountant told more noise", LESS, "multiplier 2", plant=told_more_noise),
    planted("accountant emptied", LESS, "has lost 20 steps", habit=accountant_emptied),
    planted("steps without the private step", LESS, "without the private", habit=plain_steps),
    planted("another optimizer", LESS, "without the private", habit=another_optimizer),
    planted("late head, by hand", LESS, "joined", habit=late_head_by_hand, net=Body),
    planted("a frozen weight moves", LESS, "scale changes", habit=frozen_weight_moved, net=Scaled),
    planted("a seed in each step", LESS, "seeded anew", habit=seed_in_each_step),
    planted(
        "a running mean",
        LESS,
        "running_mean",
        between=[lambda: Running("running_mean")],
        near=True,
    ),
    planted(
        "examples mix, ghost clipping",
        LESS,
        "depends on the others",
        between=[Centred],
        near=True,
        **GHOST,
    ),
    planted("shuffled batches", UNKNOWN, SHUFFLED, poisson_sampling=False),
]

FRESH = [
    planted(
        "means of 4 are clipped", LESS, "means of 4", plant=sums_with(means_of_four), near=True
    ),
    planted("two passes clipped apart", LESS, "2 times in its batch", habit=two_passes, near=True),
    planted("validation gradients left", LESS, "validation", habit=validation_left),
    planted("augmentations as examples", LESS, "4 times", habit=four_augmentations, near=True),
    planted("a head added later", LESS, "joined the model", habit=late_head, net=Body),
    planted(
        "forward takes the batch's mean off",
        LESS,
        "depends on the others",
        between=[Centred],
        near=True,
    ),
    planted("C is the median norm", LESS, "C follows the median", habit=median_clip, near=True),
    planted(
        "divided by the actual batch", LESS, "own batch", plant=divided_by_own_batch, near=True
    ),
    planted("accountant told 1 step of 4", LESS, "told 10 steps", plant=one_step_of_four),
    watching("resumed, accountant empty", LESS, "goes on from", train=accountant_empty),
    watching("resumed, generator wound back", LESS, "of an earlier", train=wound_back),
    planted(
        "steps skipped by the loss",
        LESS,
        "whether a step is taken",
        habit=skipped_by_loss,
        near=True,
    ),
    planted("ghost ignores C", LESS, "clipped at 10 C", plant=ghost_at(1.0), near=True, **GHOST),
    watching("three trials, one counted", LESS, "trials", train=three_trials),
    watching("a public seed", LESS, "seed", train=public_seed),
    planted(
        "Adam's raw second moment",
        LESS,
        "exp_avg_sq",
        kind=torch.optim.Adam,
        lr=0.01,
        habit=raw_second_moment,
        near=True,
    ),
    planted("ten records of a person", LESS, "person", data=copies()),
    planted("highest losses dropped", LESS, "dropped", plant=highest_losses_dropped, near=True),
    planted(
        "a rare class oftener",
        LESS,
        "drawn more often",
        plant=batches_of(rare_class_oftener),
        steps=150,
    ),
    planted(
        "norms of mean-scaled gradients",
        LESS,
        "gradients over the batch's size",
        "no example is clipped",
        plant=clip_with(lambda norms, c: factor(norms / len(norms), c)),
        near=True,
    ),
    planted(
        "raw gradient left in the sum",
        LESS,
        "raw, unclipped",
        plant=sums_with(raw_gradient_left),
        near=True,
    ),
    planted(
        "norm is the sum of tensors' norms",
        SAFER,
        "the sum of the tensors' norms",
        plant=clip_with(lambda norms, c: (c / norms.sum(1, keepdim=True)).clamp(max=1)),
    ),
    planted("empty batches left out", LESS, "is empty", habit=empty_left_out, batch=1, steps=80),
    planted(
        "bias calibrated at the end", MAYBE_HARMLESS, "weights change", after=calibrated_at_the_end
    ),
]

AGAIN = [
    planted("noise twice", SAFER, "the noise is 1.4", plant=noise_twice),
    four_times_as_long(),
    planted("a weighted sampler", UNKNOWN, BATCHES, plant=batches_of(weighted_sampler)),
    planted(
        "shuffled, cut at Poisson sizes", UNKNOWN, SHUFFLED, plant=batches_of(cut_at_poisson_sizes)
    ),
    planted(
        "C over the largest norm", LESS, "largest norm", plant=scaled_by_largest_norm, near=True
    ),
    planted(
        "each number clamped",
        LESS,
        "each number is clamped",
        plant=sums_with(numbers_clamped),
        near=True,
        max_grad_norm=0.02,
    ),
    ghost_without_biases(),
    planted("a contrastive loss", LESS, "depends on the others", plant=contrastive, near=True),
    planted(
        "C is a moving mean of norms",
        LESS,
        "max_grad_norm depends",
        "C follows",
        habit=moving_mean_clip,
        near=True,
    ),
    planted(
        "learning rate over the raw norm",
        LESS,
        "learning rate",
        habit=rate_over_raw_norm,
        near=True,
    ),
]

NEIGHBOURS = [
    planted(
        "each example twice", LESS, "2 times in its batch", habit=each_example_twice, near=True
    ),
    planted(
        "C is the mean norm of the batch before",
        LESS,
        "C follows the mean",
        habit=mean_clip_of_the_batch_before,
    ),
    planted(
        "weights calibrated on the batch", LESS, "the weight or buffer", habit=calibrated, near=True
    ),
]

LIMITS = [
    planted(
        "rate 2% too high", LESS, "batches hold", plant=batches_of(rate_a_little_too_high), steps=60
    ),
    planted(
        "noise cut at 4 σ",
        LESS,
        "not normal",
        plant=noise_changed(lambda noise, *_: noise.clamp(-0.4, 0.4)),
    ),
]

HARMLESS = [
    wrong_rule(),
    planted("an unknown buffer", MAYBE_HARMLESS, "memory", between=[lambda: Running("memory")]),
    planted("averaged weights", MAYBE_HARMLESS, "weights change", habit=averaged_weights),
    planted("weights projected", MAYBE_HARMLESS, "weights change", habit=projected),
    planted("best weights restored", MAYBE_HARMLESS, "weights change", habit=best_restored),
    planted("an average at the end", MAYBE_HARMLESS, "weights change", after=averaged_after),
    planted("losses looked at", MAYBE_HARMLESS, "thrown away", habit=losses_looked_at),
    planted(
        "values clipped after the noise",
        MAYBE_HARMLESS,
        "gradients change",
        plant=lambda t: t.optimizer.original_optimizer.register_step_pre_hook(
            lambda *_: torch.nn.utils.clip_grad_value_(t.net.parameters(), 1e-3)
        ),
    ),
]
