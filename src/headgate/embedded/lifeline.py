"""Become another program that dies with its parent: `lifeline.py PARENT SIGNAL UID GID PROGRAM [ARG ...]`.

Run as a script, without the site module, so that it costs a few milliseconds. It is a program of its own and not
a function run between fork and exec, because the supervisor has threads, and such a function may then deadlock.
The order matters: changing the user clears the death signal, so it is set after; and a parent that died before it
was set is noticed because then we have another parent.
"""

from __future__ import annotations

import ctypes
import os
import sys
from signal import SIG_DFL, SIGINT
from signal import signal as restore

PR_SET_PDEATHSIG = 1


def main(parent: int, signal: int, uid: int, gid: int, command: list[str]) -> None:
    """UID -1: stay the user we are. SIGNAL is what the kernel sends when the parent is gone (Linux only)."""
    # Started in the background of a shell, we would hand on that SIGINT is ignored; PostgreSQL is stopped by it.
    restore(SIGINT, SIG_DFL)
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
