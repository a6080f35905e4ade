"""Contexts: small whole numbers that summarise what came before a cell; the trees of a history split on them."""

# A context has a *kind* and mostly a column. It is a whole number from 0 to 127. Code 0 is a missing cell.

POSITION = 0
"""Number of the row in the history, from 0; see `count_bin`."""
LENGTH = 1
"""Number of rows of the history."""
REMAINING = 2
"""Rows from this one to the end, this one included."""
HEAD = 3
"""Code of a column that is constant within the subject."""
NOW = 4
"""Code of an earlier column of the same row."""
CHANGED = 5
"""Change of an earlier column of the same row since the row before: of numbers the difference, else 1 same, 2 other."""
PREVIOUS = 6
"""Code in the row before."""
LAG2 = 7
"""Code two rows before; in the second row that of the first."""
FIRST = 8
"""Code in the first row."""
BACK = 9
"""The last code that differed from the previous one; the previous one if none did."""
KNOWN = 10
"""The last code that was not missing; 0 if none was."""
CHANGES = 11
"""Number of changes so far."""
RUN = 12
"""Rows for which the previous code has stood, less one."""
MEAN = 13
"""Mean of the codes so far, rounded; 0 if all are missing."""
LOW = 14
"""Least code so far; 0 if all are missing."""
HIGH = 15
"""Greatest code so far."""
DISTINCT = 16
"""Number of distinct codes so far."""
FROM_FIRST = 17
"""Previous code less the first one."""
FROM_LAG2 = 18
"""Previous code less that of two rows before."""
FROM_MEAN = 19
"""Previous code less the mean."""
LAST_CHANGE = 20
"""Code of the change of a column of changes in the row before; 0 if unknown."""

EXPECTED = 21
"""The code that the earlier columns of the row suggest: of columns with an expectation tree."""
FROM_EXPECTED = 22
"""Previous code less the expected one."""
EXCESS = 23
"""Mean of code less expected code so far, rounded."""
LAST_EXCESS = 24
"""Code less expected code in the last row whose cell was not missing."""
FROM_USUAL = 25
"""Previous code less the usual one, which is the expected one plus the mean excess."""

OF_ROW = (POSITION, LENGTH, REMAINING)
"""Contexts without a column."""
N_KINDS = 26
"""Number of kinds."""
N_VALUES = 128
"""Values of a context: 0 to 127."""
CENTER = 64
"""What a difference of 0 is written as; 0 is kept for unknown differences."""
MAX_CODES = 63
"""Codes of a column beside that of a missing cell: the set of codes seen is then one word of 64 bits."""

# ---- Classes of codes: what the ratio trees of a cell multiply.

SOURCE = 1
"""0 as before, 1 as before the last change, 2 another code seen, 3 a new code."""
OFFSET_FIRST = 2
"""Steps from the first code, in 16 classes; 16: the cell is missing."""
OFFSET_MEAN = 3
"""Steps from the mean of the codes so far."""
OFFSET_USUAL = 5
"""Steps from the usual code."""
CODE = 4
"""Every code of values is a class: of trees that look at other columns alone."""
VALUE = 0
"""Every code is a class of its own: the first tree of a cell."""

OFFSET_EDGES = (-25, -12, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 7, 12, 25)
"""Last offset of each class of offsets but the last."""
N_CLASSES = {SOURCE: 4, OFFSET_FIRST: 17, OFFSET_MEAN: 17, OFFSET_USUAL: 17, CODE: 64}
"""Number of classes, at most."""
