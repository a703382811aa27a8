"""`make test`: the parts of the test run side by side, each with a world, a log and a report of its own.

Most of what Spark and end-to-end tests take is waiting for a JVM or for a record, so three parts on two cores end in
little more than the time of the longest. Logs and JUnit reports are in `build/test`. With `--timings` the seconds of
every module and spec are written to `tests/timings.txt`, which is committed: a review shows what became slower.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "test"
TIMINGS = ROOT / "tests" / "timings.txt"
EVERY = 30.0  # seconds between two lines of progress
TAIL = 120  # lines of the log of a part that failed
# No JVM of a test lives long enough to earn back what the optimising compiler costs. Without that compiler Java makes room
# for 48 MB of compiled code only. Spark has more, so that Java threw code away and compiled it again all the time.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
SHORT_LIVED = {
    "spark.driver.defaultJavaOptions": JAVA_OPTIONS,
    "spark.executor.defaultJavaOptions": JAVA_OPTIONS,
}
JAVA_SETTINGS = {
    "HEADGATE_SPARK_SETTINGS": json.dumps(SHORT_LIVED),
    "HEADGATE_SERVICE_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",  # services start with 40 % less CPU time
    # Spark's launcher is a Java of its own before each Spark: 0.13 s of CPU instead of 0.23.
    "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
# Many tests start engines that nobody queries: each would start a second JVM for nothing.
NO_EAGER_QUERIES = {"HEADGATE_QUERIES_EAGER": "false"}


@dataclass(frozen=True, slots=True)
class Part:
    """A command of the test run. ``report`` is the option by which it takes the name of a JUnit file."""

    name: str
    command: tuple[str, ...]
    report: str = "--junitxml"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return BUILD / f"{self.name}.log"

    @property
    def junit(self) -> Path:
        return BUILD / f"{self.name}.xml"


PARTS = (
    # Each of the two workers has a JVM and a world of its own; the tests of a module share what the module sets up.
    Part(
        "spark",
        ("pytest", "-m", "(spark or e2e) and not long", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
        environment=JAVA_SETTINGS | NO_EAGER_QUERIES,
    ),
    # Three minutes for a step, because five JVMs share two cores: a step that passes takes no longer by it.
    Part("specs", ("headgate", "test", "--jobs", "2", "--timeout", "180s", "specs"), "--junit", JAVA_SETTINGS),
    Part("unit", ("pytest", "-m", "unit")),
)


class Running:
    """A part that was started. Its output goes to its log, standard error too."""

    def __init__(self, part: Part, log: TextIO) -> None:
        self.part = part
        self.cpu_seconds = 0.0  # of all its processes, known when it has ended
        self._started = time.monotonic()
        self._took = 0.0
        program, *arguments = part.command
        command = [str(Path(sys.executable).parent / program), *arguments, part.report, str(part.junit)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env={**part.environment, **os.environ}
        )

    def ended(self) -> bool:
        if self._process.returncode is None:
            before = _cpu_seconds_of_children()
            self._process.poll()
            self.cpu_seconds = _cpu_seconds_of_children() - before
            self._took = time.monotonic() - self._started
        return self._process.returncode is not None

    @property
    def passed(self) -> bool:
        return self._process.returncode == 0

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()

    def progress(self) -> str:
        ended = self.ended()
        state = ("passed" if self.passed else "FAILED") if ended else "running"
        cpu = f"  {self.cpu_seconds:5.0f} s of CPU" if ended else ""
        return f"{self.part.name:6} {self._took:5.0f} s{cpu}  {state}  {last_words(self.part.log)}"


def _cpu_seconds_of_children() -> float:
    """Of the children that have ended, and of those that they have waited for in their turn."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def last_words(log: Path) -> str:
    """How far a part is: the percentage that pytest prints, or the last line without its decoration."""
    lines = [line.strip("= ") for line in log.read_text(errors="replace").splitlines() if line.strip("= ")]
    last = lines[-1] if lines else ""
    percent = re.search(r"\[ *(\d+%)\]$", last)
    return percent[1] if percent else last[:100]


def run(parts: Sequence[Part]) -> list[Running]:
    """Run the parts at the same time until all have ended, whatever becomes of each."""
    BUILD.mkdir(parents=True, exist_ok=True)
    running: list[Running] = []
    try:
        for part in parts:
            with part.log.open("w") as log:
                running.append(Running(part, log))
        follow(running)
    finally:
        for one in running:
            if not one.ended():
                one.end()
    return running


def follow(running: Sequence[Running]) -> None:
    """Print a line for a part when it ends, and one for each that still runs twice a minute."""
    left, said = list(running), time.monotonic()
    while left:
        time.sleep(0.2)
        due = time.monotonic() - said > EVERY
        for one in left:
            if due or one.ended():
                print(one.progress(), flush=True)
        said = time.monotonic() if due else said
        left = [one for one in left if not one.ended()]


def show(running: Iterable[Running]) -> None:
    """The ends of the logs of parts that failed, then the last line of every part."""
    for one in running:
        if not one.passed:
            print(f"\n{one.part.name} failed; the end of {one.part.log.relative_to(ROOT)}:\n")
            print("\n".join(one.part.log.read_text(errors="replace").splitlines()[-TAIL:]))
    print()
    for one in running:
        print(one.progress())


# Seconds of modules


def seconds_by_file(reports: Iterable[Path]) -> dict[str, float]:
    """What the tests of each file took together, with what was made ready for them."""
    seconds: dict[str, float] = defaultdict(float)
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            module = case.get("classname") or ""
            name = f"{module.replace('.', '/')}.py" if module.startswith("tests.") else f"{module}/{case.get('name')}"
            seconds[name] += float(case.get("time") or 0)
    return dict(seconds)


def timings(seconds: Mapping[str, float]) -> str:
    """A line for each file that takes a second or more, in the order of their names, so that two runs can be compared."""
    lines = [f"{round(took):5}  {name}" for name, took in sorted(seconds.items()) if round(took) >= 1]
    return "\n".join([f"{round(sum(seconds.values())):5}  all", *lines, ""])


def read_timings() -> dict[str, int]:
    """The seconds of each file as the last `make timings` has seen them."""
    rows = (line.split(maxsplit=1) for line in TIMINGS.read_text().splitlines())
    return {name: int(seconds) for seconds, name in rows}


def main(arguments: Sequence[str]) -> int:
    running = run(PARTS)
    show(running)
    if "--timings" in arguments:
        TIMINGS.write_text(timings(seconds_by_file(part.junit for part in PARTS)))
    return 0 if all(one.passed for one in running) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
