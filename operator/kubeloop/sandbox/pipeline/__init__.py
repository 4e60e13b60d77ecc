"""The request pipeline, in the real server's order.

parse -> authenticate -> authorize -> resolve the resource -> decode -> admit -> default, prune, validate ->
store -> encode. `server.ApiServer.handle` is the whole of it; every other module is one of its steps. A step
that refuses raises `ApiFailure`; nothing else ever leaves the pipeline, and a fault of the sandbox itself
becomes a 500 that is kept for the test to see.
"""
