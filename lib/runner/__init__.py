"""Executes the notebooks (`python -m runner`): a tool of the repository, not part of the installed library.

__main__   the command line
notebook      one notebook file and its parameters
project       the folder: presets, outputs, what is known of earlier runs
plan          what a run has to do, and how long that takes
schedule      runs notebooks, as many at a time as fit, and puts results into place
execution     one notebook through papermill
summary       what a run says of itself when it ends
reproduction  whether a run reproduces the committed results
comparison    printed results, numbers with a tolerance
documents     what the pages of docs/ quote from the ledgers
tables        tables of results, and records of large runs and of other roots
files         writing without torn files
"""
