"""JAX: arrays and keys, which never change."""

from __future__ import annotations

from det_native.heap.edges import BY_NAME
from det_native.heap.kinds.instances import FixedKind

for _name in ("jaxlib.xla_extension.ArrayImpl", "jaxlib._jax.ArrayImpl", "jax._src.prng.PRNGKeyArray"):
    BY_NAME[_name] = FixedKind
