"""The report is a contract: every state in full, in every way of writing, and read back."""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import audit_states
import numpy as np
import pytest
from audit_states import BOUND, HONEST, STATES, TABLE, TEST, TRAINING, Counted, block

from oraudit.findings import CANNOT_TELL, FAILED, PASSED, Finding
from oraudit.records import Event, Look, Seen, Told
from oraudit.records.batches import Batches
from oraudit.report import EXIT, NotAsTold, Result, alarms, judge, judge_counts, plain, saved, words
from oraudit.report.card import NOT_GIVEN, QUESTIONS
from oraudit.report.facts import MEANING, Facts, Number, Row

BLOCKS = {
    each[4 : each.index(": exit")]: each
    for each in TABLE.read_text(encoding="utf-8").strip().split("\n\n")
}


@pytest.fixture(autouse=True)
def expected(monkeypatch):
    """The law of other numbers of canaries, which takes long."""
    monkeypatch.setattr(audit_states.EXPECT, audit_states.expect)


class Results(Mapping):
    """The results of all states, each made once, when it is asked for."""

    def __init__(self):
        self._made = {}

    def __getitem__(self, name):
        if name not in self._made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(audit_states.EXPECT, STATES[name].expect)
                self._made[name] = STATES[name].make()
                assert self._made[name].text
        return self._made[name]

    def __iter__(self):
        return iter(STATES)

    def __len__(self):
        return len(STATES)


@pytest.fixture(scope="module")
def results():
    return Results()


# ------------------------------------------------------------------------------------ the table


def test_the_table_has_every_state():
    assert list(BLOCKS) == list(STATES)
    assert len(STATES) >= 40


@pytest.mark.parametrize("name", STATES)
def test_reports_are_those_of_the_table(results, name):
    assert block(name, results[name]) == BLOCKS[name]
    assert results[name].exit == STATES[name].exit == EXIT[results[name].status]


@pytest.mark.parametrize("name", STATES)
def test_a_report_never_overclaims(results, name):
    facts = results[name].facts
    everything = " ".join([facts.text, *(answer for _, answer in facts.answers)])
    assert "p-value" not in everything
    assert "estimate" in facts.answers[2][0]
    assert facts.estimate.startswith("No")
    if "could have refuted" in everything:
        assert re.search(r"half the noise in .*\d%", everything)
    for each in facts.rows:
        if each.name == "proved":
            assert each.tone != "good"
            assert "a lower bound, not an estimate" in each.words
    if results[name].counts is None:
        assert "coin" not in facts.looked
        assert "canaries" not in facts.findable
    if "clipping" not in {each.name for each in facts.rows}:
        assert "single record" not in facts.looked
    if facts.status == PASSED and results[name].counts is not None and "scores" in name:
        assert results[name].counts.test.power[0.5] >= 0.5


def test_statements_about_counts_say_their_confidence(results):
    for result in results.values():
        if result.counts is not None:
            said = plain.as_plain(result.facts)
            confidence = "99.9%" if result.counts.beta == 0.001 else "95%"
            proved = next(row["words"] for row in said["rows"] if row["name"] == "proved")
            assert confidence in proved


# ---------------------------------------------------------------------------- every way of writing


class Page(HTMLParser):
    """What a reader of a page sees, by the element that it stands in."""

    def __init__(self, text):
        super().__init__()
        self.stack = []
        self.verdict = ""
        self.headline = ""
        self.meaning = ""
        self.tone = ""
        self.answers = []
        self.rows = []
        self.card = []
        self.tables = {"rows": self.rows, "card": self.card}
        self.feed(text)
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        given = dict(attrs).get("class", "")
        if tag != "meta":
            self.stack.append((tag, given))
        if tag == "header":
            self.tone = given
        elif tag == "dt":
            self.answers.append(["", ""])
        elif tag == "tr":
            self.tables[self.within("table")].append([given, "", ""])

    def handle_endtag(self, tag):
        assert self.stack.pop()[0] == tag

    def within(self, tag):
        return next(given for name, given in reversed(self.stack) if name == tag)

    def handle_data(self, data):
        if not self.stack:
            return
        tag, given = self.stack[-1]
        if given in ("verdict", "headline", "meaning"):
            setattr(self, given, getattr(self, given) + data)
        elif tag in ("dt", "dd"):
            self.answers[-1][tag == "dd"] += data
        elif tag in ("th", "td"):
            self.tables[self.within("table")][-1][1 + (tag == "td")] += data


def unescaped(words):
    return re.sub(r"\\(.)", r"\1", words)


def cells(line):
    """The two cells of a row of Markdown."""
    first, second = re.split(r"(?<!\\) \| ", line[2:-2])
    return unescaped(first), unescaped(second)


def assert_all_agree(result):
    """Text, page, Markdown, JSON and JUnit say the same."""
    facts = result.facts
    rows = [(each.name, each.words) for each in facts.rows]
    document = json.loads(result.json())
    assert document["status"] == result.status
    assert document["exit"] == result.exit
    assert document["headline"] == facts.headline
    assert document["tone"] == facts.tone
    assert [(row["name"], row["words"]) for row in document["rows"]] == rows
    assert document["text"] == result.text == str(result)
    lines = result.text.split("\n")
    assert lines[0].split() == [*facts.verdict.split(), *facts.headline.split()]
    assert [line.split(None, 1) for line in lines[1:]] == [list(row) for row in rows]

    page = Page(result.html())
    assert page.verdict == facts.verdict
    assert page.headline == facts.headline
    assert page.meaning == MEANING[result.status]
    assert page.tone == facts.tone
    assert [tuple(pair) for pair in page.answers] == list(facts.answers)
    assert page.rows == [[each.tone, each.name, each.words] for each in facts.rows]
    assert [(question, answer) for _, question, answer in page.card] == list(facts.card)
    assert result._repr_html_() in result.html()

    heading, headline, *sections = result.markdown().strip().split("\n\n")
    assert heading == f"## Privacy audit: {facts.verdict}"
    assert unescaped(headline) == facts.headline
    answers = [f"**{question}** {answer}" for question, answer in facts.answers]
    assert [unescaped(each) for each in sections[:4]] == answers
    tables = [cells(line) for part in sections[4:] for line in part.split("\n")[2:]]
    assert tables == rows + list(facts.card)

    suite = ElementTree.fromstring(result.junit().encode())
    assert suite.attrib["tests"] == "1"
    assert suite.attrib["failures"] == str(int(result.status == FAILED))
    assert suite.attrib["errors"] == str(int(result.status == CANNOT_TELL))
    said = [(each.attrib["name"], each.attrib["value"]) for each in suite.iter("property")]
    assert said == [("status", result.status), ("headline", facts.headline), *rows]
    assert [each.text for each in suite.iter("system-out")] == [result.text]
    trouble = [(each.tag, each.text) for each in suite.find("testcase") if "type" in each.attrib]
    kind = {PASSED: [], FAILED: [("failure", result.text)], CANNOT_TELL: [("error", result.text)]}
    assert trouble == kind[result.status]

    if result.counts is not None:
        assert document["counts"]["bound"]["epsilon"] == result.counts.bound.epsilon
        (proved,) = (words for name, words in rows if name == "proved")
        shown = float(re.match(r"ε ≥ ([\d.]+) at", proved)[1])
        assert 0 <= result.counts.bound.epsilon - shown < 0.001
    facts, findings, counts = saved.read_text(result.json())
    assert Result(facts.status, findings, facts, counts) == result


@pytest.mark.parametrize("name", STATES)
def test_all_ways_of_writing_agree(results, name):
    assert_all_agree(results[name])


WORDS = (
    "a <b> & c",
    "x | y",
    "*bold* _it_ `code` \\",
    "line\nend\r\n  and\ttab",
    "ε ≥ δ",
    "#1 [a](b)",
)
EVENTS = (
    "accountant-forgot",
    "buffer-changed",
    "earlier-steps",
    "late-parameter",
    "layer-rule",
    "plain-step",
    "replaced",
    "unprivate-parameter",
    "unwatched",
)


def random_seen(rng):
    """A training, of which little is known."""
    steps = rng.choice((0, 1, 5))
    told = (Told(1.0, rng.choice((1.0, 2.0)), rng.choice((0.1, 0.2))),) * steps
    events = [
        Event(rng.choice(EVENTS), rng.randrange(1, 6), rng.choice(WORDS), rng.choice((1.0, 3.0)))
        for _ in range(rng.choice((0, 0, 1, 3)))
    ]
    if rng.random() < 0.5:
        events.append(Event("accountant-told", None, number=steps + rng.choice((0, 0, 7))))
    looks = [
        Look(step, rng.choice((1e-6, 1e-6, 0.3, np.nan)), 1e-4, 1.0, {"a | b": 2.0})
        for step in range(1, steps)
    ]
    sizes = tuple(rng.randrange(20, 40) for _ in told)
    batches = Batches(sizes, (None,) * steps)
    claim = rng.choice((None, (0.1, 1e-5), (9.0, 1e-5)))
    examples = rng.choice((None, 300))
    return Seen([], told, None, looks, batches, events, examples, claim)


def random_counts(rng):
    """Counts of which every part is of its own."""
    canaries = rng.choice((1, 30, 1000))
    guesses = rng.randrange(1, canaries + 1)
    right = rng.randrange(guesses + 1)
    need = rng.choice((None, rng.randrange(1, guesses + 1)))
    epsilon = rng.choice((0.0, rng.random() * 5))
    bound = replace(BOUND, epsilon=epsilon, largest=epsilon + 1, right=right, guesses=guesses)
    test = replace(
        TEST,
        right=right,
        guesses=guesses,
        need=need,
        refuted=need is not None and right >= need,
        power=rng.choice(({}, {0.5: rng.random()}, {0.7: 0.2, 0.5: rng.random()})),
    )
    stated = rng.choice((None, TRAINING))
    claim = rng.choice((None, (1.0, 1e-5), (3.0, 1e-5)))
    return Counted(
        canaries,
        rng.choice((0.05, 0.001)),
        rng.choice(("sum", "scores")),
        bound,
        test=test if stated or claim else None,
        training=stated,
        claim=claim,
        side=rng.choice(("both", "in")),
        coins=rng.choice(("independent", "balanced")),
        adjacency=rng.choice(("add-remove", "replace")),
        share_of_norm=rng.choice((None, 0.1)),
        sees=rng.choice(("", *WORDS)),
    )


def test_random_audits_never_disagree(monkeypatch):
    monkeypatch.setattr(audit_states.EXPECT, audit_states.expect_nothing)
    rng = random.Random(54)
    statuses = set()
    for _ in range(1000):
        counts = rng.choice((None, random_counts(rng)))
        unlooked = rng.sample(WORDS, rng.randrange(3))
        if counts is None or rng.random() < 0.5:
            allow = rng.choice(((), ("buffers-outside",)))
            result = judge(random_seen(rng), counts=counts, unlooked=unlooked, allow=allow)
        else:
            result = judge_counts(counts, unlooked=unlooked)
        if rng.random() < 0.1:
            result = result.interrupted(rng.choice(WORDS))
        result = result.with_card({"model": rng.choice(WORDS), "data": rng.choice(WORDS)})
        statuses.add(result.status)
        assert_all_agree(result)
    assert statuses == {PASSED, FAILED, CANNOT_TELL}


# -------------------------------------------------------------------------------- saved and loaded


@pytest.fixture(scope="module")
def result(results):
    return results["canaries refute, and the bound"]


def test_a_saved_report_comes_back(tmp_path, results):
    for number, result in enumerate(results.values()):
        folder = tmp_path / "reports" / str(number)
        result.save(folder, card={"who": "me"})
        assert {each.name for each in folder.iterdir()} == {
            "report.txt",
            "report.html",
            "report.md",
            "report.json",
            "junit.xml",
        }
        assert (folder / "report.txt").read_text(encoding="utf-8") == f"{result.text}\n"
        loaded = Result.load(folder)
        assert loaded == result == Result.load(folder / "report.json")
        assert hash(loaded) == hash(result)
        assert loaded.findings == result.findings or "nan" in repr(result.findings)
        assert loaded.counts == result.counts
        assert loaded.facts.numbers == result.facts.numbers or "nan" in repr(result.facts)
        assert dict(loaded.facts.card)["Who trained it"] == "me"
        with pytest.raises(FileExistsError):
            result.save(folder)


def test_results_differ_by_what_they_say(results):
    texts = {result.text for result in results.values()}
    different = [one for one in results.values() if sum(one == two for two in results.values()) > 1]
    assert len(different) <= len(results) - len(texts) + 8
    one = results["honest"]
    assert one != results["safer only"]
    assert one != replace(one, counts=audit_states.SUM)
    assert one != one.text


def test_check_returns_only_if_passed(results):
    for result in results.values():
        if result.status == PASSED:
            result.check()
        else:
            with pytest.raises(AssertionError) as raised:
                result.check()
            assert str(raised.value) == result.text


def edited(result, change):
    """A file in which something was changed by somebody who knows how to make the digest."""
    document = json.loads(result.json())
    change(document)
    document["digest"] = saved.digest(document)
    return json.dumps(document)


def put(*path, value):
    """The change of one value."""

    def change(document):
        place = document
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value

    return change


EDITS = {
    "format": put("format", value="oraudit repor"),
    "version": put("version", value=2),
    "version in words": put("version", value="1"),
    "version that is true": put("version", value=True),
    "status": put("status", value="passed"),
    "status that is none": put("status", value="fine"),
    "exit": put("exit", value=0),
    "tone": put("tone", value="good"),
    "headline": put("headline", value="all is well"),
    "headline of a number": put("headline", value=3),
    "text": put("text", value="PASSED"),
    "row": put("rows", 0, "words", value="ε = 0.01"),
    "tone of a row": put("rows", 0, "tone", value="splendid"),
    "row without words": lambda document: document["rows"][0].pop("words"),
    "row with more": put("rows", 0, "more", value="words"),
    "rows that are words": put("rows", value="none"),
    "rows that are a number": put("rows", value=3),
    "too many rows": put("rows", value=[{"name": "a", "words": "b"}] * 10_001),
    "card of triples": put("card", 0, value=["a", "b", "c"]),
    "card of one": put("card", 0, value=["a"]),
    "a long text": put("looked", value="x" * 100_001),
    "no findings": put("findings", value=[]),
    "finding that is null": put("findings", 0, value=None),
    "finding of a side": put("findings", 0, "side", value="sideways"),
    "finding's step": put("findings", 0, "step", value=1.5),
    "finding's step, too large": put("findings", 0, "step", value=2**63),
    "finding's number": put("findings", 0, "number", value="many"),
    "finding's truth": put("findings", 0, "undecided", value=0),
    "a number that is true": put("numbers", 0, "value", value=True),
    "a number that is huge": put("numbers", 0, "value", value=10**20),
    "no canaries": put("counts", "canaries", value=0),
    "canaries in parts": put("counts", "canaries", value=1000.5),
    "β of 0": put("counts", "beta", value=0),
    "β of 1": put("counts", "beta", value=1),
    "origin": put("counts", "origin", value="paper"),
    "negative bound": put("counts", "bound", "epsilon", value=-0.1),
    "infinite bound": put("counts", "bound", "epsilon", value="inf"),
    "bound above the largest": put("counts", "bound", "epsilon", value=99),
    "bound that is no number": put("counts", "bound", "epsilon", value="nan"),
    "negative δ": put("counts", "bound", "delta", value=-1e-9),
    "δ of 1": put("counts", "bound", "delta", value=1),
    "negative right guesses": put("counts", "bound", "right", value=-1),
    "more right than guesses": put("counts", "bound", "right", value=128),
    "more guesses than canaries": put("counts", "bound", "guesses", value=1001),
    "bound of null": put("counts", "bound", value=None),
    "test not refuted": put("counts", "test", "refuted", value=False),
    "test needs more": put("counts", "test", "need", value=141),
    "test needs nothing": put("counts", "test", "need", value=0),
    "test needs too much": put("counts", "test", "need", value=159),
    "test's right guesses": put("counts", "test", "right", value=-1),
    "more right in the test": put("counts", "test", "right", value=159),
    "more guesses in the test": put("counts", "test", "guesses", value=1001),
    "power above 1": put("counts", "test", "power", 0, value=[0.5, 1.01]),
    "power below 0": put("counts", "test", "power", 0, value=[0.5, -0.01]),
    "power twice": put("counts", "test", "power", value=[[0.5, 0.1], [0.5, 0.2]]),
    "power of one": put("counts", "test", "power", value=[[0.5]]),
    "power in words": put("counts", "test", "power", value="half"),
    "power that is a word": put("counts", "test", "power", value=["ab"]),
    "too much power": put(
        "counts", "test", "power", value=[[number / 20_000, 0.5] for number in range(10_001)]
    ),
    "a training without noise": put("counts", "training", 0, "sigma", value=-1),
    "a training of no steps": put("counts", "training", 0, "steps", value=0),
    "claim of one": put("counts", "claim", value=[1.0]),
    "another part": put("remark", value=""),
    "a part that is gone": lambda document: document.pop("numbers"),
}


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_edited_files_are_refused(tmp_path, result, change):
    file = tmp_path / "report.json"
    file.write_text(edited(result, change), encoding="utf-8")
    with pytest.raises(ValueError, match="is not a report that oraudit wrote") as refused:
        Result.load(file)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_edits_that_change_nothing_are_read(tmp_path, result):
    file = tmp_path / "report.json"
    for change in (
        lambda document: None,
        put("numbers", 0, "error", value="nan"),
        put("numbers", 0, "error", value="-inf"),
        put("card", value=[["a", "b"]]),
        put("rows", 0, "tone", value="plain"),
        put("findings", 0, "step", value=2**63 - 1),
        put("looked", value="x" * 100_000),
        put("counts", "test", "power", value=[[0.5, 0.0], [0.7, 1.0]]),
        put("counts", "test", "need", value=140),
        put("counts", "bound", "delta", value=0),
        put("counts", "bound", "epsilon", value=0),
        put("counts", "bound", "epsilon", value=3.0),
        put("counts", "canaries", value=158),
        lambda document: document["counts"].pop("formula"),
    ):
        file.write_text(edited(result, change), encoding="utf-8")
        assert Result.load(file).status == FAILED


def test_a_status_needs_its_findings(tmp_path, results):
    file = tmp_path / "report.json"
    for name, status in (("honest", "failed"), ("less private", "passed"), ("no step", "failed")):
        facts = replace(results[name].facts, status=status)
        file.write_text(Result(status, results[name].findings, facts).json(), encoding="utf-8")
        with pytest.raises(ValueError, match="a finding that fails"):
            Result.load(file)


BROKEN = {
    "empty": b"",
    "not text": b"\xff\xfe\x00",
    "cut": b'{"format": "oraudit report", "ver',
    "a list": b"[1]",
    "a number": b"3",
    "nested": b"[" * 100_000,
    "a name twice": b'{"format": "oraudit report", "format": "oraudit report"}',
    "no number": b'{"format": NaN}',
    "long digits": b'{"format": ' + b"9" * 5000 + b"}",
    "digits": b'{"version": ' + b"9" * 21 + b"}",
    "huge": b" " * 8_000_001,
    "no version": b'{"format": "oraudit report"}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_files_are_refused(tmp_path, content):
    file = tmp_path / "report.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="is not a report that oraudit wrote") as refused:
        Result.load(file)
    assert "\n" not in str(refused.value)


def test_limits_are_told(tmp_path):
    file = tmp_path / "report.json"
    for content, reason in ((BROKEN["huge"], "8,000,000 bytes"), (BROKEN["digits"], "too long")):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=reason):
            Result.load(file)
    file.write_bytes(b'{"version": ' + b"9" * 20 + b"}")
    with pytest.raises(ValueError, match="format"):
        Result.load(file)
    file.write_bytes(b" " * 8_000_000)
    with pytest.raises(ValueError, match="Expecting value"):
        Result.load(file)


def test_any_changed_letter_is_seen(tmp_path, result):
    file = tmp_path / "report.json"
    text = result.json()
    rng = random.Random(1)
    for place in rng.sample(range(len(text)), 200):
        letter = rng.choice("0123456789abcxyz")
        changed = text[:place] + letter + text[place + 1 :]
        file.write_text(changed, encoding="utf-8")
        if json_or_none(changed) == json.loads(text):
            assert Result.load(file) == result
        else:
            with pytest.raises(ValueError, match="is not a report that oraudit wrote"):
                Result.load(file)


def json_or_none(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "report.json")


def test_plain_values_come_back():
    number = Number("a", float("-inf"), error=float("nan"))
    back = plain.from_plain(Number, plain.as_plain(number), "it")
    assert back.value == number.value
    assert np.isnan(back.error)
    assert plain.as_plain(np.float64(2.0)) == 2.0
    assert plain.as_plain(True) is True
    assert plain.from_plain(float, 3, "it") == 3.0
    row = Row("a", "b")
    assert plain.from_plain(Row, {"name": "a", "words": "b"}, "it") == row
    longest = ["x"] * plain.MOST_ITEMS
    assert plain.from_plain(tuple[str, ...], longest, "it") == tuple(longest)


# -------------------------------------------------------------------------------------- the card


def test_a_card_asks_what_is_not_known(results):
    card = dict(results["honest"].facts.card)
    assert set(card) == set(QUESTIONS.values())
    assert sum(answer == NOT_GIVEN for answer in card.values()) == 8
    assert "numpy" in card["Libraries"]
    assert "oralib" in card["Libraries"]


def test_a_card_cannot_contradict_the_audit(results):
    result = results["honest"]
    assert result.with_card({"examples": "400"}).facts.card == result.facts.card
    with pytest.raises(ValueError, match="the audit knows"):
        result.with_card({"examples": 500})
    for key in ("", " ", 3):
        with pytest.raises(ValueError, match="it must be a question"):
            result.with_card({key: "yes"})


def test_a_missing_answer_looks_so(results):
    page = results["a card"].html()
    assert '<td class="missing">not given</td>' in page
    assert "<td>a small net</td>" in page
    assert "<td>True</td>" in page


# ------------------------------------------------------------------------------- numbers in words


def test_numbers_at_the_limits_of_words():
    assert words.epsilon_words(100.0) == "ε = 100"
    assert words.epsilon_words(100.1) == "ε is beyond 100"
    shares = (0.0, 0.00099, 0.001, 0.0099, 0.01, 0.99, 0.9901, 0.999, 0.9991, 1.0)
    said = ["0%", "below 0.1%", "0.1%", "1.0%", "1%", "99%", "99.0%", "99.9%", "over 99.9%", "100%"]
    assert [words.percent(share) for share in shares] == said
    assert words.range_of([2.0, 1.0, 3.0]) == "1 to 3"
    assert words.range_of([2.0, 2.00001]) == "2"
    lists = ["a"], ["a", "b"], ["a", "b", "c"]
    assert [words.joined(each) for each in lists] == ["a", "a and b", "a, b, and c"]


# ------------------------------------------------------------------------------------------ alarms


def test_only_exact_facts_alarm():
    told = (Told(1.0, 1.0),) * 3
    assert alarms(Event("plain-step", 2), told) == [
        "the optimizer steps without the private step, 1 times: less private"
    ]
    assert not alarms(Event("replaced", 2, "step"), told)
    assert not alarms(Event("accountant-told", 2, number=9), told)
    assert issubclass(NotAsTold, UserWarning)


def test_facts_need_no_report_again(results):
    result = results["honest"]
    assert result.facts is result.facts
    assert {each.name for each in fields(Facts)} > {"looked", "findable", "unlooked", "estimate"}
    finding = Finding("a", "b", "safer")
    assert Result(PASSED, (finding,), result.facts).facts is result.facts
    assert judge(HONEST) == result
