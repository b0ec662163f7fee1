"""The engines, which send the requests of a worker, behind one small interface."""
