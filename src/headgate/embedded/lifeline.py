"""Become another program that dies with its parent: `lifeline.py PARENT SIGNAL UID GID PROGRAM [ARG ...]`.

It runs as a script without the site module, which takes a few milliseconds. It is not a function between fork and exec
(``preexec_fn``), because the supervisor has threads and such a function could deadlock.

The order of the steps matters. A change of the user clears the death signal, so the signal is set afterwards. The parent
may die before the signal is set; then this process has another parent, and exits.
"""

from __future__ import annotations

import ctypes
import os
import sys
from signal import SIG_DFL, SIGINT, signal as restore

PR_SET_PDEATHSIG = 1


def exec_with_parent_death_signal(parent: int, signal: int, uid: int, gid: int, command: list[str]) -> None:
    """Replace this process by ``command``. The kernel sends it ``signal`` when the parent dies (Linux only).

    A ``uid`` of -1 means: do not change the user.
    """
    # A job in the background of a shell ignores SIGINT, and its children inherit that. PostgreSQL is stopped by SIGINT.
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
    parent, signal, uid, gid = map(int, sys.argv[1:5])
    exec_with_parent_death_signal(parent, signal, uid, gid, sys.argv[5:])
