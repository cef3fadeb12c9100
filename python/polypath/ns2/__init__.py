"""ns-2 (Debian package ns2, with the SCTP module of the University of Delaware) as a backend.

A scenario is written as Tcl and run by ns-2; its traces are converted to the form of our own
simulator's results; see ``docs/ns2.md``.
"""
