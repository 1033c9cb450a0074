"""Files of scores: read as they are meant, or refused with the place of what is wrong."""

import csv
import json
import re
import sys
from itertools import product
from math import nan

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_scores import naive_counts, run

from oralib.scores import file
from oralib.scores.file import read_scores
from oralib.scores.seen import Seen

HEAD = "score,included\n"
GOOD = "0.5,1\n-1.25,0\n3e-2,1\n0.25,0\n"


def test_files_in_many_spellings(tmp_path):
    path = tmp_path / "scores.csv"
    for content in (
        HEAD + GOOD,
        "\ufeff" + HEAD + GOOD,  # a byte-order mark
        (HEAD + GOOD).replace(",", ";"),
        (HEAD + GOOD).replace(",", "\t"),
        (HEAD + GOOD).replace("\n", "\r\n"),
        (HEAD + GOOD).replace("\n", "\r"),
        "\n" + HEAD + "\n" + GOOD + "\n\n",  # empty lines
        HEAD + GOOD + ",\n,\n",  # as Excel leaves them
        (HEAD + GOOD)[:-1],  # no end of the last line
        '"Score"," INCLUDED "\n"0.5","True"\n-1.25, FALSE\n3e-2,yes\n 0.25 ,No\n',
        '"score";"included";"text"\n0.5;1.0;"a;b"\n-1.25;0.0;c\n3e-2;1;x\n0.25;0;NA\n',
        "score,included\n0.5,1\n-1.25,-1\n0.03,1\n0.25,-1\n",
        "name,included,id,score\nx,1,a,0.5\nx,0,b,-1.25\nx,1,c,0.03\nx,0,d,0.25\n",
    ):
        path.write_bytes(content.encode())
        read = read_scores(path)
        assert read.values.tolist() == [0.5, -1.25, 0.03, 0.25]
        assert (read.coins > 0).tolist() == [True, False, True, False]


def test_malformed_files(tmp_path):
    """Each is refused in one line, which names the file, and the line and the column if it can."""
    path = tmp_path / "scores.csv"
    for content, message in (
        (b"", "is empty"),
        (b"score,included\n", "has no canaries"),
        (b"0.5,1\n0.2,0\n", "its first line must name the columns.*'0.5', '1'"),
        (b"score,member\n0.5,1\n", "must name the columns.*'score', 'member'"),
        (b"score,included,guess,truth\n1,1,1,1\n", "has scores and guesses"),
        (b"score,score,included\n1,1,1\n", "the column score occurs twice"),
        (b"score,included\n0.5,1\nabc,0\n", "line 3, column score: 'abc' is not a finite number"),
        (b"score;included\n0,5;1\n", "line 2, column score: '0,5' is not a .*not a comma"),
        (b"score,included\n1_0,1\n", "line 2, column score: '1_0' is not a finite number"),
        (b"score,included\n,1\n", "line 2, column score: '' is not a finite number"),
        (b"score,included\n\n1e999,1\n", "line 3, column score: '1e999' is not a finite number"),
        (b"score,included\n0.5,\n", "line 2, column included: '' is neither 1 nor 0"),
        (b"score,included\n0.5,2\n", "line 2, column included: '2' is neither 1 nor 0"),
        (b"score,included\n0.5,1\n0.1,0\n0.2,-1\n", "line 3, column included: '0' beside a -1"),
        (b"score,included\n0.5,1,\n", "Expected 2 fields in line 2, saw 3"),
        (b"score,included,id\n1,1,a\n2,0,a\n", "line 3, column id: 'a' occurs twice"),
        (b"guess,truth\n1,1\n-1,0\n", "line 3, column guess: '-1' while truth is 1 or 0"),
        (b"guess,truth\nmaybe,1\n", "line 2, column guess: 'maybe' is neither"),
        (b"truth,guess\n1,1\n-1,No\n", "line 3, column guess: 'No' while truth is 1 or -1"),
        (b'score,included\n"0.5,1\n0.2,0\n', "EOF inside string"),
        (b'score,included,x\n1,1,"a\n2,0,b\n3,0,"c\n', "quoted cell that spans several lines"),
        (b"score,included\n0.5,1\n\xff\xfe,0\n", "line 3: this is not UTF-8 text"),
        ("score,included\n0.5,1\n".encode("utf-16"), "not UTF-8 text"),
        (b"score,included\n0.5\x00,1\n", "line 2, column score"),
        (b"PK\x03\x04...", "is an Excel file; save it as CSV"),
        (b"\xd0\xcf\x11\xe0...", "is an Excel file; save it as CSV"),
        (b'\n[{"score": 1, "included": 1}]', "is a JSON file; save it as CSV"),
        (b"score,included\n0.5,1\n0.2,1\n", "included must have canaries of both kinds"),
        (b"score,included\n0.5,1\n0.5,0\n", "scores must differ"),
        (b"guess,truth\n,1\n,0\n", "guessed must hold a guess"),
    ):
        path.write_bytes(content)
        status, out, err = run(path, "--delta", 1e-5)
        assert (status, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert len(err) < 500
        assert re.search(message, err), err


def test_parquet_files(tmp_path, monkeypatch):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"PAR1...")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        status, _, err = run(path, "--delta", 1e-5)
    assert status == 2
    assert err.endswith("is a Parquet file, which needs a package: pip install pyarrow\n")
    # As pandas would read it: the package itself is not among ours.
    frame = pd.DataFrame({"score": [0.5, -1.5, 3], "included": [True, False, True], "id": range(3)})
    for column in (frame["included"], [1, 0, 1], [1.0, 0.0, 1.0], ["yes", "no", "yes"]):
        monkeypatch.setattr(pd, "read_parquet", lambda *_, c=column, **__: frame.assign(included=c))
        read = read_scores(path)
        assert read.values.tolist() == [0.5, -1.5, 3.0]
        assert read.coins.tolist() == [1.0, 0.0, 1.0]
    for odd, message in (
        (frame.assign(score=[0.5, None, 3]), "row 2, column score: '' is not a finite number"),
        (frame.assign(score=[True, False, True]), "row 1, column score: 'True' is not a finite"),
        (frame.assign(included=[True, None, False]), "row 2, column included: '' is neither"),
        (frame.assign(included=[1, 2, 3]), "row 2, column included: '2' is neither"),
        (frame.assign(id=[1, 1, 2]), "row 2, column id: '1' occurs twice"),
        (frame.assign(id=[1, 1, 2]).set_index("id"), "row 2, column id: '1' occurs twice"),
    ):
        monkeypatch.setattr(pd, "read_parquet", lambda *_, odd=odd, **__: odd)
        with pytest.raises(ValueError, match=message):
            read_scores(path)


ONCE = settings(
    deadline=None,
    max_examples=100,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

finite = st.floats(allow_nan=False, allow_infinity=False)
spelled = {True: ["1", "1.0", "true", "TRUE", "Yes", " 1"], False: ["0", "0.0", "false", "no "]}


@ONCE
@given(
    rows=st.lists(
        st.tuples(finite, st.booleans()), min_size=2, max_size=30, unique_by=lambda r: r[0]
    ),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    form=st.sampled_from([repr, "{:+.17e}".format, '"{!r}"'.format]),
    data=st.data(),
)
def test_good_files_give_the_right_counts(rows, delimiter, end, mark, form, data, tmp_path):
    lines = [delimiter.join(("included", "score"))]
    for score, coin in rows:
        lines.append(delimiter.join((data.draw(st.sampled_from(spelled[coin])), form(score))))
    path = tmp_path / "good.csv"
    path.write_bytes((mark + end.join(lines) + end).encode())
    k = data.draw(st.integers(1, len(rows)))
    status, out, err = run(path, "--delta", 0.1, "--guesses", k, "--json")
    coins = [coin for _, coin in rows]
    if all(coins) or not any(coins):
        assert status == 2
        assert "both kinds" in err
        return
    said = json.loads(out)
    assert (status == 2) == bool(said["problem"]) == err.startswith("error: ")
    expected = naive_counts(*zip(*rows, strict=True), k, "both")
    assert (said["v"], said["r"], said["n"]) == (expected, k, len(rows))


@ONCE
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=100).map(str.encode),
        st.lists(st.sampled_from([*'01-,;.e \n\r\t"', "score", "included", "nan"])).map(
            lambda parts: (HEAD + "".join(parts)).encode()
        ),
    )
)
def test_any_file_gets_a_result_or_one_line(content, tmp_path):
    path = tmp_path / "any.csv"
    path.write_bytes(content)
    status, out, err = run(path, "--delta", 1e-5, "--claim", 3)
    assert status in (0, 1, 2, 3)
    assert (status == 2) == ("error: " in err)
    assert err.count("\n") <= 2
    assert "Traceback" not in out + err


ODD = ("1", "0", "-1", "00", "-0", "1.", ".", ".5", " .5", "0.5 ", "1e", "1e0", "--1", "1 2", "")
ODD += ("1_0", "0x10", "0,5", "nan", "inf", "Infinity", "1e309", "1e-400", "4.9e-324", "true", "NO")
ODD += (
    "9007199254740993",
    "0.1000000000000000055511151231257827",
    "NA",
    "１",
    "é",
    '"1"',
    '"',
    "a",
)


def test_a_file_is_read_fast_as_it_is_read_with_care(tmp_path, monkeypatch):
    """Whatever a cell holds, in lines that may be too short, too long or empty."""
    path = tmp_path / "odd.csv"

    def outcome(plain):
        monkeypatch.setattr(file, "_plain", plain)
        try:
            read = read_scores(path)
        except ValueError as error:
            return str(error)
        return str((read.kind, read.values.tolist(), read.coins.tolist()))

    def refuse(*_):
        raise ValueError

    plain = file._plain
    for head, good in (
        ("score,included,id", ["0.5", "1", "a"]),
        ("truth,guess,x", ["1", "0", "b"]),
    ):
        for place, cell in product(range(3), ODD):
            line = ",".join([*good[:place], cell, *good[place + 1 :]])
            for rest in "", "\n0.25,0,b":
                path.write_text(f"{head}\n{line}{rest}")
                assert outcome(plain) == outcome(refuse)
        for odd_line in "", " ", ",,", "0.25,0", "0.25,0,b,":
            path.write_text("\n".join([head, odd_line, ",".join(good), odd_line, ",".join(good)]))
            assert outcome(plain) == outcome(refuse)


def test_ordinary_files_are_read_fast(tmp_path, monkeypatch):
    """Comments, ids, notes, ends of lines and words for coins need no second look."""
    monkeypatch.setattr(file, "_careful", None)
    path = tmp_path / "scores.csv"
    comment = Seen("sum", 1.5, 0.1, 3, 3).comment()
    for content in (
        HEAD + GOOD,
        "\ufeff" + (HEAD + GOOD).replace("\n", "\r\n"),
        comment + HEAD + GOOD,
        "id;score;included;note\n1;0.5;True;a\n2;-1.25;False;b\n3;3e-2;TRUE;é\n4;.25;no;d\n",
    ):
        path.write_bytes(content.encode())
        assert read_scores(path).values.tolist() == [0.5, -1.25, 0.03, 0.25]
    path.write_text("guess,truth\n1,1\n,0\n0,1\n")
    assert read_scores(path).values.tolist() == pytest.approx([1, nan, 0], nan_ok=True)


@ONCE
@given(place=st.integers(0, 60), character=st.sampled_from("0159.,;eE-+x_ \n"))
def test_a_changed_character_is_an_error_or_understood(place, character, tmp_path):
    """If the file can still be read, the module csv reads the same from it."""
    good = "score,included\n0.5,1\n-1.25,0\n3e-2,1\n0.25,0\n7,1\n-8,0\n"
    path = tmp_path / "changed.csv"
    path.write_text(good[:place] + character + good[place + 1 :])
    try:
        read = read_scores(path)
    except ValueError:
        return
    _, *rows = (row for row in csv.reader(path.read_text().splitlines()) if any(row))
    assert [float(row[0]) for row in rows] == read.values.tolist()
    assert [float(row[1]) for row in rows] == read.coins.tolist()
