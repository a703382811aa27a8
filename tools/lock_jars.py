"""Fill in `jars.lock`: a line that is only a coordinate is downloaded, and its hash and size written behind it.

To take up a new version, write the new coordinate without hash and run `make lock`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from headgate.embedded.jars import Jar, hash_of, read_lock, run_ivy

BARE = re.compile(r"[\w.:-]+(@[\w.]+)?")
NO_HASH = "0" * 64


def main(lock: Path) -> int:
    lines = lock.read_text().splitlines()
    bare = dict.fromkeys(line for line in lines if BARE.fullmatch(line))
    jars = {line: _jar(line) for line in bare}
    if jars:
        with tempfile.TemporaryDirectory() as folder:
            arrived = run_ivy(list(jars.values()), Path(folder), print)
            missing = [line for line, jar in jars.items() if jar not in arrived]
            if missing:
                print("not found:", *missing, sep="\n  ")
                return 1
            known = {
                line: f"{line} {hash_of(arrived[jar])} {arrived[jar].stat().st_size}" for line, jar in jars.items()
            }
        lock.write_text("".join(known.get(line, line) + "\n" for line in lines))
    return 0


def _jar(line: str) -> Jar:
    return read_lock(f"[x]\n{line} {NO_HASH} 0")["x"][0]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
