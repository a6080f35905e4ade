"""Products of matrices in float32."""

from __future__ import annotations

import numpy as np

of_finite = np.errstate(invalid="ignore")
"""Decorates functions that multiply finite numbers: OpenBLAS says "invalid value" of some such products, by chance."""
