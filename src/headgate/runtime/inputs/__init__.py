"""Inputs of tasks: what reads one relation behind the port `runtime.ports.Input`. One file per kind of input."""
