"""The services of an embedded world, one module each.

Each module has one class with the methods of ``service.Service``: how to prepare and launch the program, how to see
whether it serves, and the address for clients. ``service.ServiceRunner`` calls them; no service knows another.
"""
