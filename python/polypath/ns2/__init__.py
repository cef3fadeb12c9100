"""ns-2 (Debian package ns2, with the SCTP module of the University of Delaware) beside polypath.

A scenario is written as Tcl, run there, and read back as what our own simulator gives; see
``docs/ns2.md``.
"""
