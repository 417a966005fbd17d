"""Executes the notebooks (`python -m runner`): a tool of the repository, not part of the installed library.

__main__   the command line
notebook   one notebook file and its parameters
project    the folder: presets, outputs, what is known of earlier runs
schedule   what runs, in which order, how many at a time
execution  one notebook through papermill
tables     results tables from the ledgers
precise    the table of large runs
seeds      the table of ten other roots
records    what such long runs found, kept in the repository
"""
