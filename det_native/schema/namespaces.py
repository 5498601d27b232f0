"""Networks of a process's own (Linux namespaces): whether this machine allows them, and how one is made and entered.

Only the calling thread changes its network; threads that run already keep theirs.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1
_PROBE = "from det_native.schema.namespaces import begin_user, begin_network; begin_user(); begin_network()"


def why_no_network() -> str:
    """Return why a process here cannot have a network of its own; empty if it can. It is tried in a process."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has none"
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def begin_user() -> None:
    """Get the rights to a network of its own, if this process lacks them; it must have one thread only.

    Raises
    ------
    OSError
        If the machine does not allow it.
    """
    if _may_change_networks():
        return
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_USER)
    # Everything stays the user's own: both numbers mean the same within and without.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def begin_network() -> None:
    """Have this thread, and those that it starts, be in a new network, which has nothing but loopback.

    Raises
    ------
    OSError
        If the machine does not allow it.
    """
    import fcntl  # of systems that have no namespaces, some have no such module either

    _call("unshare", _NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(any_socket, _GET_FLAGS, request))[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _UP))


def enter_user_of(process: int) -> None:
    """Get the rights that another process of this user's has got by `begin_user`; see there."""
    if not _may_change_networks():
        _enter(process, "user", _NEW_USER)


def enter_network_of(process: int) -> None:
    """Have this thread, and those that it starts, be in the network of another process's first thread."""
    _enter(process, "net", _NEW_NETWORK)


def _enter(process: int, kind: str, flag: int) -> None:
    descriptor = os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY)
    try:
        _call("setns", descriptor, flag)
    finally:
        os.close(descriptor)


def _may_change_networks() -> bool:
    """Return whether this process may do so as it is (CAP_SYS_ADMIN)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> 21 & 1)
    return False


def _call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
