"""The Spark session: one per process, with Headgate's jars and the settings that streaming on it needs.

`SparkJobs` is how a worker of the scheduler uses it: by a session of its own, the settings of a batch, a pool, and a tag to cancel
the batch by.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

import psutil
from pyspark.logger import PySparkLogger
from pyspark.sql import (
    DataFrame,
    Observation,
    SparkSession as SparkSession,  # other packages name it, but may not import pyspark
    functions as F,
)
from pyspark.sql.avro.functions import from_avro, to_avro

from headgate.plan.definitions import Origin, SourceColumn, SourceLayout
from headgate.runtime import worker_daemon
from headgate.runtime.decode import Decoder
from headgate.runtime.errors import SparkGone
from headgate.runtime.formats.frame import framed, has_schema_id, schema_id
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import SchemaEncoding, fields_of
from headgate.schema.formats.spark import SETTINGS
from headgate.schema.written import SchemaFormat, WrittenSchema

# Each with its reason; a user's own settings come after them and win.
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.explainMode": "simple",  # every query prints its plan for the UI, also where there is none
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",  # batches of several tasks share the slots; see `SparkJobs` for the pools
    "spark.sql.adaptive.enabled": "true",
    # A stage that gave no rows stays in the plan: rejected records are counted by a node of it (`Decoder.count_rejected`).
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    # Without kafka: its older reader turns every record into a row of objects and back (a million read: 4.1 CPU seconds
    # against 2.4).
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),  # 10,000 records of 10 MB are too many at once
    # As it is by default, but said: unsaid, Spark looks through the environment for every nested record that it makes.
    "spark.sql.types.framework.enabled": "false",
    # A check of Spark's own rules after each, for its developers; a small batch is mostly planning.
    "spark.sql.lightweightPlanChangeValidation": "false",
    # PySpark tells the JVM the line of our code at every call of its functions, for the text of some errors. That is ten calls
    # more for each: the columns of a source with 1,000 fields took 11 CPU seconds, and 1.5 without it.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark looks for the used fields of a struct in a time that grows with the square of their number, and a record of a topic
    # is decoded whole anyway: a plan with 2,000 fields took 3.2 CPU seconds, and 0.5 without it.
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    # Spark derives conditions from conditions, in a time that doubles with every column of a decoded record: after eight
    # followed schemas a batch took minutes to plan, and without them 2.5 seconds. What joins lose by it was not measured.
    "spark.sql.constraintPropagation.enabled": "false",
    # Consumers and producers that nobody uses any more are closed after a minute. By default Spark keeps them for longer.
    "spark.kafka.consumer.cache.timeout": "60s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "10s",
    "spark.kafka.producer.cache.timeout": "60s",
    "spark.kafka.producer.cache.evictorThreadRunInterval": "10s",
    # Materialized views are stored as Delta tables. Each is small: one partition for the state of its log, no checksums.
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # VACUUM would make two commits. Delta refuses a version that is not the last one after the time of retention, so that a snapshot
    # could not be read any more a quarter of an hour later.
    "spark.databricks.delta.vacuum.logging.enabled": "false",
    # A batch without changes is a commit too: it moves the ledger.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    "spark.sql.variable.substitute": "false",  # `${x}` in a query is text, no variable of Spark's
    **SETTINGS,
}
# -Xss8m: a regex in StreamExecution overflows the default stack on long errors that cross py4j.
# avro.limits: of a text or an array that a malformed record says is a gigabyte long, Avro makes room for before it reads on,
# and the engine dies of it.
AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength={most}"
    for what, most in (("bytes", 2**27), ("string", 2**27), ("collectionItems", 2**24))
)
# ExitOnOutOfMemoryError: a JVM that has no memory left may go on without some of its threads, and answer nobody.
JAVA_OPTIONS = f"-Xss8m -XX:+ExitOnOutOfMemoryError {AVRO_LIMITS} -Dlog4j2.configurationFile={{log}}"
# If the archive does not fit after all (Java was replaced), Java starts without it. It would print a warning about that.
ARCHIVE_OPTIONS = " -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds*=off"
# They write down what an exception says of a query, with the value that it failed at.
OUT_OF_MEMORY = (3, 52)  # exit statuses: of that option, and of Spark itself
QUERY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Small batches: 200 tasks cost more than the rows in them. A cluster has Spark's own number, which adaptive execution
    # brings down to what the cores can do at once.
    "spark.sql.shuffle.partitions": "4",
    # Otherwise it is the number of threads, most of which are for tasks in real time.
    "spark.default.parallelism": "8",
    # VACUUM of Delta lists the files of a table in so many tasks, by default 10,000, however few files there are.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # What each sort, join and group of a task takes from the heap at a time. By default it is a 16th of a core's share of
    # the memory, up to 64 MB, of which a small batch fills some hundred bytes: after 25 small queries a heap was 500 MB, and 100
    # with it. A row that is larger gets what it needs.
    "spark.buffer.pageSize": "2m",
    # Four new workers took 1.6 CPU seconds, and 0.6 with it. Executors of a cluster may be older than this module.
    **({"spark.python.daemon.module": worker_daemon.MODULE} if sys.platform == "linux" else {}),
}


def open_session(
    jars: Sequence[Path],
    *,
    application: str = "headgate",
    master: str = "local[8]",
    java: Path | None = None,
    archive: Path | None = None,
    warehouse: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session on ``master``. Eight local threads on fewer cores, because streaming tasks mostly wait.

    ``archive`` is a class archive for this Java and this Spark; the driver's JVM starts in half the time with it.
    """
    # Workers must run the Python that has our packages, whatever `python3` means on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if java is not None:
        os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
    builder = SparkSession.builder.appName(application).master(master)
    log = files("headgate.runtime") / "log4j2.properties"
    options = JAVA_OPTIONS.format(log=log) + (ARCHIVE_OPTIONS.format(archive=archive) if archive else "")
    builder = builder.config("spark.driver.extraJavaOptions", options)
    builder = builder.config("spark.executor.extraJavaOptions", AVRO_LIMITS)
    if master.startswith("local"):
        # On Java's own class path: the class archive holds only what comes from there, and Spark's own loader would copy the
        # jars and load their classes twice, for the driver and for the executor in the same JVM.
        builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(map(str, jars)))
    else:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    if warehouse is not None:
        builder = builder.config("spark.sql.warehouse.dir", str(warehouse))
    for key, value in {**DEFAULTS, **(LOCAL if master.startswith("local") else {}), **(settings or {})}.items():
        builder = builder.config(key, value)
    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    return builder.getOrCreate()


def warm_up_and_stop(session: SparkSession, brokers: str, topic: str) -> None:
    """Run queries of all the usual kinds, so that their classes are loaded, and wait until the JVM has ended. ``topic`` is
    empty and is written."""
    words = session.createDataFrame([(number, str(number)) for number in range(9)], "n int, word string")
    words.createOrReplaceTempView("words")
    session.sql(
        "SELECT word, max(n) AS most FROM words JOIN range(5) AS r ON n = r.id GROUP BY word ORDER BY word"
    ).collect()
    list(words.mapInArrow(lambda batches: batches, words.schema).where("word <> '1'").toLocalIterator())
    for settings in (SMALL_SETTINGS, LARGE_SETTINGS):
        for name, value in settings.items():
            session.conf.set(name, value)
        _through_kafka(words, {"kafka.bootstrap.servers": brokers}, topic)
    with tempfile.TemporaryDirectory(prefix="headgate-classes-") as folder:
        _through_delta(words, f"{folder}/log")
    jvms = _jvms()
    session.stop()
    for jvm in jvms:  # PySpark keeps its JVM until this process ends
        jvm.terminate()
    psutil.wait_procs(jvms)


WORD = """{"type": "record", "name": "word", "fields": [
  {"name": "n", "type": ["null", "int"]}, {"name": "word", "type": ["null", "string"]}]}"""
LATER_WORD = WORD.removesuffix("]}") + ', {"name": "more", "type": ["null", "int"], "default": null}]}'


def _through_kafka(words: DataFrame, options: Mapping[str, str], topic: str) -> None:
    """What a task does: write records, read them, decode them, count them and keep the last of each key. And what a
    stream does with them."""
    session = words.sparkSession
    record = (F.lit(topic).alias("topic"), F.col("word").cast("binary").alias("key"))
    encoded = words.select(*record, to_avro(F.struct("n", "word"), WORD).alias("value"))
    encoded.write.mode("append").format("kafka").options(**options).save()
    raw = session.read.format("kafka").options(**options).option("subscribe", topic).load()
    decoded = raw.select("*", from_avro("value", WORD, {"mode": "PERMISSIVE"}).alias("word"))
    decoded = decoded.withColumn("number", F.from_json(F.col("key").cast("string"), "n int"))
    counted = decoded.observe(Observation(), F.count_if(F.col("word").isNull()).alias("bad"))
    last = counted.groupBy("key").agg(F.max_by("word", F.struct("timestamp", "partition", "offset")).alias("word"))
    last.select("key", "word.*").toArrow()
    counted.select(F.to_json("word")).collect()
    framed_records = words.select(*record, framed(1, to_avro(F.struct("n", "word"), WORD)).alias("value"))
    framed_records.write.mode("append").format("kafka").options(**options).save()
    _follow(session.read.format("kafka").options(**options).option("subscribe", topic).load())
    stream = session.readStream.format("kafka").options(**options).option("subscribe", topic).load()
    stream.writeStream.foreachBatch(_count).trigger(availableNow=True).start().awaitTermination()


def _follow(raw: DataFrame) -> None:
    """What a task does when its source follows a schema: look for records that have it, and read all with one reader. The first
    one would otherwise load classes while other tasks work."""
    first = WrittenSchema(WORD, id=1)
    later = WrittenSchema(LATER_WORD, id=2)
    side = SchemaEncoding(SchemaFormat.AVRO, (first, later))
    columns = tuple(SourceColumn(f.name, f.type, f.nullable, Origin("value", f.name)) for f in fields_of(side) or ())
    layout = SourceLayout("words", columns, side, None, "NONE", "SKIP", "FOLLOW")
    decoder = Decoder(layout, value=WriterSchemas({1: first, 2: later}, newer=frozenset((2,))))
    raw.where(has_schema_id(F.col("value"), [2])).select(schema_id(F.col("value"))).collect()
    rows = decoder.columns(decoder.accepted(decoder.decode(raw)))
    rows.select(to_avro(F.struct("n", "word"), WORD)).collect()


def _through_delta(words: DataFrame, path: str) -> None:
    """What a materialized view does: make a table, commit rows with a number, look for the last commit and read a version."""
    session, table = words.sparkSession, f"delta.`{path}`"
    session.sql(f"CREATE TABLE IF NOT EXISTS {table} (n INT, word STRING) USING delta")
    commit = {"txnAppId": "words", "txnVersion": "1", "userMetadata": "{}"}
    words.write.mode("append").format("delta").options(**commit).save(path)
    session.sql(f"DESCRIBE HISTORY {table} LIMIT 2").select("version", "userMetadata").collect()
    rows = session.read.format("delta").option("versionAsOf", 1).load(path)
    rows.groupBy("word").agg(F.sum("n")).collect()


def kill_jvm() -> None:
    """Kill Spark's JVM, so that nothing it computes is written any more. If only this process ended, the JVM would notice it
    and still run on for some seconds."""
    for jvm in _jvms():
        with suppress(psutil.NoSuchProcess):
            jvm.kill()


def kill_jvm_of(engine: int) -> None:
    """Kill the JVM of another engine, by its process id: it was stopped for so long that it has lost its lease. It would do that
    itself when it wakes, but until then its queries in real time would go on writing."""
    with suppress(psutil.Error):
        for child in psutil.Process(engine).children():
            if child.name() == "java":
                child.kill()


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE) and process.is_running()
    except psutil.NoSuchProcess:
        return False


def why_ended(status: int | None, heap: str, table: str) -> str:
    """What the exit status of a JVM says, in sentences. ``heap`` is its size, which is set in a table of headgate.toml."""
    if status in OUT_OF_MEMORY:
        return f"It ran out of memory, though its heap is {heap}. The setting memory in the table [{table}] makes it larger."
    if status is not None and status < 0:
        return f"Signal {-status} ended it. If nobody sent it, the machine has too little memory."
    return "It ended." if status is None else f"It ended with status {status}."


def _exit_status(process: psutil.Process) -> int | None:
    """Of a child that has ended; None if nobody knows it any more."""
    try:
        return process.wait(1.0)
    except psutil.Error:
        return None


def _jvms() -> list[psutil.Process]:
    """The JVMs that this process started itself. Those of the embedded world belong to its supervisor."""
    return [child for child in psutil.Process().children() if child.name() == "java"]


def _count(batch: DataFrame, _: int) -> None:
    batch.count()


OpenSpark = Callable[[], SparkSession]


class Spark:
    """The session, opened in the background when the engine starts, so that statements need not wait for it."""

    def __init__(self, open_: OpenSpark) -> None:
        self._open = open_
        self._guard = threading.Lock()
        self._session: SparkSession | None = None
        self._processes: list[psutil.Process] = []
        self._heap = ""  # its size, as Java writes it
        self._why: str | None = None  # it has ended; the system says it once

    def warm_up(self) -> None:
        threading.Thread(target=self.session, name="spark", daemon=True).start()

    def session(self) -> SparkSession:
        with self._guard:
            if self._session is None:
                self._session = self._open()
                self._processes = _jvms()
                self._heap = self._session.conf.get("spark.driver.memory", "1g") or ""
            return self._session

    def death(self) -> str | None:
        """Why Spark's process has ended since Spark was opened, as a sentence; None if it has not. Asks only the system, so it
        may be called often."""
        ended = [process for process in self._processes if not _runs(process)]
        if not ended:
            return None
        if self._why is None:
            self._why = why_ended(_exit_status(ended[0]), self._heap, "spark")
        return self._why

    def close(self) -> None:
        with self._guard:
            if self._session is not None:
                self._session.stop()
                self._session, self._processes = None, []


log = logging.getLogger(__name__)

POOL = "spark.scheduler.pool"
SMALL_POOL, LARGE_POOL = "small", "large"  # share the slots equally, so that large batches do not delay small ones

# A small batch is mostly planning. Adaptive execution and generated code cost more than they save there: five records
# from topic to topic took 195 ms of CPU, 152 without adaptive execution, and 133 without generated code.
SMALL_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.leafNodeDefaultParallelism": "1",  # rows that the driver gives, which would be eight tasks of a row each
}
LARGE_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


class SparkJobs:
    """One session for each thread that runs batches. A session for each task would stay in Spark's memory after it."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session
        self._of_thread = threading.local()

    @contextmanager
    def batch(self, tag: str, *, small: bool) -> Iterator[SparkSession]:
        """The session of this thread, for one batch. All its jobs have the tag and run in the pool of their size."""
        root = self._session()
        try:
            session = self._own_session(root)
            self._configure(session, small=small)
            session.sparkContext.setLocalProperty(POOL, SMALL_POOL if small else LARGE_POOL)
            session.sparkContext.addJobTag(tag)
        except Exception as error:  # a dead Spark answers every question with an error of its own
            raise SparkGone(str(error)[:200]) from error
        try:
            yield session
        finally:
            with suppress(Exception):  # Spark may be gone, and the batch has failed for that
                session.sparkContext.removeJobTag(tag)

    def cancel(self, tag: str) -> None:
        """Cancel the jobs that run now with this tag. Repeat it until the batch has ended: it may be between two jobs."""
        try:
            self._session().sparkContext.cancelJobsWithTag(tag)
        except Exception as error:  # noqa: BLE001 - a Spark that is gone runs no jobs
            log.warning("the jobs of a batch could not be cancelled: %s", str(error)[:200])

    def _own_session(self, root: SparkSession) -> SparkSession:
        if getattr(self._of_thread, "root", None) is not root:
            self._of_thread.root = root
            self._of_thread.session = root.newSession()
            self._of_thread.small = None
        session: SparkSession = self._of_thread.session
        return session

    def _configure(self, session: SparkSession, *, small: bool) -> None:
        if self._of_thread.small is not small:
            _apply(session, SMALL_SETTINGS if small else LARGE_SETTINGS)
            self._of_thread.small = small


class SmallJobs:
    """A session for small jobs outside of batches, the same one for all callers."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session
        self._guard = threading.Lock()
        self._root: SparkSession | None = None
        self._own: SparkSession | None = None

    def session(self) -> SparkSession:
        root = self._session()
        with self._guard:
            if self._own is None or self._root is not root:
                self._root, self._own = root, root.newSession()
                _apply(self._own, SMALL_SETTINGS)
            return self._own


def _apply(session: SparkSession, settings: Mapping[str, str]) -> None:
    for name in SMALL_SETTINGS.keys() - settings.keys():
        session.conf.unset(name)
    for name, value in settings.items():
        session.conf.set(name, value)
