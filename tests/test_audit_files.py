"""Files of scores that nobody vouches for: understood, or refused in one line with the place."""

import csv
import gzip
import os
import pickle
import sys
from functools import partial
from hashlib import sha256
from io import BytesIO, StringIO
from itertools import product
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oraudit.canaries.columns import (
    Unusable,
    are_listed_twice,
    column,
    guesses_and_coins,
    scores_and_coins,
)
from oraudit.scores import limits
from oraudit.scores.file import UnusableFile, read_scores

#: No time is in it, so that the names of tests stay.
zipped = partial(gzip.compress, mtime=0)

HEAD = "score,included\n"
GOOD = "0.5,1\n-1.25,0\n3e-2,1\n0.25,0\n"
WHOLE = HEAD + GOOD


def refused(path):
    """The one line that says why a file is refused, without its name."""
    with pytest.raises(UnusableFile) as caught:
        read_scores(path)
    line = str(caught.value)
    assert line.startswith(str(path))
    assert "\n" not in line
    assert len(line) < 500
    return line.removeprefix(str(path)).lstrip(", ")


def savetxt(array, **options):
    text = StringIO()
    np.savetxt(text, array, delimiter=",", **options)
    return text.getvalue()


TABLE = np.array([[0.5, 1], [-1.25, 0], [0.03, 1], [0.25, 0]])


@pytest.mark.parametrize(
    "content",
    [
        WHOLE,
        "\ufeff" + WHOLE,  # a byte-order mark
        WHOLE.replace(",", ";"),
        WHOLE.replace(",", "\t"),
        WHOLE.replace("\n", "\r\n"),
        WHOLE.replace("\n", "\r"),
        "\n" + HEAD + "\n" + GOOD + "\n\n",  # empty lines
        HEAD + GOOD + ",\n,\n",  # as spreadsheets leave them
        WHOLE[:-1],  # no end of the last line
        '"Score"," INCLUDED "\n"0.5","True"\n-1.25, FALSE\n3e-2,yes\n 0.25 ,No\n',
        '"score";"included";"text"\n0.5;1.0;"a;b"\n-1.25;0.0;c\n3e-2;1;x\n0.25;0;NA\n',
        "score,included\n0.5,1\n-1.25,-1\n0.03,1\n0.25,-1\n",
        "name,included,id,score\nx,1,a,0.5\nx,0,b,-1.25\nx,1,c,0.03\nx,0,d,0.25\n",
        "# of my model\n# 2 of 2\n" + WHOLE,  # comments
        "#\n\n" + WHOLE,
        savetxt(TABLE, header="score,included"),
        savetxt(TABLE, header="score,included", comments=""),
        savetxt(TABLE, header="by me\nscore,included"),
    ],
)
def test_spellings_of_a_file(content, tmp_path):
    path = tmp_path / "scores.csv"
    for written in (content.encode(), zipped(content.encode())):
        path.write_bytes(written)
        read = read_scores(path)
        assert read.kind == "score"
        assert read.values.tolist() == [0.5, -1.25, 0.03, 0.25]
        assert read.coins.tolist() == [True, False, True, False]


def test_guesses_are_read_by_truth(tmp_path):
    path = tmp_path / "guesses.csv"
    for content in (
        "guess,truth\n1,1\n0,0\n,1\n0,1\n",
        "guess,truth\nyes,true\nno,false\n ,true\nFALSE,TRUE\n",
        "truth,guess\n1,1\n-1,-1\n1,0\n1,-1\n",
        "truth,guess\n1,1\n-1,-1\n1,\n1,-1\n",
    ):
        path.write_text(content)
        read = read_scores(path)
        assert read.kind == "guess"
        np.testing.assert_array_equal(read.values, [1, 0, np.nan, 0])
        assert read.coins.tolist() == [True, False, True, True]


def test_digest_is_of_the_file_itself(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(WHOLE)
    assert read_scores(path).digest == sha256(path.read_bytes()).hexdigest()
    path.write_bytes(zipped(WHOLE.encode(), mtime=0))
    assert read_scores(path).digest == sha256(path.read_bytes()).hexdigest()


NOT_FINITE = "is not a finite number like -1.5e-3, with a point and not a comma"
NO_COIN = "is neither 1 nor 0 (nor true, false, yes, no; nor 1 and -1)"
NAMES = "must name score and included, or guess and truth, got"
AS_CSV = "save it as CSV in UTF-8, with the names of its columns"
PICKLE = f"is a pickle, which is never read, as that runs what is in it; {AS_CSV}"


def npy(array):
    content = BytesIO()
    np.save(content, array, allow_pickle=array.dtype == object)
    return content.getvalue()


def npz():
    content = BytesIO()
    np.savez(content, score=TABLE)
    return content.getvalue()


#: What a file holds, and the line that refuses it, whole but for the file's name.
BROKEN = [
    (b"", "is empty: it must have a line with the names of columns, and one per canary"),
    (b"\n \n\t\n", "is empty: it must have a line with the names of columns, and one per canary"),
    (
        b"\xef\xbb\xbf",
        "is empty: it must have a line with the names of columns, and one per canary",
    ),
    (HEAD, "has no canaries: there is nothing below the names of the columns"),
    (HEAD + ",\n,\n", "has no canaries: there is nothing below the names of the columns"),
    ("# a\n# b\n", "has comments only: it must have a line with the names of columns"),
    # names of columns
    ("0.5,1\n0.2,0\n", f"has no names of columns: its first line {NAMES} '0.5', '1'"),
    ("score,member\n0,1\n", f"has no names of columns: its first line {NAMES} 'score', 'member'"),
    ("score included\n", f"has no names of columns: its first line {NAMES} 'score included'"),
    ("0.5\n", f"has no names of columns: its first line {NAMES} '0.5'"),
    ("<html>\n", f"has no names of columns: its first line {NAMES} '<html>'"),
    (
        "# by me\n1,0\n",
        f"has no names of columns: the line above the first canary {NAMES} '1', '0'",
    ),
    (
        savetxt(TABLE[:1]),
        "has no names of columns: its first line must name score and included, or guess and truth, "
        "got '5.000000000000000000e-01', '1.000000000000000000e+00'",
    ),
    (
        "a,b,c,d,e,f,g,h,i\n",
        "has no names of columns: its first line must name score and included, or guess and truth, "
        "got 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', ...",
    ),
    (
        "score,included,guess,truth\n1,1,1,1\n",
        "has scores and guesses; give a file with one of them",
    ),
    (
        "score,Score,included\n1,1,1\n",
        "names the column score twice; each column must have a name of its own",
    ),
    (
        "score,included,id,id\n1,1,1,1\n",
        "names the column id twice; each column must have a name of its own",
    ),
    ("score,included" + ",x" * 999 + "\n", "has 1,001 columns; at most 1,000 are read"),
    # cells
    (HEAD + "0.5,1\nabc,0\n", f"line 3, column score: 'abc' {NOT_FINITE}"),
    (HEAD + "1_0,1\n", f"line 2, column score: '1_0' {NOT_FINITE}"),
    (HEAD + ",1\n", f"line 2, column score: '' {NOT_FINITE}"),
    (HEAD + "nan,1\n", f"line 2, column score: 'nan' {NOT_FINITE}"),
    (HEAD + "\n-inf,1\n", f"line 3, column score: '-inf' {NOT_FINITE}"),
    (HEAD + "1e999,1\n", f"line 2, column score: '1e999' {NOT_FINITE}"),
    (HEAD + "0x10,1\n", f"line 2, column score: '0x10' {NOT_FINITE}"),
    (HEAD + "١,1\n", f"line 2, column score: '١' {NOT_FINITE}"),
    (HEAD + "true,1\n", f"line 2, column score: 'true' {NOT_FINITE}"),
    (HEAD + "0.5\x00,1\n", f"line 2, column score: '0.5\\x00' {NOT_FINITE}"),
    (HEAD + "1" * 2000 + ",1\n", f"line 2, column score: '{'1' * 76}... {NOT_FINITE}"),
    ("score;included\n0,5;1\n", f"line 2, column score: '0,5' {NOT_FINITE}"),
    (
        "# a\r\n# b\r\n\r\nscore,included\r\n1,1\r\nx,1\r\n",
        f"line 6, column score: 'x' {NOT_FINITE}",
    ),
    (HEAD + "0.5,\n", f"line 2, column included: '' {NO_COIN}"),
    (HEAD + "0.5,2\n", f"line 2, column included: '2' {NO_COIN}"),
    (HEAD + "0.5,nan\n", f"line 2, column included: 'nan' {NO_COIN}"),
    (
        HEAD + "0.5,1\n0.1,0\n0.2,-1\n",
        "line 3, column included: '0' and -1 are in one column; write 1 and 0 only",
    ),
    (
        "score,included,id\n1,1,a\n2,0, a \n",
        "line 3, column id: 'a' occurs twice, but a canary has one coin",
    ),
    (
        "score,included,id\n1,1," + "a" * 2000 + "\n",
        f"line 2, column id: '{'a' * 76}... has more than 1,000 characters",
    ),
    (
        "guess,truth\n1,1\n-1,0\n",
        "line 3, column guess: '-1' while truth is 1 or 0; write 0 for left out, and nothing "
        "for no guess",
    ),
    (
        "guess,truth\nmaybe,1\n",
        "line 2, column guess: 'maybe' is neither 1 nor 0; an empty cell is no guess",
    ),
    (
        "truth,guess\n1,1\n-1,No\n",
        "line 3, column guess: 'No' while truth is 1 or -1; write -1 for left out, and nothing for "
        "no guess",
    ),
    ("guess,truth\n,1\n,0\n", "has no guesses: all cells of the column guess are empty"),
    ("guess,truth\n0,1\n0,-1\n", "has no guesses: 0 and empty cells are none where truth is -1"),
    # lines
    (HEAD + "0.5,1,\n", "line 2: it must have 2 cells, one for each name of a column, got 3"),
    (HEAD + "0.5,1\n\n7\n", "line 4: it must have 2 cells, one for each name of a column, got 1"),
    (
        HEAD + "# half\n0.5,1\n",
        "line 2: it must have 2 cells, one for each name of a column, got 1",
    ),
    (HEAD + '"0.5,1\n0.2,0\n', "line 2: unexpected end of data"),
    (HEAD + '"0.5"1,1\n0.2,0\n', "line 2: ',' expected after '\"'"),
    (
        'score,included,x\n1,1,"a\n2,0,b\n3,0,"c\n',
        "line 2: ',' expected after '\"'",
    ),
    (
        'score,included,x\n1,1,"a\n2,0,b"\n3,0,c\n',
        "line 2: a quoted cell spans several lines; leave it out",
    ),
    (
        HEAD + "1,1\n" + " " * 100_001,
        "line 3: it has more than 100,000 characters, the most that are read",
    ),
    # other kinds
    (b"score,included\n0.5,1\n\xff\xfe,0\n", f"line 3: this is not UTF-8 text; {AS_CSV}"),
    (WHOLE.encode("utf-16"), f"is UTF-16 text; {AS_CSV}"),
    (WHOLE.encode("utf-16-be"), f"has no names of columns: its first line {NAMES} "),
    (b"\xfe\xff" + WHOLE.encode("utf-16-be"), f"is UTF-16 text; {AS_CSV}"),
    (b"PK\x03\x04...", f"is an Excel or zip file; {AS_CSV}"),
    (npz(), f"is an Excel or zip file; {AS_CSV}"),
    (b"\xd0\xcf\x11\xe0...", f"is an Excel file; {AS_CSV}"),
    (b'\n[{"score": 1, "included": 1}]', f"is a JSON file; {AS_CSV}"),
    (b'{"score": [1], "included": [1]}', f"is a JSON file; {AS_CSV}"),
    (npy(TABLE), f"is a NumPy file; {AS_CSV}"),
    (npy(np.array([print], dtype=object)), f"is a NumPy file; {AS_CSV}"),
    *[(pickle.dumps(print, protocol), PICKLE) for protocol in (2, 3, 4, 5)],
    (b"\x89HDF\r\n", f"is an HDF5 file; {AS_CSV}"),
    (b"BZh91AY", f"is a bzip2 file; {AS_CSV}"),
    (b"\xfd7zXZ\x00", f"is an xz file; {AS_CSV}"),
    (b"\x28\xb5\x2f\xfd", f"is a Zstandard file; {AS_CSV}"),
    # gzip
    (zipped(zipped(WHOLE.encode())), "is gzipped twice; unpack it once"),
    (zipped(WHOLE.encode())[:-9], "is a damaged gzip file: "),
    (zipped(WHOLE.encode())[:5], "is a damaged gzip file: "),
    (b"\x1f\x8b", "is a damaged gzip file: "),
    (zipped(WHOLE.encode()) + b"more", "is a damaged gzip file: "),
    (
        zipped(b""),
        "is empty: it must have a line with the names of columns, and one per canary",
    ),
    (zipped(b"PK\x03\x04"), f"is an Excel or zip file; {AS_CSV}"),
]


@pytest.mark.parametrize(("content", "line"), BROKEN)
def test_broken_files_have_one_line(content, line, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused(path)
    if line.endswith((": ", " ")):  # what follows are the words of others
        assert said.startswith(line)
    else:
        assert said == line


def test_what_is_no_file(tmp_path):
    assert refused(tmp_path) == "is a folder; give a file"
    assert refused(tmp_path / "none.csv") == "cannot be read: No such file or directory"
    with pytest.raises(UnusableFile, match="cannot be read: embedded null"):
        read_scores(tmp_path / "a\0b")
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    assert refused(fifo) == "is a pipe or a device; give an ordinary file"
    device = type(tmp_path)("/dev/zero")
    assert refused(device) == "is a pipe or a device; give an ordinary file"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "cannot be read: " in refused(loop)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_file_without_permission(tmp_path):
    path = tmp_path / "scores.csv"
    path.touch(mode=0)
    assert refused(path) == "cannot be read: Permission denied"


def test_limits_of_bytes_and_rows(tmp_path, monkeypatch):
    path = tmp_path / "scores.csv"
    path.write_text(WHOLE)
    monkeypatch.setattr(limits, "MOST_ROWS", 4)
    monkeypatch.setattr(limits, "MOST_BYTES", len(WHOLE))
    read_scores(path)
    monkeypatch.setattr(limits, "MOST_ROWS", 3)
    assert refused(path) == "has more than 3 canaries, the most that are read"
    monkeypatch.setattr(limits, "MOST_BYTES", len(WHOLE) - 1)
    assert refused(path) == f"has more than {len(WHOLE) - 1} bytes, the most that are read"
    path.write_bytes(zipped(b"0" * 1000))
    assert refused(path) == f"unpacks to more than {len(WHOLE) - 1} bytes, the most that are read"


def test_gzip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    """What is unpacked is counted while it is unpacked; a reader of all would never end."""
    path = tmp_path / "bomb.csv.gz"
    part = zipped(b"1,1\n" * 2**20)  # four million bytes in twelve thousand
    path.write_bytes(part * 500)
    monkeypatch.setattr(limits, "MOST_BYTES", 2**23)
    unpacked = []
    read = gzip.GzipFile.read

    def counting(self, size=-1):
        assert size == 2**23 + 1
        content = read(self, size)
        unpacked.append(len(content))
        return content

    monkeypatch.setattr(gzip.GzipFile, "read", counting)
    assert "unpacks to more than 8,388,608 bytes" in refused(path)
    assert unpacked == [2**23 + 1]


# ---------------------------------------------------------------------------------------- Parquet


class Parquet(ModuleType):
    """As much of pyarrow.parquet as is used, with the columns of the test."""

    columns: dict
    size = 100

    def ParquetFile(self, content):
        if self.columns is None:
            raise RuntimeError("Thrift:\n no magic")
        rows = len(next(iter(self.columns.values())))
        metadata = SimpleNamespace(
            num_rows=rows,
            num_row_groups=1,
            row_group=lambda i: SimpleNamespace(total_byte_size=self.size),
        )
        return SimpleNamespace(
            metadata=metadata,
            schema_arrow=SimpleNamespace(names=list(self.columns)),
            iter_batches=self.iter_batches,
        )

    def iter_batches(self, batch_size, columns):
        read = {name: self.columns[name] for name in columns}
        return iter([SimpleNamespace(to_pydict=lambda: read)])


FRAME = {"score": [0.5, -1.5, 3], "other": [[], {}, None], "included": [True, False, True]}


@pytest.fixture
def parquet(monkeypatch):
    module = Parquet("pyarrow.parquet")
    module.columns = FRAME
    package = ModuleType("pyarrow")
    package.parquet = module
    monkeypatch.setitem(sys.modules, "pyarrow", package)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", module)
    return module


def test_parquet_files(parquet, tmp_path):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"PAR1...")
    for included in ([True, False, True], [1, 0, 1], [1.0, 0.0, 1.0], ["yes", "no", "yes"]):
        parquet.columns = FRAME | {"included": included}
        read = read_scores(path)
        assert read.values.tolist() == [0.5, -1.5, 3.0]
        assert read.coins.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ({"score": [0.5, None, 3]}, f"row 2, column score: '' {NOT_FINITE}"),
        ({"score": [0.5, float("nan"), 3]}, f"row 2, column score: 'nan' {NOT_FINITE}"),
        ({"score": [True, False, True]}, f"row 1, column score: 'True' {NOT_FINITE}"),
        ({"included": [True, None, False]}, f"row 2, column included: '' {NO_COIN}"),
        ({"included": [1, 2, 3]}, f"row 2, column included: '2' {NO_COIN}"),
        ({"included": [1, [2], 3]}, f"row 2, column included: '[2]' {NO_COIN}"),
        ({"id": [1, 1, 2]}, "row 2, column id: '1' occurs twice, but a canary has one coin"),
        (
            {"Score": [1, 1, 2]},
            "names the column score twice; each column must have a name of its own",
        ),
    ],
)
def test_broken_parquet_files(columns, line, parquet, tmp_path):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"PAR1...")
    parquet.columns = FRAME | columns
    assert refused(path) == line


def test_unreadable_parquet_files(parquet, tmp_path, monkeypatch):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"PAR1...")
    parquet.columns = None
    assert refused(path) == "is not a readable Parquet file: Thrift: no magic"
    parquet.columns = FRAME
    parquet.size = 2**40
    assert refused(path) == "unpacks to more than 134,217,728 bytes, the most that are read"
    monkeypatch.setattr(limits, "MOST_ROWS", 2)
    assert refused(path) == "has more than 2 canaries, the most that are read"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused(path) == "is a Parquet file, which needs a package: pip install pyarrow"


# ------------------------------------------------------------------------------------------- fuzz

ONCE = settings(
    deadline=2000,  # milliseconds
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def outcome(path):
    """A file, or None where one line refuses it; any other error escapes."""
    lines = 1
    try:
        read = read_scores(path)
    except UnusableFile as error:
        read = None
        lines += str(error).count("\n")
    assert lines == 1
    assert read is None or len(read.values) == len(read.coins) > 0
    return read


PIECES = st.sampled_from(
    [
        "score",
        "included",
        "guess",
        "truth",
        "id",
        *',;\t\n\r"# ',
        "1",
        "0",
        "-1",
        ".5",
        "e",
        "nan",
        "inf",
        "yes",
        "no",
        "\0",
        "\ufeff",
        "\x85",
        "é",
        "\u2028",
    ]
)


@ONCE
@given(content=st.one_of(st.binary(max_size=300), st.lists(PIECES).map("".join).map(str.encode)))
@pytest.mark.parametrize("above", [b"", HEAD.encode(), b"guess,truth\n1,1\n", b"\x1f\x8b\x08\0"])
def test_any_bytes_are_read_or_refused(above, content, tmp_path):
    path = tmp_path / "any"
    path.write_bytes(above + content)
    outcome(path)


@ONCE
@given(
    place=st.integers(0, 60),
    character=st.sampled_from('0159.,;eE-+x_ \n"#\r'),
    packed=st.booleans(),
)
def test_a_changed_character_is_refused_or_understood(place, character, packed, tmp_path):
    """If the file can still be read, the module csv reads the same from it."""
    good = "score,included\n0.5,1\n-1.25,0\n3e-2,1\n0.25,0\n7,1\n-8,0\n"
    text = good[:place] + character + good[place + 1 :]
    path = tmp_path / "changed.csv"
    path.write_bytes(zipped(text.encode()) if packed else text.encode())
    read = outcome(path)
    if read is not None:
        lines = StringIO(text.lstrip("#"), newline="")
        _, *rows = (row for row in csv.reader(lines) if any(cell.strip() for cell in row))
        assert [float(row[0]) for row in rows] == read.values.tolist()
        assert [float(row[1]) == 1 for row in rows] == read.coins.tolist()


def test_changed_bytes_of_gzip(tmp_path):
    packed = bytearray(zipped(WHOLE.encode(), mtime=0))
    path = tmp_path / "changed.csv.gz"
    for place, bit in product(range(len(packed)), range(0, 8, 3)):
        changed = bytearray(packed)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        read = outcome(path)
        if read is not None:  # the name, the time or the system in its header
            assert read.values.tolist() == [0.5, -1.25, 0.03, 0.25]


# ---------------------------------------------------------------------------------------- columns


def test_columns_of_users():
    assert column("scores", [1, None, True]).tolist()[::2] == [1, 1]
    values, bits = scores_and_coins([0.5, 2, 3], [1, -1, 1])
    assert (values.tolist(), bits.tolist()) == ([0.5, 2, 3], [True, False, True])
    right, taken, bits = guesses_and_coins([1, 0, np.nan, 1], [1, 0, 1, 0])
    assert right.tolist() == [True, True, False, False]
    assert taken.tolist() == [True, True, False, True]
    right, taken, bits = guesses_and_coins([1, 0, -1], [1, -1, 1])
    assert (right.tolist(), taken.tolist()) == ([True, False, False], [True, False, True])


@pytest.mark.parametrize(
    ("function", "one", "other", "words"),
    [
        (scores_and_coins, [1, 2], [1, 1], "included must have canaries of both kinds, got 2"),
        (scores_and_coins, [1, 2], [0, 0], "got 2 that were all left out"),
        (scores_and_coins, [1, 1], [0, 1], "scores must differ: .* got 2 scores that are all 1"),
        (scores_and_coins, [1, np.nan], [0, 1], "scores must lie in .* got scores=nan at index 1"),
        (scores_and_coins, [1, np.inf], [0, 1], "scores must lie in .* got scores=inf at index 1"),
        (scores_and_coins, [1, 2, 3], [0, 1], "one entry per canary, got 3 and 2 entries"),
        (scores_and_coins, [1, 2], [0, 2], "included must be True or False.* included=2.0"),
        (scores_and_coins, [1, 2], [-1, 0], "included must be 1 or -1, since .* included=0.0"),
        (scores_and_coins, ["a", "b"], [1, 0], r"scores must be a list of numbers.*\(words: turn"),
        (scores_and_coins, [[1], [2]], [1, 0], "scores must be a list of numbers"),
        (scores_and_coins, [], [], "scores must be a list of numbers"),
        (guesses_and_coins, [np.nan, np.nan], [0, 1], "guesses must hold a guess, got 2 canaries"),
        (guesses_and_coins, [1, -1], [0, 1], "guesses must be 1, 0, or nan for no guess"),
        (guesses_and_coins, [True, False], [-1, 1], "got True or False in guesses"),
    ],
)
def test_wrong_columns_are_named(function, one, other, words):
    with pytest.raises((ValueError, TypeError), match=words):
        function(one, other)


def test_columns_that_prove_nothing_are_unusable():
    for function, one, other in (
        (scores_and_coins, [1, 2], [1, 1]),
        (scores_and_coins, [1, 1], [0, 1]),
        (guesses_and_coins, [np.nan, np.nan], [0, 1]),
    ):
        with pytest.raises(Unusable):
            function(one, other)


def test_scores_that_are_listed_twice():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=50)
    coins = rng.random(50) < 0.5
    twice = np.repeat(scores, 2)
    assert are_listed_twice(twice, np.repeat(coins, 2))
    assert not are_listed_twice(scores, coins)
    assert not are_listed_twice(twice, rng.random(100) < 0.5)
    assert not are_listed_twice(np.round(twice), np.repeat(coins, 2))
