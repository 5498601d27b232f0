"""A look at models: using one changes nothing, and every attribute but the named caches counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from det_native.capture.watch import Effects, Watch

pytestmark = pytest.mark.slow
X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y = X.sum(axis=1) > 0


@pytest.fixture(scope="module")
def keras() -> Any:
    """Return Keras, of either generation."""
    return pytest.importorskip("keras")


def compiled(keras: Any) -> Any:
    """Return a small model, used once."""
    layers = [keras.layers.Input((4,)), keras.layers.Dense(3, name="first"), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", metrics=["mae"])
    model.evaluate(X, Y, verbose=0)
    return model


def effects_of(namespace: dict[str, Any], source: str) -> Effects:
    """Return what is seen of a cell."""
    watch = Watch()
    watch.begin(namespace, (), source)
    exec(source, namespace)  # noqa: S102 (the test's own code)
    return watch.end(namespace, (), source)


def test_training_another_model_and_looking_at_one_changes_nothing_of_it(keras: Any) -> None:
    names = {"model": compiled(keras), "other": compiled(keras), "x": X, "y": Y}
    for source, changed in (
        ("model.summary(print_fn=lambda *lines, **how: None)", set()),
        ("model.predict(x, verbose=0)", set()),
        ("[layer.get_config() for layer in model.layers]", set()),
        ("model(x[:2])", set()),
        ("other.fit(x, y, epochs=1, verbose=0)", {"other"}),
        ("model.fit(x, y, epochs=1, verbose=0)", {"model"}),
        ("model.layers[-1].trainable = False", {"model"}),
        ("model.layers[0].kernel.assign(model.layers[0].kernel * 2)", {"model"}),
        ("model.optimizer.learning_rate = 0.5", {"model"}),
        ("model.set_weights([w * 0 for w in model.get_weights()])", {"model"}),
    ):
        effects = effects_of(names, source)
        assert effects.changed == changed, source
        assert not effects.unclear, source


def test_every_attribute_of_a_torch_module_and_its_optimizer_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "inductor"))
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(3, 2)).sum().backward()
    names: dict[str, Any] = {"net": net, "optimizer": optimizer}
    for part in (net, net[0], net[1], optimizer):
        for name in [*vars(part)]:
            root = optimizer if part is optimizer else net
            kept = vars(part)[name]
            effects = effects_of({"root": root, "part": vars(part), "name": name}, "part[name] = object()")
            assert effects.changed == {"root", "part"}, name
            vars(part)[name] = kept
    assert not effects_of(names, "net.eval; list(net.parameters()); str(net)").changed
    assert effects_of(names, "net[0].weight.data[0, 0] = 5").changed == {"net", "optimizer"}
