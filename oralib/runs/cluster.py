"""The Dask cluster of a sweep: one on this machine that nobody else can use, or one that is there.

Whoever can reach a Dask scheduler or one of its workers can run code as the user who started it.
A sweep's own cluster therefore listens on loopback only and speaks TLS only, with credentials that
are made for it and live in its processes; it has no dashboard, and its files are the user's alone.

The user's settings for Dask, in the environment or in files, do not matter for it: some would let
the workers run other code first, and a word in the wrong place would keep them from starting.

A scheduler that is given by its address is trusted, and so is everyone who can reach it: Dask's
plain ``tcp://`` asks nobody who they are. A shared one should be a ``tls://`` one. The credentials
for it are taken from Dask's own configuration.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import spawn
from typing import Any

import dask
from distributed import Client, Nanny, Scheduler, Security, SpecCluster, Worker
from distributed.comm import get_address_host_port
from distributed.core import rpc
from tqdm import tqdm

_QUIET = {
    "distributed.admin.log-format": "%(message)s",
    "distributed.worker.profile.enabled": False,
}
_SILENT = 60  # a level of logging above all

#: Seconds: for a scheduler to answer, to see what is there instead, and at most for both.
_ANSWER, _LOOK, _AT_MOST = 8, 2, 14

#: Seconds between two words about missing workers.
_PATIENCE = 5


@contextlib.contextmanager
def connected(workers: int, scheduler: str | None = None) -> Iterator[Client]:
    """A client of a cluster, which ends with the block.

    Parameters
    ----------
    workers : processes of a cluster on this machine.
    scheduler : the address of a Dask scheduler to use instead. Who else can reach a scheduler
        without TLS can run code on its workers, as the user who started them.
    """
    with (
        dask.config.set(_defaults() | _QUIET if scheduler is None else _QUIET),
        _local(workers) if scheduler is None else _at(scheduler) as client,
    ):
        yield client


def _defaults() -> dict[str, Any]:
    """Dask's settings as they come."""
    return dict(dask.config.merge(*dask.config.defaults))


# ------------------------------------------------------------------------------- on this machine


class _NoPages:
    """A part of a cluster without the web server that Dask would start, dashboard or not."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        pass


class _Scheduler(_NoPages, Scheduler):
    pass


class _Worker(_NoPages, Worker):
    pass


@contextlib.contextmanager
def _local(workers: int) -> Iterator[Client]:
    security = Security.temporary()
    place = {"host": "127.0.0.1", "protocol": "tls://", "security": security}
    worker = {"nthreads": 1, "worker_class": _Worker, "silence_logs": _SILENT}
    worker["memory_limit"] = None  # at which Dask would stop; and kernels are not counted
    with (
        _safe_path(),
        _without_the_script(),
        # Dask imports from its folder, which it would share with other users.
        tempfile.TemporaryDirectory(prefix="oralib-", ignore_cleanup_errors=True) as folder,
        dask.config.set({"temporary-directory": folder}),
    ):
        try:
            with _deaf_to_interrupts():  # the workers, which would each print a traceback
                options = {**place, "port": 0, "dashboard": False}
                cluster = SpecCluster(
                    scheduler={"cls": _Scheduler, "options": options},
                    workers={i: {"cls": Nanny, "options": place | worker} for i in range(workers)},
                    security=security,
                    silence_logs=_SILENT,
                )
        except RuntimeError as error:
            raise ValueError(f"no workers can be started on this machine: {error}") from None
        none = "those on this machine have ended"
        with cluster, Client(cluster) as client, _missing_workers_named(client, none):
            yield client


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Processes that are started here import nothing from the current folder.

    Python would look there first for the modules with which a new process begins, and find what
    anybody has put there, such as a file ``random.py``.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


@contextlib.contextmanager
def _without_the_script() -> Iterator[None]:
    """Workers do not execute the script that sweeps, as every new process of Python's would.

    They need nothing of it, and one that does not begin with ``if __name__ == "__main__"`` would
    sweep again in each of them.
    """
    usual = spawn.get_preparation_data

    def data(name: str) -> dict[str, Any]:
        begin = dict(usual(name))
        if name.startswith("Dask Worker"):
            begin.pop("init_main_from_name", None)
            begin.pop("init_main_from_path", None)
        return begin

    spawn.get_preparation_data = data
    try:
        yield
    finally:
        spawn.get_preparation_data = usual


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started here do not hear Ctrl-C; this one does so afterwards.

    They inherit what their parent blocks. Windows cannot block signals: there Ctrl-C is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
    elif hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        # Python starts this helper with the first process, and then lets signals through.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    else:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)


# ------------------------------------------------------------------------------------- elsewhere


@contextlib.contextmanager
def _at(scheduler: str) -> Iterator[Client]:
    check_address(scheduler)
    _check_there(scheduler)
    try:
        client = Client(scheduler, timeout=_ANSWER)
    except OSError as error:  # it has gone in between
        raise ValueError(f"there is no scheduler at {scheduler}: {error}") from None
    none = f"the scheduler at {scheduler} has none"
    with _silent_logs(), client, _missing_workers_named(client, none):
        yield client


@contextlib.contextmanager
def _silent_logs() -> Iterator[None]:
    """No tracebacks of Dask about a scheduler that goes: the sweep says so itself."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    levels = {logger: logger.level for logger in map(logging.getLogger, ["distributed", *names])}
    for logger in levels:
        logger.setLevel(_SILENT)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def check_address(scheduler: str) -> None:
    """Refuse what can be no address; nobody is asked yet."""
    try:
        _, port = get_address_host_port(scheduler)
        if not 0 < port < 65536:
            raise ValueError(f"there is no port {port}")
    except ValueError as error:
        raise ValueError(
            "scheduler must be an address such as tcp://host:8786 or tls://host:8786, "
            f"got scheduler={scheduler!r}: {error}"
        ) from None


def _check_there(scheduler: str) -> None:
    """See that a scheduler answers; what may hang, also in the system, is left behind."""
    found: list[str | None] = []
    look = threading.Thread(target=lambda: found.append(_instead_of(scheduler)), daemon=True)
    look.start()
    look.join(_AT_MOST)
    instead = found[0] if found else f"no answer within {_AT_MOST} s"
    if instead is not None:
        raise ValueError(f"there is no scheduler at {scheduler}: {instead}")


def _instead_of(scheduler: str) -> str | None:
    """What is found at the address instead of a scheduler; None if there is one."""
    host, port = get_address_host_port(scheduler)
    try:
        socket.getaddrinfo(host, port)  # first here: asyncio waits at its end for one that hangs
    except (socket.gaierror, UnicodeError):
        return f"no machine is known by the name {host}"
    try:
        answer = asyncio.run(_identity(scheduler))
    except Exception as error:
        return _said(error) or _listening(host, port)
    if "workers" in answer:
        return None
    kind = answer.get("type")
    return (
        f"it is that of a Dask {kind.lower()}"
        if isinstance(kind, str)
        else "something else listens there"
    )


async def _identity(address: str) -> dict[str, Any]:
    """What a part of a Dask cluster at the address says about itself."""

    async def ask() -> dict[str, Any]:
        credentials = Security().get_connection_args("client")
        async with rpc(address, timeout=_ANSWER, connection_args=credentials) as server:
            return dict(await server.identity())

    return await asyncio.wait_for(ask(), _ANSWER)


def _said(error: BaseException | None) -> str | None:
    """What a failed connection says about credentials; None if it is not about them."""
    while error is not None:
        if isinstance(error, TypeError) and "ssl_context" in str(error):
            return "TLS needs credentials, and Dask's configuration has none"
        if isinstance(error, ssl.SSLError):
            return f"no connection with TLS, {error.reason or error}".lower()
        error = error.__cause__ or error.__context__
    return None


def _listening(host: str, port: int) -> str:
    """What listens there, if anything does: it is greeted as a web server would be."""
    try:
        there = socket.create_connection((host, port), timeout=_LOOK)
    except ConnectionRefusedError:
        return "nothing listens there"
    except TimeoutError:
        return "the machine does not answer"
    except OSError as error:
        return error.strerror or str(error)
    with there:
        try:
            there.sendall(b"GET / HTTP/1.0\r\n\r\n")
            if there.recv(5) == b"HTTP/":
                return "a web server answers there"
        except TimeoutError:
            return "something listens there that does not answer"
        except OSError:
            pass
    return "something else listens there, or a scheduler that wants tls://"


@contextlib.contextmanager
def _missing_workers_named(client: Client, none: str) -> Iterator[None]:
    """Say from time to time that there are no workers, as long as there are none."""
    over = threading.Event()

    def watch() -> None:
        while True:
            try:
                if not client.nthreads():
                    tqdm.write(f"waiting for workers: {none}", file=sys.stderr)
            except (Exception, asyncio.CancelledError):
                return  # the client is closed, which others notice
            if over.wait(_PATIENCE):
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()
