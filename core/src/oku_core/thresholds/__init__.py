"""Whether a run has passed: thresholds, judged by the account of the run or by some of its seconds in a row.

Everything here is pure. `judging` gives the verdicts, `counting` the law behind them: a threshold on a share,
a number or a quantile of requests is a count, which is lost or won at a definite moment.
"""
