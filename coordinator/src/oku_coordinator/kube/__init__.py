"""The coordinator's Kubernetes part: the workers and delay servers of a run as pods.

`plan` and `pods` are rules without I/O, `cluster` speaks to the API and is the only module that imports the
client library, `scaler` ties them together, `servers` finds the delay servers, `part` is the door for the
coordinator. Nothing of it is imported outside a cluster.
"""
