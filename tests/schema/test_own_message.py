"""What an error itself says, out of messages as frameworks make them; and what to do when memory ran out."""

from __future__ import annotations

import pytest

from det_native.schema.own_message import is_out_of_memory, memory_advice, own_message, with_advice

IN_USER_CODE = """in user code:

    File "/env/keras/src/engine/training.py", line 1401, in train_function  *
        return step_function(self, iterator)
    File "/env/keras/src/engine/input_spec.py", line 298, in assert_input_compatibility
        raise ValueError(

    ValueError: Input 0 of layer "dense" is incompatible: expected shape=(None, 5), found shape=(None, 4)
"""

IN_A_LAYER = """in user code:

    File "/env/keras/src/engine/training.py", line 1080, in train_step
        y_pred = self(x, training=True)
    File "/env/keras/src/utils/traceback_utils.py", line 70, in error_handler
        raise e.with_traceback(filtered_tb) from None

    ValueError: Exception encountered when calling layer 'tower' (type Tower).

    Cannot iterate over a shape with unknown rank.

    Call arguments received by layer 'tower' (type Tower):
      • inputs=tf.Tensor(shape=<unknown>, dtype=float32)
"""

IN_THE_GRAPH = """Graph execution error:

Detected at node softmax/Cross defined at (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main

  File "/env/keras/src/backend.py", line 5775, in sparse_categorical_crossentropy

Received a label value of 7 which is outside the valid range of [0, 3).
\t [[{{node softmax/Cross}}]] [Op:__inference_train_function_527]"""

IN_A_WORKER = """Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/env/torch/utils/data/_utils/worker.py", line 351, in _worker_loop
    data = fetcher.fetch(index)  # type: ignore
           ^^^^^^^^^^^^^^^^^^^^
  File "data.py", line 4, in __getitem__
    raise KeyError("label")
KeyError: 'label'
"""


class WorkersError(Exception):
    """As PyTorch makes one anew, whose text is not quoted."""


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (
            ValueError(IN_USER_CODE),
            'Input 0 of layer "dense" is incompatible: expected shape=(None, 5), found shape=(None, 4)',
        ),
        (ValueError(IN_A_LAYER), "Cannot iterate over a shape with unknown rank."),
        (RuntimeError(IN_THE_GRAPH), "Received a label value of 7 which is outside the valid range of [0, 3)."),
        (WorkersError(IN_A_WORKER), "KeyError: 'label'"),
        (ValueError(IN_A_WORKER.replace("KeyError", "ValueError")), "'label'"),
        (RuntimeError("{{function_node f}} OOM in [8,4] [Op:MatMul] name: "), "OOM in [8,4]"),
        (ValueError("two\n  lines"), "two\n  lines"),
        (ValueError(""), ""),
        (ValueError("in user code:\n\n"), "in user code:"),
    ],
)
def test_the_last_own_message(error: Exception, own: str) -> None:
    assert own_message(error) == own


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch's."""


class ResourceExhaustedError(Exception):
    """Named as TensorFlow's."""


@pytest.mark.parametrize(
    ("error", "ran_out"),
    [
        (MemoryError(), True),
        (OutOfMemoryError("CUDA"), True),
        (ResourceExhaustedError("OOM"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (OSError("[Errno 12] Cannot allocate memory; out of memory"), True),
        (ValueError("out of memory"), False),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_memory_that_ran_out_is_known_by_all_names_of_it(error: Exception, ran_out: bool) -> None:
    assert is_out_of_memory(error) is ran_out
    explained = RuntimeError("explained")
    explained.__cause__ = error
    assert is_out_of_memory(explained) is ran_out


def test_the_advice_says_the_batch_size_and_a_smaller_one() -> None:
    assert "The batch size is 64 (global_batch_size): try a smaller one, such as 32." in memory_advice(64)
    assert "The batch size is 64, 16 on each of 4 slots" in memory_advice(64, 4)
    assert "such as" not in memory_advice(1)
    assert "Try smaller batches" in memory_advice(None)
    said = with_advice("CUDA out of memory. Tried to allocate 2 GiB. GPU 0 has more.", "Try less.")
    assert said == "CUDA out of memory. Try less.\nTried to allocate 2 GiB. GPU 0 has more."
    assert with_advice("", "Try less.") == "Try less."
    assert with_advice("no stop", "Try less.") == "no stop. Try less."
