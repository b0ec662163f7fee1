"""The report of a run: its history goes in, one self-contained HTML file comes out.

`page` puts the sections together; all charts over time share the axis and the columns of `timeline`.
`exports` and `hgrm` write the same history for other tools.
"""
