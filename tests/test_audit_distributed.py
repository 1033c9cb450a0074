"""Audits of distributed trainings: two processes, each of which says the same of both."""

import multiprocessing
import os
import re
import subprocess
import sys
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

import pytest

from oraudit import Result

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

EXAMPLES = 400
BATCH = 40
STEPS = 30

#: Seconds after which a training, and the wait of one process for another, must have ended.
PATIENCE = 120
WAIT = 60


# -------------------------------------------------------------------- a training on two processes


class Training:
    """What each process has of a small training; faults change it before the first step."""

    def __init__(self, rank, kind, batch=BATCH):
        from opacus import PrivacyEngine
        from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Parallel
        from opacus.utils.fsdp_utils import FSDP2Wrapper
        from torch.utils.data import DataLoader, TensorDataset

        data = torch.Generator().manual_seed(7)
        x = torch.randn(EXAMPLES, 16, generator=data)
        y = torch.randint(4, (EXAMPLES,), generator=data)
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(16, 12), torch.nn.ReLU(), torch.nn.Linear(12, 4))
        torch.manual_seed(10 + rank)
        self.rank = rank
        self.criterion = torch.nn.CrossEntropyLoss()
        settings = {"max_grad_norm": 0.1, "noise_multiplier": 1.0}
        if kind == "per layer":
            settings |= {"clipping": "per_layer", "max_grad_norm": [0.05, 0.1, 0.05, 0.1]}
        if kind == "ghost":
            settings |= {"grad_sample_mode": "ghost", "criterion": self.criterion}
        if kind == "fsdp":
            settings |= {"grad_sample_mode": "ghost_fsdp", "criterion": self.criterion}
        net = FSDP2Wrapper(net) if kind == "fsdp" else Parallel(net)
        parts = PrivacyEngine().make_private(
            module=net,
            optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
            data_loader=DataLoader(TensorDataset(x, y), batch_size=batch),
            **settings,
        )
        self.model, self.optimizer, self.loader = parts[0], parts[1], parts[-1]
        if len(parts) == 4:
            self.criterion = parts[2]
        self.after = {}
        self.audit = None

    def run(self, steps=STEPS):
        done = 0
        while done < steps:
            for x, y in self.loader:
                self.optimizer.zero_grad()
                self.criterion(self.model(x), y).backward()
                self.optimizer.step()
                done += 1
                self.after.get(done, lambda: None)()
                if done == steps:
                    return


def noise_on_all(training):
    training.optimizer.rank = 0


def noise_on_none(training):
    training.optimizer.rank = 1


def no_noise(training):
    def add_noise():
        for p in training.optimizer.params:
            p.grad = training.optimizer.grad_state[p]["summed_grad"]

    training.optimizer.add_noise = add_noise


def half_noise(training):
    optimizer = training.optimizer
    former = optimizer.add_noise

    def add_noise():
        optimizer.noise_multiplier /= 2
        try:
            former()
        finally:
            optimizer.noise_multiplier *= 2

    optimizer.add_noise = add_noise


def half_noise_on_all(training):
    noise_on_all(training)
    half_noise(training)


def same_noise_on_all(training):
    noise_on_all(training)
    training.optimizer.generator = torch.Generator().manual_seed(3)


def same_small_noise_on_all(training):
    """A quarter of the noise on both, which together is half of it as it is the same."""
    same_noise_on_all(training)
    half_noise(training)
    half_noise(training)


def same_shards_of_noise(training):
    """Each rank draws the noise of its shards, from the same seed."""
    optimizer = training.optimizer
    generator = torch.Generator().manual_seed(3)

    def add_noise():
        for p in optimizer.params:
            p.grad = optimizer.grad_state[p]["summed_grad"]
            shard = p.grad.to_local()
            shard += torch.randn(shard.shape, generator=generator) * 0.1 / 2

    optimizer.add_noise = add_noise


def one_generator(training):
    """Harmless with shards: each rank takes another part of the same noise."""
    training.optimizer.generator = torch.Generator().manual_seed(3)


def same_batches(training):
    """Ranks sample with equal seeds, and so all batches are equally large."""
    training.loader.batch_sampler.generator = torch.Generator().manual_seed(3)


def all_data(training):
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    sampler = training.loader.batch_sampler
    sampler.__class__ = UniformWithReplacementSampler
    sampler.num_samples = EXAMPLES
    sampler.steps = EXAMPLES // BATCH


def adds_twice(training):
    """The sum of this rank's clipped gradients is twice what it should be."""
    optimizer = training.optimizer

    def accumulate():
        type(optimizer).accumulate(optimizer)
        for p in optimizer.params:
            optimizer.grad_state[p]["summed_grad"] *= 2

    optimizer.accumulate = accumulate


def error_on_one(training):
    if training.rank == 1:
        training.after[5] = lambda: setattr(training.audit, "_effective", lambda sigma: 1 / 0)


def detached_on_one(training):
    if training.rank == 1:
        training.after[10] = training.audit.detach


def not_attached_on_one(training):
    training.attach = training.rank == 0


def in_parts(training):
    """Memory holds five examples at a time: ranks have other numbers of parts."""
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    def run():
        steps = 0
        with BatchMemoryManager(
            data_loader=training.loader, max_physical_batch_size=5, optimizer=training.optimizer
        ) as parts:
            while steps < STEPS:
                for x, y in parts:
                    training.optimizer.zero_grad()
                    training.criterion(training.model(x), y).backward()
                    training.optimizer.step()
                    steps += not training.optimizer._is_last_step_skipped
                    if steps == STEPS:
                        break

    training.run = run


def resumed_after_5(training):
    """The audit of another one that has seen the first steps."""

    def resume():
        import oraudit

        state = training.audit.state_dict()
        training.audit.detach()
        training.audit = oraudit.attach(training.optimizer, training.model, training.loader)
        training.audit.load_state_dict(state)

    training.after[5] = resume


def train(rank, kind, fault, before=None, canaries=0, **options):
    """Train on this process under audit; return the report, as numbers and words."""
    import oraudit
    from oraudit.ways.opacus import ranks
    from oraudit.ways.opacus.refused import CannotAttach

    ranks.PATIENCE = 15.0
    training = Training(rank, kind, **options)
    training.attach = True
    if before:
        before(training)
    try:
        if training.attach:
            number = canaries[rank] if isinstance(canaries, list) else canaries
            training.audit = oraudit.attach(
                training.optimizer, training.model, training.loader, canaries=number, seed=rank + 1
            )
    except CannotAttach as reason:
        training.run()
        return "refused", [], str(reason)
    if fault:
        fault(training)
    pulls = note_pulls(training.audit._canaries) if canaries else []
    training.run()
    if not training.attach:
        return None
    result = training.audit.result()
    if canaries:
        riding = training.audit._canaries
        right = (riding.scores() > 0) == riding.coins.included
        share = float(riding._ratios.share) / riding.steps
        numbers = riding.steps, share, float(right.mean()), sum(pulls) / len(pulls)
        return result.status, numbers, result.text
    return result.status, [(each.name, each.side) for each in result.findings], result.text


def note_pulls(canaries):
    """How much of C the included canaries have added in each step, over their rate."""
    pulls = []
    score = canaries.score

    def noted(seen, sigma):
        y = seen.cpu().numpy() * canaries.coins.signs
        pulls.append(float(y[canaries.coins.included].mean()) / 0.1)
        score(seen, sigma)

    canaries.score = noted
    return pulls


# --------------------------------------------------------------------------------- two processes


def _serve(rank, port, orders):
    """Train what is ordered until the orders end."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = torch.distributed.TCPStore("127.0.0.1", port, is_master=False)
    torch.distributed.init_process_group(
        "gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=WAIT)
    )
    while True:
        order = orders.recv()
        try:
            orders.send(train(rank, **order))
        except BaseException:
            orders.send(("raised", [], traceback.format_exc()))


class Pair:
    """Two processes that train together; they are started again where a training has hung."""

    def __init__(self):
        self.processes = []

    def start(self):
        self.store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True)
        spawning = multiprocessing.get_context("spawn")
        self.orders = []
        for rank in range(2):
            here, there = spawning.Pipe()
            process = spawning.Process(
                target=_serve, args=(rank, self.store.port, there), daemon=True
            )
            process.start()
            self.orders.append(here)
            self.processes.append(process)

    def stop(self):
        for process in self.processes:
            process.kill()
            process.join()
        self.processes = []

    def train(self, kind, fault=None, **options):
        """The reports of both."""
        if not self.processes:
            self.start()
        for orders in self.orders:
            orders.send({"kind": kind, "fault": fault, **options})
        if not all(orders.poll(PATIENCE) for orders in self.orders):
            self.stop()
            pytest.fail(f"the training has not ended after {PATIENCE} s")
        return [orders.recv() for orders in self.orders]


@pytest.fixture(scope="module")
def pair():
    made = Pair()
    yield made
    made.stop()


def assert_same(reports):
    """Both ranks say the same; return it."""
    first, second = reports
    assert first == second
    return first


# ---------------------------------------------------------------------------------- what they say


@pytest.mark.parametrize("kind", ["flat", "per layer", "ghost", "fsdp"])
def test_honest_trainings_pass_on_both_ranks(pair, kind):
    status, names, text = assert_same(pair.train(kind))
    assert (status, names) == ("passed", []), text
    assert re.search(r"clipping  exact in \d+ ", text), text
    assert "an example adds at most 1 C" in text
    assert "layers" not in text
    assert "depend" not in text


@pytest.mark.parametrize("kind", ["flat", "ghost", "fsdp"])
def test_ranks_may_have_empty_parts(pair, kind):
    status, _, text = assert_same(pair.train(kind, batch=4))
    assert status == "passed", text


def test_batches_in_parts_pass(pair):
    status, names, text = assert_same(pair.train("flat", in_parts))
    assert (status, names) == ("passed", []), text
    assert re.search(r"batches   0\.(09|10)", text), text


def test_shards_of_one_noise_pass(pair):
    status, names, text = assert_same(pair.train("fsdp", one_generator))
    assert (status, names) == ("passed", []), text


@pytest.mark.parametrize("kind", ["flat", "fsdp"])
def test_resumed_audits_know_all_steps(pair, kind):
    status, names, text = assert_same(pair.train(kind, resumed_after_5))
    assert (status, names) == ("passed", []), text
    assert "normal, no reuse in 30 steps" in text


BROKEN = {
    "noise on none": ("flat", noise_on_none, "noise-size", "no noise"),
    "σ/2": ("flat", half_noise, "noise-size", "the noise is 0."),
    "σ/2 on both": ("flat", half_noise_on_all, "rank-noise", "2 of 2 ranks add noise"),
    "same noise": ("flat", same_small_noise_on_all, "rank-seeds", "the same noise in 30 of 30"),
    "equal samples": ("flat", same_batches, "rank-seeds", "the same size in all 30 steps"),
    "all data": ("flat", all_data, "rank-data", "draw from the same data"),
    "ghost, noise on none": ("ghost", noise_on_none, "noise-size", "no noise"),
    "ghost, all data": ("ghost", all_data, "rank-data", "draw from the same data"),
    "per layer, σ/2": ("per layer", half_noise, "noise-size", "the noise is 0."),
    "shards, no noise": ("fsdp", no_noise, "noise-size", "no noise"),
    "shards, σ/2": ("fsdp", half_noise, "noise-size", "the noise is 0."),
    "shards, same noise": ("fsdp", same_shards_of_noise, "rank-seeds", "the same noise in 30"),
    "shards, equal samples": ("fsdp", same_batches, "rank-seeds", "the same size in all 30"),
    "shards, all data": ("fsdp", all_data, "rank-data", "draw from the same data"),
    "shards, twice the sum": ("fsdp", adds_twice, "clipped-sum", "the clipped sum differs"),
}


@pytest.mark.parametrize(("kind", "fault", "name", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_trainings_fail_on_both_ranks(pair, kind, fault, name, words):
    status, names, text = assert_same(pair.train(kind, fault))
    assert status == "failed", text
    first, side = names[0]
    assert first == name, text
    assert words in text.splitlines()[0]
    unknown = fault in (same_batches, adds_twice)
    assert side == ("side unknown" if unknown else "less private"), text


SAFER = {
    "own noise": (noise_on_all, "rank-noise", "where one should: together it is 1.4"),
    "same noise": (same_noise_on_all, "rank-seeds", "draw the same noise in 30 of 30 steps"),
}


@pytest.mark.parametrize(("fault", "name", "words"), SAFER.values(), ids=SAFER)
def test_noise_on_every_rank_is_safer(pair, fault, name, words):
    status, names, text = assert_same(pair.train("flat", fault))
    assert status == "passed", text
    assert names[0] == (name, "safer")
    assert words in text


# ----------------------------------------------------------------------------- nobody waits long


@pytest.mark.parametrize("kind", ["flat", "fsdp"])
def test_error_on_one_ends_both(pair, kind):
    for status, names, text in pair.train(kind, error_on_one):
        assert status == "cannot tell", text
        assert "did not see every step" in text
        assert all(name == "chain" for name, _ in names), text


@pytest.mark.parametrize("kind", ["flat", "fsdp"])
def test_audit_taken_off_ends_both(pair, kind):
    other, own = pair.train(kind, detached_on_one)
    assert own[0] == "passed"
    assert " 10 steps" in own[2]
    assert other[0] == "cannot tell"
    assert "the audit of rank 1 was taken off" in other[2]


# ------------------------------------------------------------------------------------ oraudit run

SCRIPT = """
import sys

import torch

sys.path.append({folder!r})
import test_audit_distributed as trainings

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
training = trainings.Training(rank, "flat")
if "quiet" in sys.argv[1:]:
    trainings.noise_on_none(training)
if "error" in sys.argv[1:] and rank == 1:
    training.after[10] = lambda: 1 / 0
training.run(20)
torch.distributed.destroy_process_group()
if rank == 0:
    print("evaluated")
"""

ENDS = {
    "honest": ([], 0, "PASSED "),
    "broken": (["quiet"], 1, "FAILED    no noise"),
    "an error on one": (["error"], 1, "the script ended in an error"),
}


@pytest.mark.parametrize(("arguments", "status", "words"), ENDS.values(), ids=ENDS)
def test_torchrun_prints_one_report(tmp_path, arguments, status, words):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(folder=str(Path(__file__).parent)))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"),
            *("--local-addr", "127.0.0.1", "-m", "oraudit", "run"),
            *("--report", str(tmp_path / "report"), str(script), *arguments),
        ],
        cwd=tmp_path,
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert ended.returncode == status, ended.stderr
    assert ended.stdout.count(words) == 1, ended.stdout
    saved = [Result.load(tmp_path / f"report/rank-{rank}") for rank in (0, 1)]
    # torchrun ends with 1 whatever a process ends with.
    assert any(result.exit for result in saved) == bool(status)
    assert len(re.findall("^unlooked", ended.stdout, re.MULTILINE)) == 1
    if arguments == ["error"]:
        assert "ZeroDivisionError" in ended.stderr
    else:
        assert ended.stdout.index("evaluated") < ended.stdout.index(words)


# ---------------------------------------------------------------------------------------- canaries


@pytest.mark.parametrize("kind", ["flat", "per layer", "ghost", "fsdp"])
def test_canaries_ride_once_on_all_ranks(pair, kind):
    """What joins on one rank, or on each rank's shards, is seen alike on all."""
    status, numbers, text = assert_same(pair.train(kind, canaries=200))
    assert status == "passed", text
    steps, share, right, pull = numbers
    assert steps == STEPS
    assert 0.3 < pull < 1.7 if kind != "per layer" else 0.05 < pull < 1
    assert 0.9 < share < 1.15
    assert right > 0.5
    assert "200 canaries in the training's own sum" in text
    assert re.search(r"clipping  exact in \d+ ", text), text


@pytest.mark.parametrize("kind", ["flat", "fsdp"])
def test_counts_of_ranks_find_less_noise(pair, kind):
    status, numbers, text = assert_same(pair.train(kind, quarter_noise, canaries=256))
    assert status == "failed", text
    _, share, right, pull = numbers
    assert 0.8 < pull < 1.2
    assert 0.22 < share < 0.32
    assert right > 0.9
    assert "the counts refute the stated training" in text


def quarter_noise(training):
    half_noise(training)
    half_noise(training)


def test_ranks_with_other_canaries_are_refused(pair):
    for status, _, text in pair.train("flat", canaries=[10, 20]):
        assert status == "refused"
        assert "the ranks have different numbers of canaries" in text


# The ranks of this pair count their audits, of which one has more now: it comes last.
def test_audit_on_one_rank_is_refused(pair):
    refused, nothing = pair.train("flat", before=not_attached_on_one)
    assert nothing is None
    assert refused[0] == "refused"
    assert "rank 1 attached no audit within 15 s: attach one on every rank" in refused[2]
