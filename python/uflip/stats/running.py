"""The running mean of a run: the lines through the traces in the paper's figure 3."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def running_mean(x: ArrayLike) -> NDArray[np.float64]:
    """Return the mean of the first n values, for every n.

    Parameters
    ----------
    x
        Values (n,), for example response times [ns].

    Returns
    -------
    ndarray
        Means (n,), in the unit of `x`; the last one is the mean of the whole.

    Examples
    --------
    >>> running_mean([4, 2, 6]).tolist()
    [4.0, 3.0, 4.0]
    """
    values = np.asarray(x, dtype=np.float64)
    return np.cumsum(values) / np.arange(1, len(values) + 1)
