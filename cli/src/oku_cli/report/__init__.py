"""The report of a run: a dossier goes in, one HTML file that needs nothing else comes out.

`page` puts the sections together; what is drawn over time shares the axis and the columns of `timeline`.
`exports` and `hgrm` write the same dossier for other tools.
"""
