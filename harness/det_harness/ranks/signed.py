"""Objects on their way between ranks: pickled, and signed with a secret that only the ranks have.

The ports of a group are open to every process of the machine, and unpickling runs code.
"""

from __future__ import annotations

import hmac
import pickle
from typing import Any

from det_native.errors import RankLostError

_DIGEST = "sha256"
_DIGEST_BYTES = 32


def packed(value: Any, secret: bytes) -> bytearray:
    """Return a value as signed bytes."""
    try:
        content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle  # for classes and functions that no other process can import

        content = cloudpickle.dumps(value)
    return bytearray(hmac.digest(secret, content, _DIGEST) + content)


def unpacked(signed: bytes, secret: bytes) -> Any:
    """Return the value.

    Raises
    ------
    RankLostError
        If no rank has signed it.
    """
    digest, content = signed[:_DIGEST_BYTES], signed[_DIGEST_BYTES:]
    if not hmac.compare_digest(digest, hmac.digest(secret, content, _DIGEST)):
        raise RankLostError(
            "A message to this rank is not signed by a rank of this trial: another program has connected to the "
            "trial's port. The message was not read; the trial continues from its latest checkpoint."
        )
    return pickle.loads(content)
