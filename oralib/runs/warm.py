"""Kernels that begin where their imports have ended, for processes that start many.

Most of the time before a chapter's own work goes into imports, which are the same for all points
of a sweep. A process of its own, see ``forks``, imports what earlier kernels have imported, and is
forked for every further one. A kernel shares nothing with others that it could change, and imports
oralib by itself.

This is for Linux, where forking is cheap and safe, and for ordinary Python kernels. Elsewhere, and
whenever a kernel that starts from nothing might import something else, it starts from nothing.
"""

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from oralib.runs import forks

#: Seconds for the imports. On a busy machine they are slow.
_PATIENCE = 60

#: What differs from kernel to kernel in the environment; it is read by no import.
_OWN = "IPYTHONDIR"

_LAUNCHER = "ipykernel_launcher"


def up(manager: KernelManager) -> None:
    """Let a manager start its kernel as a fork, if it would start an ordinary process here."""
    spec, usual = manager.kernel_spec, KernelProvisionerFactory.instance().default_provisioner_name
    ordinary = spec is not None and "kernel_provisioner" not in spec.metadata
    if sys.platform == "linux" and ordinary and usual == "local-provisioner":
        manager.provisioner = _Provisioner(kernel_spec=spec, parent=manager)


def learn(packages: Iterable[str]) -> None:
    """Note what kernels have imported, for those that come after them."""
    _place.learn(packages)


def down() -> None:
    """Let all further kernels of this process start from nothing."""
    _place.close()


class _Provisioner(LocalProvisioner):
    """Starts a kernel as a fork where that makes no difference but in time."""

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        kernel = _forked(cmd, **options)
        if kernel is None:
            return await super().launch_kernel(cmd, **options)
        self.process = kernel  # type: ignore[assignment]
        self.pid = self.pgid = kernel.pid  # it leads a session
        self.cwd = options.get("cwd", os.getcwd())
        return self.connection_info


class _Forks:
    """The process that is forked, for kernels that start Python in one way and folder."""

    def __init__(self, python: list[str], env: dict[str, str], cwd: str) -> None:
        self._lock = threading.Lock()
        self._asks, theirs = socket.socketpair()
        self._asks.settimeout(_PATIENCE)
        self._said = self._asks.makefile("rb")
        try:
            self._process = subprocess.Popen(
                [*python, forks.__file__],
                # It also answers there, since start-up files of the user may print.
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=env,
                cwd=cwd,
                start_new_session=True,  # Ctrl-C is not for it
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()

    def ask(self, question: dict[str, Any]) -> Any:
        """The answer; there may be none, and then never again."""
        with self._lock:
            if self._process.poll() is not None:
                raise ChildProcessError("it has ended")
            try:
                self._asks.sendall(json.dumps(question).encode() + b"\n")
                line = self._said.readline()
                if not line:
                    raise ChildProcessError("it has ended")
                return json.loads(line)
            except BaseException:
                # Ctrl-C, for one. An answer that comes later would be taken for the next one.
                self._process.kill()
                raise

    def kernel(self, question: dict[str, Any]) -> int | None:
        """The process id of a new kernel, if there is one."""
        pid: int | None = self.ask({**question, "parent": self._process.pid})
        return pid

    def _close(self) -> None:
        self._said.close()
        self._asks.close()

    def has_gone(self) -> bool:
        """Whether it has ended by itself, as nobody has asked for long."""
        return self._process.poll() == 0

    def end(self) -> None:
        with self._lock, self._process as process:  # which waits
            process.kill()
            self._close()


class _Kernel:
    """A kernel that was forked, to be handled like a ``subprocess.Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, parent: _Forks) -> None:
        self.pid = pid
        self._parent = parent
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            try:
                self._status = self._parent.ask({"pid": self.pid})
            except OSError:
                self._status = -signal.SIGKILL  # it does not outlive its parent
        return self._status

    def wait(self) -> int | None:
        return self.poll()  # is asked when it has ended

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Place:
    """Where the process that is forked is kept, with its kernels; there is one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: tuple[Any, ...] = ()
        self._forks: _Forks | None = None
        self._kernels: list[_Kernel] = []
        self._packages: set[str] = set()
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def learn(self, packages: Iterable[str]) -> None:
        with self._lock:
            self._packages.update(packages)

    def kernel(
        self, python: list[str], common: dict[str, str], cwd: str, question: dict[str, Any]
    ) -> _Kernel | None:
        with self._lock:
            if self._closed:
                return None
            self._kernels = [kernel for kernel in self._kernels if kernel.poll() is None]
            gone = self._forks is not None and self._forks.has_gone()
            if gone or self._started != (python, common, cwd):
                if self._kernels:
                    return None  # they would end with their parent
                self.clear()
                self._started = (python, common, cwd)
                self._forks = _Forks(python, common, cwd)
            if self._forks is None:
                return None  # it could not be started
            pid = self._forks.kernel({**question, "packages": sorted(self._packages)})
            if pid is None:
                return None
            self._kernels.append(_Kernel(pid, self._forks))
            return self._kernels[-1]

    def clear(self) -> None:
        if self._forks is not None:
            self._forks.end()
            self._forks = None


_place = _Place()
atexit.register(_place.clear)


def _forked(
    cmd: list[str], *, env: dict[str, str], stderr: Any, cwd: str | None = None, **options: Any
) -> _Kernel | None:
    """A kernel, or None if it has to start from nothing."""
    if _LAUNCHER not in cmd[2:] or not isinstance(getattr(stderr, "name", None), str):
        return None
    env = {**env, "JPY_PARENT_PID": str(os.getpid())}  # so that it looks whether its parent lives
    start = cmd.index(_LAUNCHER)
    cwd = cwd or os.getcwd()
    question = {"argv": cmd[start + 1 :], "env": env, "stderr": stderr.name, "cwd": cwd}
    common = {name: word for name, word in env.items() if name != _OWN}
    try:
        python = cmd[: start - 1]  # without -m
        return _place.kernel(python, common, cwd, question)
    except OSError:
        return None
