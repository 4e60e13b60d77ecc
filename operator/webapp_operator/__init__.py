"""The WebApp operator: a container image and a number of replicas become a Deployment, kept that way.

`types` declares the WebApp, `validation` finds what its schema cannot, `resources` says what belongs to it,
`lifecycle` says how it is doing. All of these are pure: no I/O, no clock, no threads.
"""
