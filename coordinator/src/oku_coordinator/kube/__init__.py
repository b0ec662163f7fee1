"""Scales a run's workers and delay servers as pods of a Kubernetes cluster.

`scale_plan` and `pods` are rules without I/O; `cluster` speaks to the API and is the only module that imports
the client library; `dns` finds the delay servers; `scaler` ties them together, and `facade` is what the
coordinator sees. Outside a cluster none of it is imported.
"""
