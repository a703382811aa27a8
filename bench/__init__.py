"""What Headgate promises about speed and agreement, measured against peers in the same run. `make bench` runs it.

In: nothing but the repository and, for two of the benchmarks, the embedded world's jars. Out: tables on the terminal,
each row ours beside a peer, their ratio, and the promise with whether it was kept. A benchmark never fails because
something was slow: a shared machine makes wall time noise, so CPU time and the best of several rounds are shown.
One file per topic; each has `run(size)` and says in its docstring what it measures. `figures` is what they share.
May import all of `headgate`, and the generators in `tests`.
"""
