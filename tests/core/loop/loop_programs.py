"""Notebooks that train with other frameworks; lines that end in ``#!det`` are not there in plain code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import sklearn  # noqa: F401 (sets variables of the process)

#: The loop, in plain code.
_PLAIN = ((r"context\.epochs\((\d+)\)", r"range(\1)"), (r"context\.searcher\.operations\(\)", "[None]"))


@dataclass(frozen=True)
class LoopProgram:
    """A notebook.

    Attributes
    ----------
    setup, objects, loop : str
        Its cells; ``init()`` stands before that of the objects.
    numbers : str
        What is compared: plain values.
    length : dict
        For the configuration.
    """

    setup: str
    objects: str
    loop: str
    numbers: str
    length: dict[str, int]

    def plainly(self) -> Any:
        """Return the numbers of the plain notebook."""
        text = "\n".join([self.setup, self.objects, self.loop])
        text = re.sub(r"^.*#!det\n", "", text, flags=re.MULTILINE)
        for pattern, plain in _PLAIN:
            text = re.sub(pattern, plain, text)
        names: dict[str, Any] = {"__name__": "__main__", "stops": ""}
        exec(text, names)  # noqa: S102 (a program of this file)
        return eval(self.numbers, names)  # noqa: S307 (likewise)


SCIKIT_LEARN = LoopProgram(
    setup="""
import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

generator = np.random.default_rng(0)
x = generator.normal(size=(200, 4))
y = (x[:, 0] + 0.3 * generator.normal(size=200) > 0).astype(int)
""",
    objects="""
models = {"linear": SGDClassifier(loss="log_loss", random_state=0), "net": MLPClassifier((6,), random_state=1)}
linear, net, losses, best = *models.values(), [], None
""",
    loop="""
for epoch in context.epochs(5):
    chosen = generator.permutation(len(x))[:50]
    for model in models.values():
        model.partial_fit(x[chosen], y[chosen], classes=[0, 1])
    if str(epoch) in stops: gate(port, epoch) #!det
    losses.append(float(models["net"].loss_))
    if best is None or losses[-1] < best[0]:
        best = losses[-1], epoch
    context.report(loss=losses[-1]) #!det
""",
    numbers="[losses, *best, linear is models['linear'], linear.coef_.tolist(), net.coefs_[0].tolist(), epoch]",
    length={"epochs": 5},
)

XGBOOST = LoopProgram(
    setup="""
import numpy as np
import xgboost

generator = np.random.default_rng(0)
x = generator.normal(size=(200, 4))
train = xgboost.DMatrix(x, label=(x[:, 0] + 0.3 * generator.normal(size=200) > 0).astype(int))
parameters = {"max_depth": 2, "objective": "binary:logistic", "nthread": 1}

class Report(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        rounds.append(epoch)
        if str(epoch) in stops: gate(port, epoch) #!det
        loss = evals_log["train"]["logloss"][-1] #!det
        context.train.report_training_metrics(steps_completed=epoch + 1, metrics={"logloss": loss}) #!det
        return False
""",
    objects="""
rounds, result = [], {}
booster = old = xgboost.train(parameters, train, 1)
""",
    loop="""
for op in context.searcher.operations():
    length = 6
    length = op.length #!det
    booster.update(train, 1)
    new = xgboost.train(
        parameters, train, length, evals=[(train, "train")], callbacks=[Report()], evals_result=result, verbose_eval=0
    )
    op.report_completed(result["train"]["logloss"][-1]) #!det
""",
    numbers="[rounds, result, old is booster, new.get_dump(), booster.get_dump(), new.predict(train).tolist()]",
    length={"batches": 6},
)

JAX = LoopProgram(
    setup="""
import numpy as np
import jax
import jax.numpy as jnp

x = jnp.asarray(np.random.default_rng(0).normal(size=(64, 3)))
y = jnp.sin(x).sum(1)

@jax.jit
def step(params, x, y):
    loss_of = lambda params: jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)
    loss, gradients = jax.value_and_grad(loss_of)(params)
    return jax.tree_util.tree_map(lambda value, gradient: value - 0.1 * gradient, params, gradients), loss
""",
    objects="""
key = jax.random.PRNGKey(0)
params = {"w": jax.random.normal(key, (3, 8)), "v": jnp.zeros(8)}
losses = []
""",
    loop="""
for epoch in context.epochs(5):
    for _ in range(4):
        key, own = jax.random.split(key)
        chosen = jax.random.permutation(own, 64)[:16]
        params, loss = step(params, x[chosen], y[chosen])
    if str(epoch) in stops: gate(port, epoch) #!det
    losses.append(float(loss))
    context.train.report_validation_metrics(steps_completed=4 * (epoch + 1), metrics={"loss": loss}) #!det
""",
    numbers="[losses, params['w'].tolist(), params['v'].tolist(), key.tolist(), epoch]",
    length={"epochs": 5},
)
