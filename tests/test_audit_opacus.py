"""Audits of trainings with Opacus: honest ones pass, broken ones fail with the cause in front."""

import gc
import pickle
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from oraudit import Result

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from witness.opacus_loop import (  # noqa: E402
    ADAPTIVE,
    HABITS,
    HONEST,
    MAYBE_HARMLESS,
    Body,
    Half,
    Running,
    Training,
    Twice,
    network,
    noise_with,
)

from oraudit.records import Record  # noqa: E402
from oraudit.ways.opacus.independent_gradients import ExampleGradients  # noqa: E402
from oraudit.ways.opacus.rules import Rules  # noqa: E402

pytest_plugins = "pytester"
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def assert_fails(result, name, words="", side=None):
    """The first finding is of this check, in these words."""
    assert result.status == "failed", result.text
    first = result.findings[0]
    assert first.name == name, result.text
    assert words in first.text, result.text
    if side:
        assert first.side == side


@pytest.mark.parametrize("private", [{}, {"grad_sample_mode": "ghost"}], ids=["flat", "ghost"])
def test_ten_kilobytes_are_kept_of_steps(private):
    """All that is kept, with batches of 40, and not of the noise alone."""
    between = [torch.nn.Linear(12, 400), torch.nn.Linear(400, 400), torch.nn.Linear(400, 12)]
    training = Training(net=network(*between), **private)
    sizes = []
    for _ in range(2):
        training.run(30)
        sizes.append(len(pickle.dumps(training.audit.state_dict())))
    assert 5_000 < (sizes[1] - sizes[0]) / 30 <= 10_000


class WithLoss(torch.nn.Module):
    """A model that returns its loss beside its output, as those of Transformers do."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, x, y):
        output = self.net(x)
        return torch.nn.functional.cross_entropy(output, y), output


def test_model_that_returns_its_loss():
    def habit(training, _number, x, y):
        training.optimizer.zero_grad()
        training.model(x, y)[0].backward()
        training.optimizer.step()

    result = Training(net=WithLoss, habit=habit).run().result()
    assert not result.findings, result.text
    assert "layers' rules" in result.text.splitlines()[-1]
    assert "the model's output has no row for each example" in result.text


@pytest.mark.parametrize("private", HONEST.values(), ids=HONEST)
def test_honest_trainings_pass(private):
    training = Training(**private)
    result = training.run().result()
    result.check()
    assert not result.findings, result.text
    assert "layers" not in result.text
    assert "depend" not in result.text


def saving(training, tmp_path):
    training.run(10)
    torch.save(training.model, tmp_path / "model.pt")
    copy = torch.load(tmp_path / "model.pt", weights_only=False)
    assert len(list(copy.parameters())) == 4
    training.run(30)


@pytest.mark.parametrize(("habit", "private"), HABITS.values(), ids=HABITS)
def test_honest_habits_pass(habit, private):
    private = dict(private)
    training = Training(*private.pop("between", ()), **private)
    habit(training)
    result = training.result()
    result.check()
    assert not result.findings, result.text


def test_saving_the_model_passes(tmp_path):
    training = Training()
    saving(training, tmp_path)
    training.result().check()


def test_nested_step_of_a_subclass_passes():
    net = network()
    Twice(network().parameters(), lr=0.1)  # another class's step is wrapped, too
    training = Training(net=net, optimizer=Twice(net.parameters(), lr=0.1)).run()
    training.result().check()
    assert not training.result().findings


def test_two_models_on_one_engine_pass():
    first = Training()
    second = Training(engine=first.engine, seed=2)
    for one, other in zip(first.batches(), second.batches(), strict=True):
        first.step(*one)
        second.step(*other)
    for training in (first, second):
        training.result().check()
        assert not training.result().findings


def test_compiled_model_passes():
    training = Training()
    compiled = torch.compile(training.model, backend="eager")
    training.loss = lambda x, y: training.criterion(compiled(x), y)
    training.run(10).result().check()


def test_unknown_buffer_cannot_be_told():
    training = Training(Running("memory"))
    assert_cannot_tell(training.run().result(), "buffers-outside")


def assert_cannot_tell(result, name):
    """Nothing is accused, and the finding can be allowed if it says so."""
    assert result.status == "cannot tell", result.text
    assert [finding.name for finding in result.findings] == [name], result.text


@pytest.mark.parametrize(("step", "name"), MAYBE_HARMLESS.values(), ids=MAYBE_HARMLESS)
def test_possible_postprocessing_cannot_be_told(step, name):
    training = Training()
    for number, (x, y) in enumerate(training.batches()):
        step(training, number, x, y)
    assert_cannot_tell(training.result(), name)
    assert name in training.result().findings[0].text
    training.audit._allow = (name,)
    allowed = training.result()
    allowed.check()
    assert allowed.findings


def test_method_replaced_after_attach_is_watched():
    """A bug may be planted after make_private, also around what the audit has put there."""
    training = Training()
    training.run(5)
    inner = training.optimizer.add_noise

    def add_noise():
        inner()
        for p in training.optimizer.params:
            p.grad = p.summed_grad.view_as(p) + (p.grad - p.summed_grad.view_as(p)) / 2

    training.optimizer.add_noise = add_noise
    result = training.run(35).result()
    assert_fails(result, "noise-size", "35 of 40 steps, first 6", "less private")
    training.audit.detach()
    assert training.optimizer.add_noise is add_noise


def test_unseen_steps_cannot_be_told():
    from oraudit.ways.opacus.attach import attach

    training = Training(attach=False)
    training.audit = attach(training.optimizer)
    optimizer = training.optimizer

    def step():
        optimizer.clip_and_accumulate()
        type(optimizer).add_noise(optimizer)
        optimizer.scale_grad()
        optimizer.original_optimizer.step()

    optimizer.step = step
    optimizer.add_noise = lambda: None
    training.run(3)
    result = training.result()
    assert result.status != "passed"
    assert "no private step" in str(result)


def test_frozen_weight_that_changes_fails():
    net = Body()
    net.head = torch.nn.Linear(4, 4)
    net.head.requires_grad_(False)
    training = Training(net=net, optimizer=torch.optim.SGD(net.body.parameters(), 0.1)).run(20)
    net.head.weight += 0.1
    training.run(20)
    assert_fails(training.result(), "private-steps", "head.weight changes", "less private")


@pytest.mark.parametrize("steps", [1, 12], ids=["before a survey", "after a survey"])
def test_late_parameter_is_late_after_surveys(steps):
    training = Training(net=Body()).run(11)
    training.net.head = torch.nn.Linear(4, 4)
    training.run(steps)
    training.net.head.bias.grad = torch.ones(4)
    torch.optim.SGD(training.net.head.parameters(), 0.1).step()
    result = training.result()
    assert_fails(result, "private-steps", "head.bias joined the model after", "less private")
    assert "head.bias changes" not in result.text


# ------------------------------------------------------------------------------------------- ghost


def test_ghost_at_another_clip_fails():
    training = Training(grad_sample_mode="ghost")
    training.model.max_grad_norm = 0.3
    assert_fails(training.run().result(), "apart-clip", "clipped at 3 C", "less private")


def test_per_layer_clips_apart_from_the_noise_fail():
    training = Training(clipping="per_layer", max_grad_norm=[0.05, 0.1, 0.05, 0.1])
    training.optimizer.max_grad_norms = [0.1, 0.2, 0.1, 0.2]
    assert_fails(training.run().result(), "apart-clip", "clipped at 2 C", "less private")


def test_wrong_ghost_norm_fails(monkeypatch):
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    rules = dict(GradSampleModuleFastGradientClipping.NORM_SAMPLERS)
    right = rules[torch.nn.Linear]

    def without_bias(layer, activations, backprops):
        found = right(layer, activations, backprops)
        return {p: norm * (p.ndim == 2) for p, norm in found.items()}

    rules[torch.nn.Linear] = without_bias
    monkeypatch.setattr(GradSampleModuleFastGradientClipping, "NORM_SAMPLERS", rules)
    result = Training(grad_sample_mode="ghost").run(20).result()
    assert_fails(result, "ghost-norms", "times what ghost clipping takes for it", "less private")


@pytest.mark.parametrize(
    ("norms", "ratio"),
    [
        ([4.0, 0.0, torch.nan], None),
        ([2.0, 0.0, torch.nan], 2.0),
        ([2.0, torch.nan, torch.nan], 2.0),
        ([4.0, torch.nan, torch.nan], torch.nan),
        ([4.0, 0.0, torch.inf], None),
        ([torch.inf, 0.0, torch.nan], 0.0),
    ],
)
def test_ghost_norms_next_to_nan(norms, ratio):
    """The norms of the gradients are 4, 0 and NaN: the last one is none of a rule's errors."""
    record = Record()
    gradients = [torch.tensor([[4.0], [0.0], [torch.nan]])]
    Rules(None, record).check_norms(ExampleGradients(gradients, [0, 1, 2], 3), torch.tensor(norms))
    ratios = [event.number for event in record.events]
    assert ratios == pytest.approx([] if ratio is None else [ratio], nan_ok=True)


def test_report_says_that_no_step_was_due():
    first = Training().run(6)
    second = Training(seed=5)
    second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    second.audit.load_state_dict(first.audit.state_dict())
    report = str(second.run(5).result())
    assert "depend on each other (no step was due)" in report
    assert "was not given" not in report


def test_wrong_rule_of_a_layer_cannot_be_told(monkeypatch):
    from opacus.grad_sample import GradSampleModule

    rules = dict(GradSampleModule.GRAD_SAMPLERS)
    right = rules[torch.nn.Linear]
    rules[torch.nn.Linear] = lambda *given: {p: g / p.ndim for p, g in right(*given).items()}
    monkeypatch.setattr(GradSampleModule, "GRAD_SAMPLERS", rules)
    result = Training().run(20).result()
    assert_cannot_tell(result, "layer-rules")
    assert "weight" in result.findings[0].text


def test_dropout_is_looked_at_by_two_examples(monkeypatch):
    from opacus.grad_sample import GradSampleModule

    honest = Training(Half()).run(10)
    assert honest.audit._rules.compared
    rules = dict(GradSampleModule.GRAD_SAMPLERS)
    right = rules[torch.nn.Linear]
    rules[torch.nn.Linear] = lambda *given: {p: g / p.ndim for p, g in right(*given).items()}
    monkeypatch.setattr(GradSampleModule, "GRAD_SAMPLERS", rules)
    assert_cannot_tell(Training(Half()).run(10).result(), "layer-rules")


def test_adaptive_noise_without_the_counts_share_fails():
    training = Training(attach=False, **{**ADAPTIVE, "unclipped_num_std": 0.7})
    noise_with(lambda place, step: 1.0)(training)
    noisy = training.optimizer.add_noise

    def add_noise():
        noisy()
        training.optimizer.unclipped_num = float(training.optimizer.unclipped_num)

    training.optimizer.add_noise = add_noise
    training.optimizer.update_max_grad_norm = lambda: None
    training.audit = training.attach()
    assert_fails(training.run().result(), "noise-size", "the noise is 0.69", "less private")


def test_shuffled_batches_fail():
    training = Training(poisson_sampling=False)
    result = training.run().result()
    assert_fails(result, "poisson-batches", "not for these batches", "side unknown")


def test_exact_findings_warn_at_their_step():
    from oraudit.report import NotAsTold

    training = Training(grad_sample_mode="ghost").run(5)
    training.model.max_grad_norm = 0.3
    with pytest.warns(NotAsTold, match="step 6: examples are clipped at 3 C") as warned:
        training.run(5)
    assert len([each for each in warned if each.category is NotAsTold]) == 1
    with pytest.warns(NotAsTold, match="without the private step"):
        training.optimizer.original_optimizer.step()


# ------------------------------------------------------------------------- nothing else is changed


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_training_is_the_same_when_watched(mode):
    ended = []
    for attach in (True, False):
        training = Training(Half(), attach=attach, grad_sample_mode=mode)
        training.run(10)
        ended.append((training, torch.get_rng_state()))
    (watched, state), (alone, other) = ended
    assert torch.equal(state, other)
    for mine, theirs in zip(watched.net.parameters(), alone.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_detach_leaves_everything_as_it_was():
    from torch.nn.modules.module import _global_forward_hooks
    from torch.optim.optimizer import _global_optimizer_post_hooks

    training = Training(attach=False)
    plain = training.optimizer.original_optimizer

    def state():
        gc.collect()
        hooks = (plain._optimizer_step_pre_hooks, plain._optimizer_step_post_hooks)
        return [
            dict(training.optimizer.__dict__),
            *map(len, hooks),
            len(_global_forward_hooks),
            len(_global_optimizer_post_hooks),
        ]

    before = state()
    audit = training.attach()
    assert state() != before
    training.audit = audit
    training.run(10)
    audit.detach()
    audit.detach()
    training.optimizer.zero_grad()
    assert state() == before
    steps = audit.result().text
    training.run(10)
    assert audit.result().text == steps


def test_an_audit_that_nobody_keeps_leaves_no_hooks():
    from torch.nn.modules.module import _global_forward_hooks

    gc.collect()
    before = len(_global_forward_hooks)
    Training().run(6)
    gc.collect()
    assert len(_global_forward_hooks) == before


def test_errors_of_the_audit_spare_the_training(monkeypatch):
    training = Training()
    training.run(10)
    monkeypatch.setattr("oraudit.ways.opacus.steps.look_at", lambda *given: 1 / 0)
    result = training.run(10).result()
    assert result.status == "cannot tell"
    assert "division by zero" in str(result)


def test_other_optimizers_are_refused_by_name():
    from oraudit.ways.opacus.attach import attach
    from oraudit.ways.opacus.refused import CannotAttach

    with pytest.raises(CannotAttach, match="optimizer is SGD"):
        attach(torch.optim.SGD(network().parameters(), lr=1))


# ----------------------------------------------------------------------------- resumed and watched


def test_state_goes_into_the_training_checkpoint(tmp_path):
    first = Training().run(20)
    checkpoint = {
        "model": first.net.state_dict(),
        "accountant": first.engine.accountant.state_dict(),
        "audit": first.audit.state_dict(),
    }
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    checkpoint = torch.load(tmp_path / "checkpoint.pt")
    second = Training(seed=5)
    second.net.load_state_dict(checkpoint["model"])
    second.engine.accountant.load_state_dict(checkpoint["accountant"])
    unaware = second.attach()
    second.audit = second.attach()
    second.audit.load_state_dict(checkpoint["audit"])
    second.run(20)
    result = second.result()
    assert "40 steps" in str(result)
    assert result.status == "passed", str(result)
    assert "knew before" not in str(result)
    unaware.detach()


def test_report_says_from_which_step_it_saw():
    first = Training().run(20)
    second = Training(seed=5)
    second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    result = second.run(20).result()
    result.check()
    assert "the 20 steps that the accountant knew before" in str(result)


def test_noise_again_after_a_resume_is_found():
    """The generator is wound back with the checkpoint, and the state of the audit knows it."""
    first = Training()
    state = torch.get_rng_state()
    first.run(20)
    second = Training(seed=2)
    second.net.load_state_dict(first.net.state_dict())
    second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    second.audit.load_state_dict(first.audit.state_dict())
    torch.set_rng_state(state)
    assert_fails(second.run(20).result(), "noise-reuse", "is that of step")


def resumed(*, accountant, seed=2):
    """A training that goes on from another one, both of one process."""
    first = Training(attach=False).run(20)
    second = Training(attach=False, seed=seed)
    second.net.load_state_dict(first.net.state_dict())
    if accountant:
        second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    torch.manual_seed(seed)
    second.run(20)


def test_watched_trainings_pass(tmp_path):
    from oraudit.ways.opacus.watch import watch

    with watch() as audits:
        resumed(accountant=True)
    audits.check()
    assert len(audits) == 2
    assert "training 2 of 2" in str(audits)
    audits.save(tmp_path / "report", card={"model": "small"})
    for number, audit in enumerate(audits, 1):
        saved = Result.load(tmp_path / "report" / str(number))
        assert saved == audit.result()
        assert saved.facts.card[0] == ("Model", "small")
    with pytest.raises(FileExistsError):
        audits.save(tmp_path / "report")


def test_resuming_with_an_empty_accountant_fails():
    from oraudit.ways.opacus.watch import watch

    with watch() as audits:
        resumed(accountant=False)
    with pytest.raises(AssertionError, match="goes on from an earlier one, whose 20 steps"):
        audits.check()
    assert audits[0].result().status == "passed"
    assert_fails(audits[1].result(), "earlier-trainings", "goes on from", "less private")


def test_noise_of_an_earlier_training_fails():
    from oraudit.ways.opacus.watch import watch

    with watch() as audits:
        Training(attach=False).run(20)
        Training(attach=False).run(20)
    assert_fails(audits[1].result(), "earlier-trainings", "of an earlier training")


def test_private_again_ends_the_former_audit():
    from oraudit.ways.opacus.watch import watch

    with watch() as audits:
        first = Training(attach=False).run(20)
        parts = first.engine.make_private(
            module=first.model,
            optimizer=first.optimizer,
            data_loader=first.loader,
            noise_multiplier=2.0,
            max_grad_norm=0.1,
            poisson_sampling=False,
        )
        first.optimizer = parts[1]
        first.run(20)
    audits.check()
    assert [audit._record.step for audit in audits] == [21, 21]


def test_watch_raises_if_nothing_is_private():
    from opacus import PrivacyEngine

    from oraudit.ways.opacus.watch import NothingPrivate, watch

    former = PrivacyEngine.make_private
    with pytest.raises(NothingPrivate), watch():
        pass
    with pytest.raises(ZeroDivisionError), watch():
        raise ZeroDivisionError
    assert PrivacyEngine.make_private is former


class Shell(torch.optim.Optimizer):
    """An optimizer around another one that is none itself, as that of Accelerate."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.param_groups = optimizer.param_groups
        self.state = optimizer.state

    def step(self, closure=None):
        self.optimizer.step(closure)

    def zero_grad(self, set_to_none=False):
        self.optimizer.zero_grad(set_to_none)


def test_optimizers_without_hooks_are_refused_by_name():
    from oraudit.ways.opacus.watch import watch

    with watch() as audits:
        training = Training(
            kind=lambda parameters, lr: Shell(torch.optim.SGD(parameters, lr=lr)), attach=False
        )
        training.run(3)
    assert audits.status == "cannot tell"
    assert "made of Shell, whose steps have no hooks" in str(audits)


def test_watch_cannot_tell_of_refused_optimizers(monkeypatch):
    from oraudit.ways.opacus import attach
    from oraudit.ways.opacus.refused import CannotAttach
    from oraudit.ways.opacus.watch import watch

    def refuse(optimizer):
        raise CannotAttach("optimizer is Other: its noise is correlated over steps")

    monkeypatch.setattr(attach, "check_optimizer", refuse)
    with watch() as audits:
        Training(attach=False).run(3)
    assert audits.status == "cannot tell"
    assert "Other" in str(audits)


def test_fixture_audits_a_test(pytester):
    pytester.makepyfile(
        f"""
        import sys

        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_audit_opacus import Training, noise_with

        def test_honest(watch):
            Training(attach=False).run(10)
            watch.check()

        def test_nothing(watch):
            pass
        """
    )
    options = ["-p", "no:cacheprovider", "-W", "ignore"]
    if not entry_points(group="pytest11", name="oraudit"):
        options += ["-p", "oraudit.fixtures"]
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*NothingPrivate: nothing was made private*"])


# ---------------------------------------------------------------------------------------- commands

SCRIPT = """
import sys
from pathlib import Path

sys.path.append({folder!r})
from test_audit_opacus import Training, noise_with

assert __name__ == "__main__"
assert sys.path[0] == str(Path(__file__).resolve().parent)
import beside_the_script

training = Training(attach=False)
if "quiet" in sys.argv[1:]:
    noise_with(lambda place, step: 0)(training)
if "none" not in sys.argv[1:]:
    training.run(10)
print("trained", sys.argv)
if "error" in sys.argv[1:]:
    raise ValueError("in the script")
if "exit" in sys.argv[1:]:
    sys.exit(0)
if "exit 7" in sys.argv[1:]:
    sys.exit(7)
"""

STATUSES = {
    "honest": ([], 0, "PASSED"),
    "exit": (["exit"], 0, "PASSED"),
    "an exit of its own": (["exit 7"], 3, "ended in an error"),
    "no noise": (["quiet", "--lr", "1"], 1, "FAILED    no noise"),
    "error": (["error"], 3, "CANNOT TELL  the script ended in an error"),
    "no noise and error": (["quiet", "error"], 1, "FAILED    no noise"),
    "no step": (["none"], 3, "CANNOT TELL  no private step was seen"),
}


@pytest.mark.parametrize(("arguments", "status", "words"), STATUSES.values(), ids=STATUSES)
def test_run_ends_with_the_status(tmp_path, capsys, arguments, status, words):
    from oraudit.__main__ import main

    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(folder=str(Path(__file__).parent)))
    (tmp_path / "beside_the_script.py").write_text("")
    before = (list(sys.argv), list(sys.path))
    folder = tmp_path / "report"
    assert main(["run", "--report", str(folder), str(script), *arguments]) == status
    assert Result.load(folder).exit == status
    with pytest.raises(SystemExit) as end:
        main(["run", "--report", str(folder), str(script), *arguments])
    assert end.value.code == 2
    assert (sys.argv, sys.path) == before
    printed = capsys.readouterr()
    assert words in printed.out
    assert f"trained {[str(script), *arguments]}" in printed.out
    if "error" in arguments:
        assert "ValueError: in the script" in printed.err
        assert "runpy" not in printed.err


def test_run_without_training_cannot_tell(tmp_path, capsys):
    from oraudit.__main__ import main

    script = tmp_path / "nothing.py"
    script.write_text("print('nothing')\n")
    assert main(["run", "--report", str(tmp_path / "report"), str(script)]) == 3
    assert "nothing was made private" in capsys.readouterr().out
    assert "nothing was made private" in Result.load(tmp_path / "report").text
    file = tmp_path / "file"
    file.write_text("")
    assert main(["run", "--report", str(file / "report"), str(script)]) == 3
    assert "cannot be written: Not a directory" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "missing.py")]) == 2
    with pytest.raises(SystemExit) as end:
        main(["run"])
    assert end.value.code == 2


class Standardized(torch.nn.Module):
    """Divides by the batch's unbiased deviation, which one example alone does not have."""

    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 1e-5)


def test_example_that_is_nothing_alone_depends_on_others():
    training = Training(net=network(Standardized()))
    training.run(10)
    assert_fails(training.result(), "dependent-examples", "it is not a number", "less private")


def test_changing_learning_rate_is_not_looked_at():
    training = Training()
    schedule = torch.optim.lr_scheduler.StepLR(training.optimizer, 3)
    for x, y in training.batches(10):
        training.step(x, y)
        schedule.step()
    assert "what decides the learning rate" in str(training.result())
    steady = Training()
    steady.run(10)
    assert "what decides the learning rate" not in str(steady.result())
