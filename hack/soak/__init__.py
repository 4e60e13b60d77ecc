"""Soaks: an hour of a behaviour's life under seeded faults, in seconds, again and again with other seeds.

`simulation` is the world they happen in, `network` what lies between a process and the sandbox, `faults` what
goes wrong there. Each behaviour is a module with a `soak(seed, minutes)`, which says what it promises:
`workqueue`, `cache`, `election`, `webapps`. ``make soak`` runs many seeds, ``make test`` a few.
"""
