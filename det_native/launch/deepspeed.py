"""Starts a command of DeepSpeed on each slot: ``deepspeed.init_distributed()`` takes what ``torchrun`` sets.

``python3 -m det_native.launch.deepspeed [[ARGUMENTS OF TORCHRUN...] --] python3 train.py``
"""

from __future__ import annotations

from det_native.launch.torch_distributed import main

if __name__ == "__main__":
    main("det_native.launch.deepspeed")
