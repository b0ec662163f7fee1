"""Scales a run's workers and delay servers as pods of a Kubernetes cluster.

`scale_plan` and `pods` are rules without I/O. `cluster` calls the API and is the only module that imports the
client library; `dns` finds the delay servers; `scaler` combines them, behind `facade`. Outside a cluster,
none of it is imported.
"""
