"""A loop over ``context.epochs()``: plain PyTorch between two of its epochs."""
