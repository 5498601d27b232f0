"""PyTorch."""

from __future__ import annotations

from det_native.frameworks.description import Description

DESCRIPTION = Description(
    name="torch",
    title="PyTorch",
    module="torch",
    install="det-native[torch]",
    api="det_native.pytorch",
    checkpoint_format="cloudpickle",
    harness="det_harness.frameworks.torch.harness:TorchHarness",
    trial_class="det_native.pytorch.trial:PyTorchTrial",
    calls=("det_native.pytorch.native_call:TorchCall", "det_native.pytorch.epochs_call:TorchEpochsCall"),
    init="det_native.experimental.pytorch",
    context_calls=frozenset({"fit", "train", "epochs"}),
    variables=("TORCH", "PYTORCH_"),
    gradient_means=("torch", "horovod"),
    gpu_package="torch",
    gpu_index="https://download.pytorch.org/whl",
    # uv asks the driver, and takes the build that fits it.
    gpu_remedy=(
        "{python} -m pip install uv && {python} -m uv pip install --python {python} --torch-backend auto "
        "--reinstall-package torch torch=={version}"
    ),
)
