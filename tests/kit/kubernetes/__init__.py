"""A real Kubernetes cluster, releases of the chart in it, and runs over their pods."""
