"""Targets of tasks: what writes behind the port `runtime.ports.Target`. One file per kind of target."""
