"""Clusters of sweeps: strangers are refused, and what is not a scheduler is named."""

import asyncio
import contextlib
import http.server
import os
import resource
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import indent

import dask
import psutil
import pytest
from distributed import LocalCluster, Scheduler, Security, SpecCluster
from distributed.core import rpc
from notebooks import write_chapter
from test_sweeps import COMMAND, write_grid

from oralib.runs import cluster


def listening() -> set[tuple[str, int]]:
    """Where this process and those that it has started listen."""
    me = psutil.Process()
    found = [
        entry
        for process in (me, *me.children(recursive=True))
        for entry in process.net_connections(kind="inet")
    ]
    return {tuple(entry.laddr) for entry in found if entry.status == psutil.CONN_LISTEN}


def ask(address: str, security: Security) -> str:
    """What a part of a cluster says that it is."""

    async def identity():
        credentials = security.get_connection_args("client")
        async with rpc(address, timeout=5, connection_args=credentials) as part:
            return (await part.identity())["type"].strip("_")

    return asyncio.run(asyncio.wait_for(identity(), 10))


def answer(port: int, words: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """What comes back on a connection, with TLS if there is a context for it."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=5)
    with plain, plain if context is None else context.wrap_socket(plain) as there:
        there.sendall(words)
        return there.recv(100)


# ------------------------------------------------------------------------------- on this machine


def test_strangers_are_refused_at_every_port():
    before = listening()
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    with cluster.connected(2) as client:
        assert client.submit(sum, [1, 2]).result() == 3
        places = listening() - before
        kinds = [ask(f"tls://{host}:{port}", client.security) for host, port in places]
        assert sorted(kinds) == ["Nanny", "Nanny", "Scheduler", "Worker", "Worker"]
        assert {host for host, _ in places} == {"127.0.0.1"}
        for host, port in places:
            with pytest.raises(OSError, match="before comm was established"):
                ask(f"tcp://{host}:{port}", Security())
            with pytest.raises(OSError, match="before comm was established"):
                ask(f"tls://{host}:{port}", Security.temporary())
            for context in (None, anyone):  # who has no certificate at all gets not one word
                with contextlib.suppress(OSError):
                    assert answer(port, b"GET / HTTP/1.0\r\n\r\n", context) == b""
        assert client.submit(sum, [3, 4]).result() == 7
    assert listening() == before


def test_every_cluster_has_credentials_of_its_own():
    with cluster.connected(1) as one, cluster.connected(1) as other:
        assert ask(one.scheduler.address, one.security) == "Scheduler"
        with pytest.raises(OSError, match="before comm was established"):
            ask(one.scheduler.address, other.security)


def test_nothing_is_imported_from_a_folder_of_others(tmp_path):
    """Dask looks for modules in its own folder, which all users of a machine share.

    Nor from where its settings say; wrong words in them are no matter either.
    """
    (tmp_path / "other.py").write_text(f"open({str(tmp_path / 'was here')!r}, 'w')")
    settings = {
        "temporary-directory": str(tmp_path),
        "distributed.worker.preload": [str(tmp_path / "other.py")],
        "distributed.comm.timeouts.connect": "nonsense",
    }

    def import_path():
        return list(sys.path)

    before = set(sys.path)
    with dask.config.set(settings), cluster.connected(1) as client:
        (there,) = client.run(import_path).values()
        added = {Path(place) for place in {*sys.path, *there} - before if place}
        assert added
        for place in added:
            assert not place.is_relative_to(tmp_path)
            private = [
                entry for entry in (place, *place.parents) if entry.stat().st_mode & 0o77 == 0
            ]
            assert private
            assert all(entry.stat().st_uid == os.geteuid() for entry in private)
    assert not any(place.exists() for place in added)
    assert set(sys.path) <= before
    assert not (tmp_path / "was here").exists()


def test_nothing_is_imported_from_the_current_folder(tmp_path):
    """A new process of Python begins with modules such as these."""
    for name in ("signal", "random", "struct", "tempfile"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'was here')!r}, 'w')")
    program = """
import os
from oralib.runs import cluster
with cluster.connected(1) as client:
    assert client.submit(sum, [3, 4]).result() == 7
assert "PYTHONSAFEPATH" not in os.environ
"""
    # As the script does, and unlike python -c, look for modules in another folder first.
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "one.py").write_text(
        f"if __name__ == '__main__':\n{indent(program, '    ')}"
    )
    path = tmp_path / "programs" / "one.py"
    subprocess.run([sys.executable, str(path)], cwd=tmp_path, check=True, timeout=100)
    assert not (tmp_path / "was here").exists()


# ------------------------------------------------------------------------------------- elsewhere


@pytest.fixture
def silent():
    """The port of a listener that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def web():
    """The port of a web server."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def echo():
    """The port of a server that sends back what it gets."""

    class Echo(socketserver.BaseRequestHandler):
        def handle(self):
            while data := self.request.recv(1 << 16):
                self.request.sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def hasty(monkeypatch):
    """Wait less long than a user would."""
    monkeypatch.setattr(cluster, "_ANSWER", 1)
    monkeypatch.setattr(cluster, "_LOOK", 0.5)


def refusal(address: str) -> str:
    with pytest.raises(ValueError, match="scheduler") as caught, cluster.connected(1, address):
        pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:8787", "unknown address scheme 'http'"),
        ("127.0.0.1", "missing port number"),
        ("tcp://127.0.0.1:99999", "there is no port 99999"),
        ("tcp://127.0.0.1:", "invalid literal for int"),
        ("", "missing port number"),
    ],
)
def test_what_is_not_an_address(address, reason):
    assert refusal(address).startswith(
        "scheduler must be an address such as tcp://host:8786 or tls://host:8786, "
        f"got scheduler={address!r}: {reason}"
    )


def test_what_is_found_instead_of_a_scheduler(hasty, silent, web, echo):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    for address, found in (
        (f"tcp://127.0.0.1:{closed}", "nothing listens there"),
        (f"tcp://127.0.0.1:{silent}", "something listens there that does not answer"),
        (f"127.0.0.1:{silent}", "something listens there that does not answer"),
        (f"tcp://127.0.0.1:{web}", "a web server answers there"),
        (f"tcp://127.0.0.1:{echo}", "something else listens there"),
        (f"tls://127.0.0.1:{web}", "TLS needs credentials, and Dask's configuration has none"),
    ):
        assert refusal(address) == f"there is no scheduler at {address}: {found}"


def test_a_name_that_is_not_known(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert refusal("tcp://cluster:8786") == (
        "there is no scheduler at tcp://cluster:8786: no machine is known by the name cluster"
    )


def test_other_parts_of_a_cluster_and_other_credentials(hasty):
    with LocalCluster(
        n_workers=1,
        processes=False,
        host="127.0.0.1",
        protocol="tcp",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
    ) as plain:
        address = plain.workers[0].address
        assert (
            refusal(address) == f"there is no scheduler at {address}: it is that of a Dask worker"
        )
    with cluster.connected(1) as client:
        address = client.scheduler.address
        assert "TLS needs credentials" in refusal(address)
        address = address.replace("tls", "tcp")
        assert refusal(address).endswith("or a scheduler that wants tls://")


def test_a_scheduler_that_goes_after_the_look(monkeypatch):
    monkeypatch.setattr(cluster, "_ANSWER", 1)
    monkeypatch.setattr(cluster, "_check_there", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    assert refusal(address).startswith(f"there is no scheduler at {address}: Timed out")


def test_a_look_that_hangs_is_left_behind(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(cluster, "_AT_MOST", 0.1)
    monkeypatch.setattr(cluster, "_instead_of", lambda _: over.wait(60))
    try:
        assert refusal("tcp://127.0.0.1:9").endswith("no answer within 0.1 s")
    finally:
        over.set()


@contextlib.contextmanager
def scheduler_alone():
    """The address of a scheduler without workers."""
    options = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    with SpecCluster(scheduler={"cls": Scheduler, "options": options}, workers={}) as alone:
        yield alone.scheduler_address


def test_missing_workers_are_named_until_they_come(monkeypatch, capsys):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    said = ""
    with scheduler_alone() as address, cluster.connected(1, address) as client:
        task = client.submit(sum, [1, 2])
        for _ in range(100):
            said += capsys.readouterr().err
            if said.count("\n") >= 3:
                break
            time.sleep(0.1)
        assert set(said.splitlines()) == {
            f"waiting for workers: the scheduler at {address} has none"
        }
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "distributed.cli.dask_worker", address),
                *("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--no-dashboard"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert task.result(timeout=60) == 3
            capsys.readouterr()
            time.sleep(1)
            assert capsys.readouterr().err == ""
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_RSS"), reason="memory is not limited so")
def test_little_memory_for_each_core_does_not_stop_workers(tmp_path):
    """Dask would pause a worker, or end it, for what it has imported."""
    write_chapter(tmp_path)
    path = write_grid(tmp_path, "product: {x: [1, 2, 3]}\n")
    least = 100_000_000 * (os.cpu_count() or 1)

    def limit():
        resource.setrlimit(resource.RLIMIT_RSS, (least, least))  # which Linux itself ignores

    words = [*COMMAND, str(path), "--out", str(tmp_path / "out"), "--workers", "1"]
    done = subprocess.run(words, preexec_fn=limit, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_workers_of_this_machine_that_have_ended_are_named(monkeypatch, capsys):
    """A sweep would wait for them for ever, without a word."""
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    with cluster.connected(1) as client:
        assert client.submit(sum, [1, 2]).result(timeout=60) == 3
        client.cluster.scale(0)
        said = ""
        for _ in range(100):
            said += capsys.readouterr().err
            if said:
                break
            time.sleep(0.1)
    assert set(said.splitlines()) == {"waiting for workers: those on this machine have ended"}


def sweep(folder: Path, address: str) -> subprocess.Popen:
    write_chapter(folder)
    grid = write_grid(folder, "points: [{x: 1}]\n")
    return subprocess.Popen(
        [*COMMAND, str(grid), "--out", str(folder / "out"), "--scheduler", address],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_control_c_ends_the_waiting_with_one_line(tmp_path):
    with scheduler_alone() as address:
        process = sweep(tmp_path, address)
        try:
            lines = [process.stderr.readline() for _ in range(3)]
            assert lines[0] == "1 points, 0 complete, 1 to run\n"
            waiting = f"waiting for workers: the scheduler at {address} has none\n"
            assert lines[1:] == [waiting, waiting]
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.replace(waiting, "") == "interrupted; the same command goes on from here\n"


def test_a_sweep_does_not_wait_for_what_never_answers(tmp_path, silent):
    process = sweep(tmp_path, f"tcp://127.0.0.1:{silent}")
    try:
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 2
    assert said == (
        "1 points, 0 complete, 1 to run\n"
        f"error: there is no scheduler at tcp://127.0.0.1:{silent}: "
        "something listens there that does not answer\n"
    )
