"""``python -m silent_bridge``: says that it has connected, and then nothing more, like a bridge that hangs."""

from __future__ import annotations

import sys

from det_native.master.launch.ray.messages import Connected

print(Connected(address="nowhere", ray="0").model_dump_json(), flush=True)
sys.stdin.read()
