"""Saved audits vouch for themselves: what was edited is refused in one line; nothing crashes."""

import copy
import pickle
import warnings
from dataclasses import asdict, fields, is_dataclass
from math import inf, nan

import numpy as np
import pytest

from oraudit import Audit
from oraudit.records import Event, Look, Record, Told, seal

STEPS = 30


def another(canaries=20):
    return Audit(examples=300, canaries=canaries, seed=1 if canaries else None)


def audited(steps=STEPS, canaries=20):
    """An honest training with all that a loop may give."""
    rng = np.random.default_rng(1)
    audit = another(canaries)
    weights = {"a": np.zeros((40, 5)), "b": np.zeros(7)}
    for _ in range(steps):
        size = rng.binomial(300, 0.1)
        whole = rng.normal(size=(size, 207))
        whole *= np.minimum(1, 1 / (np.linalg.norm(whole, axis=1, keepdims=True) + 1e-6))
        per_example = {"a": whole[:, :200].reshape(-1, 40, 5), "b": whole[:, 200:]}
        clipped = {name: each.sum(0) for name, each in per_example.items()}
        if canaries:
            clipped = audit.ride(clipped, clip=1.0, rate=0.1)
        noisy = {
            name: each + rng.normal(scale=2, size=each.shape) for name, each in clipped.items()
        }
        weights = {name: each - noisy[name] / 30 for name, each in weights.items()}
        audit.step(
            **{"clipped": clipped, "noisy": noisy, "clip": 1.0, "sigma": 2.0, "rate": 0.1},
            **{"per_example": per_example, "inputs": rng.normal(size=(size, 3))},
            **{"weights": weights, "buffers": {"mean": np.ones(3), "count": np.arange(2)}},
        )
    return audit


@pytest.fixture(scope="module")
def state():
    return audited().state_dict()


def put(*path):
    """An edit that puts the last of these where the others lead."""
    *path, key, value = path

    def edit(content):
        for each in path:
            content = content[each]
        content[key] = value(content[key]) if callable(value) else value

    return edit


def drop(*path):
    """An edit that takes out what these lead to."""
    *path, key = path

    def edit(content):
        for each in path:
            content = content[each]
        del content[key]

    return edit


def swap(*path):
    """An edit that gives two keys each other's value."""
    *path, one, other = path

    def edit(content):
        for each in path:
            content = content[each]
        content[one], content[other] = content[other], content[one]

    return edit


RECORD, NOISE, BATCHES = ("record",), ("record", "noise"), ("record", "batches")
KEPT = (*NOISE, "kept", 3)
MOVES = ("moves",)

#: Edits of what is saved, whose digest is made again; and what the one line says.
EDITS = {
    "no record": (drop("record"), "must have 'record'"),
    "no shapes": (drop("shapes"), "shapes"),
    "no moves": (drop("moves"), "must have 'moves'"),
    "something more": (put("more", lambda *_: 1), None),
    "record is a list": (put("record", []), "the record must be a dictionary"),
    "record is None": (put("record", None), "the record must be a dictionary"),
    "no told": (drop(*RECORD, "told"), "must have 'told'"),
    "names": (put(*RECORD, "names", ["a", "c"]), "is of the tensors a, c, and this one of a, b"),
    "names twice": (put(*RECORD, "names", ["a", "a"]), "names that all differ"),
    "names are numbers": (put(*RECORD, "names", [1, 2]), "each of names must be a word"),
    "names are a word": (put(*RECORD, "names", "ab"), "names must be a list"),
    "noise and batches": (swap(*RECORD, "noise", "batches"), "noise must have 'units'"),
    # told
    "a step less": (put(*RECORD, "told", lambda told: told[:-2]), "units must have 28 to 29"),
    "a step more": (put(*RECORD, "told", lambda told: told + told[:1]), "units must have 31 to 32"),
    "no step": (put(*RECORD, "told", []), "units must have 0 to 1"),
    "told is a number": (put(*RECORD, "told", 30), "told must be a list"),
    "told clip": (put(*RECORD, "told", 0, "clip", -1.0), "clip of step 1 of told"),
    "told clip is NaN": (put(*RECORD, "told", 4, "clip", nan), "clip of step 5 of told"),
    "told sigma": (put(*RECORD, "told", 0, "sigma", -2.0), "sigma of step 1"),
    "told sigma is infinite": (put(*RECORD, "told", 0, "sigma", inf), "sigma of step 1"),
    "told sigma is a word": (put(*RECORD, "told", 0, "sigma", "2"), "sigma of step 1"),
    "told sigma is true": (put(*RECORD, "told", 0, "sigma", True), "sigma of step 1"),
    "told rate": (put(*RECORD, "told", 0, "rate", 1.5), r"rate of step 1 of told .*\[0, 1\]"),
    "told rate is huge": (put(*RECORD, "told", 0, "rate", 10**400), "rate of step 1"),
    "told without rate": (drop(*RECORD, "told", 0, "rate"), "must have 'rate'"),
    "told keys": (put(*RECORD, "told", 0, "sigmas", lambda *_: 1), None),
    # noise
    "noise sizes": (put(*NOISE, "sizes", [200, 8]), "heads in the noise|sample in the noise"),
    "one size less": (put(*NOISE, "sizes", [200]), "squares in the noise of step 1"),
    "no sizes": (put(*NOISE, "sizes", []), "the noise must have sizes, got none"),
    "a size is negative": (put(*NOISE, "sizes", 0, -200), r"sizes must be in \[0"),
    "a size is huge": (put(*NOISE, "sizes", 0, 2**60), r"sizes must be in \[0"),
    "a size is real": (put(*NOISE, "sizes", 0, 200.0), "sizes must be a whole number"),
    "units are cut": (put(*NOISE, "units", lambda units: units[:-5]), "units must have 30 to 31"),
    "a unit is zero": (put(*NOISE, "units", 0, 0.0), "units must be more than 0"),
    "a unit is negative": (put(*NOISE, "units", 0, -1.0), "units must be a number in"),
    "a unit is None": (put(*NOISE, "units", 0, None), "units must be a number"),
    "kept is cut": (
        put(*NOISE, "kept", lambda kept: kept[:-1]),
        "kept must have 30 entries, got 29",
    ),
    "kept is longer": (put(*NOISE, "kept", lambda kept: kept * 2), "kept must have 30 entries"),
    "a step without heads": (
        put(*KEPT, lambda step: step[:-1]),
        "step 4 must have 7 entries, got 6",
    ),
    "squares are cut": (put(*KEPT, 0, lambda array: array[:1]), r"squares .* of shape \(2,\), got"),
    "squares are a matrix": (put(*KEPT, 0, lambda array: array[None]), r"got \(1, 2\)"),
    "squares are negative": (put(*KEPT, 0, lambda array: -array), "squares .* at least 0"),
    "squares are whole": (
        put(*KEPT, 0, lambda array: array.astype(int)),
        "of real numbers, got dtype",
    ),
    "squares are complex": (put(*KEPT, 0, lambda array: array + 0j), "of numbers, got dtype"),
    "squares are objects": (
        put(*KEPT, 0, lambda array: array.astype(object)),
        "of numbers, got dtype",
    ),
    "squares are words": (put(*KEPT, 0, lambda array: array.astype(str)), "of numbers, got dtype"),
    "squares are a list": (put(*KEPT, 0, lambda array: array.tolist()), "squares .* an array"),
    "largest is negative": (put(*KEPT, 3, lambda array: -array), "largest .* at least 0"),
    "sample is cut": (put(*KEPT, 4, lambda array: array[:-1]), r"sample .* of shape \(207,\)"),
    "sample is empty": (put(*KEPT, 4, lambda array: array[:0]), r"sample .* got \(0,\)"),
    "rounding is scalar": (put(*KEPT, 5, lambda array: array[0]), "rounding"),
    "heads are longer": (put(*KEPT, 6, lambda array: np.repeat(array, 9)), "heads"),
    "sample and heads": (swap(*KEPT, 4, 6), "sample .* of shape"),
    # batches
    "batch sizes are cut": (
        put(*BATCHES, "sizes", lambda sizes: sizes[1:]),
        "must have 30 entries",
    ),
    "a batch is negative": (put(*BATCHES, "sizes", 0, -3), "batches' sizes must be in"),
    "a batch is real": (put(*BATCHES, "sizes", 0, 3.5), "batches' sizes must be a whole number"),
    "a batch is larger": (
        put(*BATCHES, "sizes", 0, lambda size: size + 1),
        "fingerprints .* of shape",
    ),
    "a batch is unknown": (put(*BATCHES, "sizes", 0, None), "of a known size"),
    "prints are cut": (put(*BATCHES, "fingerprints", 2, lambda array: array[1:]), "of shape"),
    "prints are real": (
        put(*BATCHES, "fingerprints", 2, lambda array: array.astype(float)),
        "an array of whole numbers",
    ),
    "prints are short": (
        put(*BATCHES, "fingerprints", 2, lambda array: array.astype(np.int32)),
        "of 64 bits",
    ),
    "prints are gone": (put(*BATCHES, "fingerprints", []), "must have 30 entries, got 0"),
    # around, looks, events
    "around is cut": (put(*RECORD, "around", lambda around: around[:3]), "around must have 30"),
    "around has a word": (put(*RECORD, "around", 0, "clip", "1"), "the clip in step 1 of around"),
    "around has more": (put(*RECORD, "around", 0, {"new": 1.0}), "one that is known, got 'new'"),
    "a look after the end": (put(*RECORD, "looks", 0, "step", 99), "step of look 1"),
    "a look before it": (put(*RECORD, "looks", 0, "step", 0), "step of look 1"),
    "a look's error": (put(*RECORD, "looks", 0, "error", -1e-9), "error of look 1"),
    "a look's tolerance": (put(*RECORD, "looks", 0, "tolerance", inf), "tolerance of look 1"),
    "a look without causes": (put(*RECORD, "looks", 0, "causes", None), "causes of look 1"),
    "a look's cause": (put(*RECORD, "looks", 0, "causes", {1: 1.0}), "causes of look 1"),
    "events are a word": (put(*RECORD, "events", "none"), "events must be a list"),
    "an event is unknown": (
        put(*RECORD, "events", [{"kind": "x", "step": 1, "what": "", "number": None}]),
        "kind of event 1",
    ),
    "an event's kind is a list": (
        put(*RECORD, "events", [{"kind": [], "step": 1, "what": "", "number": None}]),
        "kind of event 1",
    ),
    "an event's step": (
        put(*RECORD, "events", [{"kind": "seeded", "step": 40, "what": "", "number": 1.0}]),
        "step of event 1",
    ),
    # beside the record
    "shapes": (put("shapes", "b", [8]), "shapes must be of tensors"),
    "shapes are swapped": (swap("shapes", "a", "b"), "shapes must be of tensors"),
    "a shape is negative": (put("shapes", "a", [-40, -5]), "the shape of a must be in"),
    "a shape is a number": (put("shapes", "a", 200), "the shape of a must be a list"),
    "a shape is deep": (put("shapes", "a", [1] * 99 + [200]), "the shape of a must have"),
    "moves are cut": (put(*MOVES, "rows", lambda rows: rows[1:]), "products of moves must have"),
    "moves of another size": (put(*MOVES, "rows", 0, np.zeros((3, 3))), r"of shape \(4, 4\)"),
    "moves with negative squares": (put(*MOVES, "rows", 0, -np.eye(4)), "at least 0"),
    "moves go back": (put(*MOVES, "steps", lambda steps: steps[::-1]), "steps that grow"),
    "moves after the end": (put(*MOVES, "steps", -1, 99), "each of the steps of moves"),
    "precision": (put(*MOVES, "precision", nan), "the precision of moves"),
    "felt": (put(*MOVES, "felt", 0, 1), "the comparison of a move with the noise"),
    "felt nothing": (put(*MOVES, "felt", 0, (3, {}, {})), "must have 'felt'"),
    "buffers of another size": (put("buffers", "rows", 0, np.zeros(1)), "the sums of buffers"),
    "buffers' names": (put("buffers", "names", []), "each of the sums of buffers"),
    "given too often": (put("given", "inputs", 31), r"inputs was given in must be in \[0, 30\]"),
    # canaries
    "no canaries": (put("canaries", None), "of 0 canaries; it must be of 20"),
    "other canaries": (put("canaries", "n", 21), "of 21 canaries; it must be of 20"),
    "canaries are a word": (put("canaries", "n", "20"), "number of canaries must be a whole"),
    "canaries' weights": (put("canaries", "weights", 208), "of 208 weights; it must be of 207"),
    "scores are cut": (put("canaries", "scores", lambda scores: scores[1:]), r"shape \(20,\)"),
    "scores are whole": (
        put("canaries", "scores", lambda scores: scores.astype(int)),
        "scores of canaries must be an array of real",
    ),
    "a score is NaN": (
        put("canaries", "scores", lambda scores: scores * nan),
        "scores of canaries",
    ),
    "seed is negative": (put("canaries", "seed", "-1"), "the seed of canaries"),
    "seed is a number": (put("canaries", "seed", 1), "the seed of canaries"),
    "seed is no number": (put("canaries", "seed", "١"), "the seed of canaries"),
    "seed is long": (put("canaries", "seed", "1" * 5000), "the seed of canaries"),
    "least score": (put("canaries", "least", nan), "least score of canaries"),
    "share": (put("canaries", "share", -1.0), "share of noise"),
    "fewer scored steps": (
        put("canaries", "steps", 29),
        r"steps of canaries must be in \[30, 31\]",
    ),
    "more scored steps": (put("canaries", "steps", 31), "rates of canaries must have 31 entries"),
    "rates are cut": (put("canaries", "rates", lambda rates: rates[1:]), "rates of canaries"),
    "rates above 1": (put("canaries", "rates", 0, 1.1), "rates of canaries"),
    "sigmas are NaN": (put("canaries", "sigmas", 0, nan), "sigmas of canaries"),
    "whole is a number": (put("canaries", "whole", 1), "whether canaries are whole"),
    "given is gone": (put("given", {}), "given must have 'inputs'"),
}


def redone(state, edit):
    """A state that was edited, and vouches for it."""
    content = copy.deepcopy(state["content"])
    edit(content)
    new = dict(state, content=content)
    try:
        new["digest"] = seal.digest_of(content)
    except ValueError:  # loading says the same
        new["digest"] = "0" * 64
    return new


def one_line(state, audit=None):
    """The line that refuses a state."""
    with pytest.raises(ValueError, match=r"\S") as caught:
        (audit or another()).load_state_dict(state)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    return line


@pytest.mark.parametrize("name", EDITS)
def test_edits_with_a_new_digest(name, state):
    edit, words = EDITS[name]
    if words is None:
        state = copy.deepcopy(state)
        place = (
            state["content"] if name == "something more" else state["content"]["record"]["told"][0]
        )
        place["more"] = 1
        state["digest"] = seal.digest_of(state["content"])
        assert "a key of" in one_line(state)
        return
    with pytest.raises(ValueError, match=words):
        another().load_state_dict(redone(state, edit))
    one_line(redone(state, edit))


def places(value, path=()):
    """Where something stands in a state."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list | tuple):
        for key in {0, 1, len(value) - 1} & set(range(len(value))):
            yield from places(value[key], (*path, key))


def replaced(value, path, new):
    """A copy in which something else stands at a place."""
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: replaced(value[path[0]], path[1:], new)}
    parts = list(value)
    parts[path[0]] = replaced(parts[path[0]], path[1:], new)
    return parts


ODD = [
    None,
    True,
    -1,
    10**400,
    0.5,
    nan,
    "x",
    b"x",
    [],
    {},
    [[]],
    np.zeros(3),
    np.array(1),
    object(),
]


def test_every_saved_field_is_checked(state):
    """What takes a dictionary with a word for a value is not checked, and named here."""
    content = copy.deepcopy(state["content"])
    content["record"]["events"] = [asdict(Event("seeded", 1, "", 3.0))]
    fields_ = [path for path in places(content) if isinstance(path[-1], str)]
    names = {path[-1] for path in fields_}
    for kind in (Told, Look, Event):
        assert {field.name for field in fields(kind)} <= names, kind
    unchecked = []
    for path in fields_:
        edited = dict(state, content=replaced(content, path, {"absurd": "absurd"}))
        edited["digest"] = seal.digest_of(edited["content"])
        try:
            another().load_state_dict(edited)
        except ValueError:
            continue
        unchecked.append(path)
    assert unchecked == []


def test_every_field_of_a_record_is_saved():
    """A field that is forgotten is named: it is not in the state, or another one afterwards."""
    given = {"examples", "claim"}  # to whoever makes the audit that goes on
    assert {field.name for field in fields(Record)} - given == set(Record().state())
    first = audited(6)
    second = another()
    second.load_state_dict(first.state_dict())
    before = first._record.finished()
    after = second._record.finished()
    assert different_fields(before, after) == []


def different_fields(one, other, name="record"):
    """The names of fields in which two records differ, with those of records in them."""
    if is_dataclass(one):
        return [
            path
            for field in fields(one)
            for path in different_fields(
                getattr(one, field.name), getattr(other, field.name), f"{name}.{field.name}"
            )
        ]
    if isinstance(one, list | tuple) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [
            path for place, pair in pairs for path in different_fields(*pair, f"{name}[{place}]")
        ]
    same = seal.digest_of(one) == seal.digest_of(other)
    return [] if same else [name]


def test_anything_anywhere_is_refused_or_seen():
    """With a new digest, too; or it gives a report, as any numbers do."""
    state = audited(6, canaries=0).state_dict()
    refused = 0
    accepted = 0
    for path in places(state["content"]):
        for new in ODD:
            content = replaced(state["content"], path, new)
            edited = dict(state, content=content)
            try:
                edited["digest"] = seal.digest_of(content)
            except ValueError:
                one_line(edited)
                continue
            if edited["digest"] == state["digest"]:
                continue
            audit = another(0)
            try:
                audit.load_state_dict(edited)
            except ValueError as error:
                refused += "\n" not in str(error)
                continue
            accepted += 1
            if accepted % 4 == 0:  # as a result takes long
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert str(audit.result())
    assert refused > 1000
    assert accepted < refused / 5  # numbers where any would do


def test_anything_anywhere_changes_the_digest():
    state = audited(2).state_dict()
    for path in places(state["content"]):
        for new in (7, "x", {"x": 1}, np.zeros(3)):
            content = replaced(state["content"], path, new)
            if seal.digest_of(content) != state["digest"]:  # where it is another one
                assert "digest must be" in one_line(dict(state, content=content))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (
            "format",
            "oraudit OpacusAudit",
            "format must be 'oraudit Audit', got 'oraudit OpacusAudit'",
        ),
        ("format", None, "format must be 'oraudit Audit', got None"),
        ("format", np.zeros(2), "format must be 'oraudit Audit'"),
        ("version", 2, "the saved audit has version 2; this oraudit reads version 1 only"),
        ("version", 0, "has version 0"),
        ("version", "1", "version must be a whole number"),
        ("version", True, "version must be a whole number"),
        ("digest", "0" * 64, "digest must be that of its content"),
        ("digest", None, "digest must be that of its content"),
        ("content", None, "content must be a dictionary"),
        ("content", {}, "digest must be that of its content"),
        ("content", [1], "content must be a dictionary"),
    ],
)
def test_what_vouches_is_checked(key, value, words, state):
    assert words in one_line(dict(state, **{key: value}))


def test_states_of_other_kinds(state):
    for key in state:
        assert f"must have '{key}'" in one_line({k: v for k, v in state.items() if k != key})
    assert "a key of the state must be" in one_line(dict(state, more=1))
    for other in (None, [], "x", state["content"], {}, 7):
        assert "the state must" in one_line(other)
    endless = []
    endless.append(endless)
    assert "nested without end" in one_line(dict(state, content={"record": endless}))
    numbers = {"record": {1.5: 2}}
    assert "each key must be a word or a number" in one_line(dict(state, content=numbers))


def test_refused_states_change_nothing(state):
    audit = audited(10)
    before = seal.digest_of(audit.state_dict())
    one_line(redone(state, EDITS["buffers' names"][0]), audit)
    assert seal.digest_of(audit.state_dict()) == before
    audit.load_state_dict(state)
    assert seal.digest_of(audit.state_dict()) == seal.digest_of(state)


def test_honest_states_are_loaded(state):
    for steps in (0, 1, 2, 30):
        first = audited(steps)
        second = another()
        second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
        assert seal.digest_of(second.state_dict()) == seal.digest_of(first.state_dict())
        assert str(second.result()) == str(first.result())


def test_nothing_reads_like_another_digest():
    values = [
        None,
        True,
        1,
        1.0,
        "1",
        [1],
        [[1]],
        [1, 1],
        {},
        [],
        {"a": 1},
        {1: "a"},
        "",
        "a",
        0,
        -0.0,
    ]
    values += [
        0.0,
        nan,
        inf,
        np.ones(1),
        np.array(1.0),
        np.ones((1, 1)),
    ]
    values += [np.ones(0), np.ones((0, 2)), {"a": 1, "b": 2}, {"a": 2, "b": 1}, ["a", "b"], ["ab"]]
    assert len({seal.digest_of(value) for value in values}) == len(values)
    same = [{"a": 1, "b": (2,)}, {"b": [2], "a": 1}]
    assert seal.digest_of(same[0]) == seal.digest_of(same[1])
    assert seal.digest_of(np.ones(4)[::2]) == seal.digest_of(np.ones(2))


# ---------------------------------------------------------------------------------------- PyTorch


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_saved_audits_with_opacus():
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")
    from witness.opacus_loop import Training

    first = Training().run(12)
    state = first.audit.state_dict()
    assert torch.is_tensor(state["content"]["record"]["noise"]["kept"][0][0])
    audit = Training(seed=5).audit

    def refused(edit, words):
        edited = copy.deepcopy(state)
        edit(edited["content"])
        assert "digest" in one_line(edited, audit)
        arrays = torch.utils._pytree.tree_map(
            lambda leaf: leaf.numpy() if torch.is_tensor(leaf) else leaf, edited["content"]
        )
        edited["digest"] = seal.digest_of(arrays)
        assert words in one_line(edited, audit)

    refused(put("account", "told", -1), "the told steps of the account")
    refused(put("account", "last", 1.5), "the last of the account")
    refused(put("account", {}), "the account must have 'told'")
    refused(drop("account"), "must have 'account'")
    refused(put("moved", lambda moved: [moved[0][:2]]), "each of moved must have 3 entries")
    refused(put("moved", lambda moved: [(99, *moved[0][1:])]), "the step of moved")
    refused(put("moved", lambda moved: [(1, moved[0][1][:1], moved[0][2])]), "the norms before")
    refused(put("moved", lambda moved: [(1, moved[0][1], moved[0][2].long())]), "the norms after")
    refused(put("record", "names", 0, "other"), "is of the tensors other")
    refused(put("record", "noise", "kept", 0, 4, lambda each: each[:-1]), "the sample in the noise")
    refused(put("record", "noise", "sizes", 0, 10**15), "sizes must be in")
    for odd in (torch.ones(2, dtype=torch.bfloat16), torch.eye(2).to_sparse()):
        edited = copy.deepcopy(state)
        edited["content"]["account"]["told"] = odd
        assert "a tensor must be one of numbers that NumPy has" in one_line(edited, audit)
    assert "format must be" in one_line(audited(1).state_dict(), audit)
    audit.load_state_dict(state)
    again = audit.state_dict()
    assert again["digest"] == state["digest"]
