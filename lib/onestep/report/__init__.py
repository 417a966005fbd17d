"""What a notebook hands over.

figures   pictures in one style, with the numbers behind them
verdicts  rows of claim against measurement, in a table and a ledger
session   the folder, the parameters and the names they share
"""

from .figures import COLORS, log_ticks, points, save, settings, style
from .session import directory
from .verdicts import (
    HEAD,
    LEVEL,
    ROWS,
    Verdicts,
    cells,
    describe,
    digits,
    folded,
    label,
    markdown_table,
    plain_table,
    resolution,
    shown,
    table,
)
