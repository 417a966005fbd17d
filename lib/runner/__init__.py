"""Executes the notebooks (`python -m runner`): a tool of the repository, not part of the installed library.

__main__   the command line
notebook      one notebook file and its parameters
project       the folder: presets, outputs, what is known of earlier runs
schedule      what runs, in which order, how many at a time
execution     one notebook through papermill
reproduction  whether a run reproduces the committed results
comparison    printed results, numbers with a tolerance
tables        tables of results, and records of large runs and of ten other roots
files         writing without torn files
"""
