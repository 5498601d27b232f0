"""What else Python has, in notebooks with PyTorch: annotations, patterns, comprehensions, await."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a match statement, a walrus and f-strings",
        """
$imports
kind = "mse"

def criterion(output, target):
    match kind:
        case "mse":
            return F.mse_loss(output, target)
        case "mae" | "l1":
            return F.l1_loss(output, target)
        case _:
            raise ValueError(f"{kind!r} is no loss, {output.shape=}")
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    if (loss := criterion(model(batch[0]), batch[1])) > 0:
        context.backward(loss)
        context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (('kind = "mse"', 'kind = "mae"'), (") > 0:", ") > 1:"), ("return F.mse_loss", "return 2 * F.mse_loss")),
    ),
    Shape(
        "comprehensions, zip and nested functions",
        """
$imports

def norm(tensors):
    return [torch.clamp(t, 0, 1) for t in tensors]

def metrics(outputs, targets):
    def rate(bound):
        return sum(float(abs(o - t) < bound) for o, t in zip(outputs, targets)) / len(targets)

    return {f"within_{bound}": rate(bound) for bound in (0.1, 0.5)}
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    x, y = norm(batch)
    output = model(x)
    loss = sum(F.mse_loss(a, b) for a, b in zip(output, y))
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss, **metrics(output.detach(), y)}
# %%
$fit
""",
        (("torch.clamp(t, 0, 1)", "torch.clamp(t, 0, 2)"), ("(0.1, 0.5)", "(0.1, 0.9)")),
    ),
    Shape(
        "a default argument that is an array",
        """
$imports

def normed(x, mean=np.array([0.5, 0.5], "float32"), std=torch.ones(2)):
    return (x - torch.from_numpy(mean)) / std
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(normed(batch[0])), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("np.array([0.5, 0.5]", "np.array([0.4, 0.5]"), ("std=torch.ones(2)", "std=2 * torch.ones(2)")),
    ),
    Shape(
        "await at the top level",
        """
$imports
import asyncio

async def load(n):
    await asyncio.sleep(0)
    return torch.arange(2.0 * n).reshape(n, 2)
# %%
x = await load(16)
parts = await asyncio.gather(load(2), load(3))
dataset = TensorDataset(x, torch.ones(16, 1) * len(parts))
# %%
$model
# %%
$step
# %%
$fit
""",
        (("torch.arange(2.0 * n)", "torch.arange(1, 2.0 * n + 1)"),),
    ),
    Shape(
        "a main function behind __name__",
        """
$imports
import det_native as det

SEED = 7

def main(epochs=1):
    torch.manual_seed(SEED)
    dataset = TensorDataset(torch.randn(16, 2), torch.ones(16, 1))
    context = det.experimental.pytorch.init()
    model = context.wrap_model(nn.Linear(2, 1))
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))

    def train_batch(batch, epoch_idx, batch_idx):
        loss = F.mse_loss(model(batch[0]), batch[1])
        context.backward(loss)
        context.step_optimizer(optimizer)
        return {"loss": loss}

    context.fit(train_loader=DataLoader(dataset, batch_size=4), train_batch=train_batch, epochs=epochs)

if __name__ == "__main__":
    main()
""",
        (("SEED = 7", "SEED = 8"), ("lr=0.1", "lr=0.2"), ("F.mse_loss(", "F.l1_loss(")),
    ),
    Shape(
        "a callback with the time and a path",
        """
$imports
import os, time
import det_native as det
from det_native.pytorch import PyTorchCallback

class Timer(PyTorchCallback):
    def __init__(self, out="timing", every=2):
        self.out = os.path.join(os.getcwd(), out)
        self.every = every
        self.start = time.time()

    def on_training_epoch_start(self, epoch_idx):
        self.start = time.time()

    def on_validation_end(self, metrics):
        print(self.out, np.round(time.time() - self.start, 2), metrics)
# %%
$data
# %%
$model
# %%
$step
# %%
$wrap
loader = DataLoader(dataset, batch_size=4)
context.fit(train_loader=loader, train_batch=train_batch, epochs=1, callbacks={"timer": Timer(every=3)})
""",
        (("Timer(every=3)", "Timer(every=4)"), ("time.time() - self.start, 2", "time.time() - self.start, 4")),
    ),
    Shape(
        "a model and a loader that functions make from a dictionary",
        """
$imports
config = {"model": {"hidden": [4, 4], "act": "relu"}, "data": {"n": 16, "batch": 4}, "seed": 3}
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}

def build_model(hidden, act):
    sizes = [2, *hidden, 1]
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), ACTIVATIONS[act]()]
    return nn.Sequential(*layers[:-1])

def build_loader(n, batch):
    return DataLoader(TensorDataset(torch.randn(n, 2), torch.zeros(n, 1)), batch_size=batch, shuffle=True)
# %%
torch.manual_seed(config["seed"])
model = build_model(**config["model"])
train_loader = build_loader(**config["data"])
optimizer = torch.optim.SGD(model.parameters(), lr=config.get("lr", 0.1))
# %%
$step
# %%
$wrap
context.fit(train_loader=train_loader, train_batch=train_batch, epochs=config.get("epochs", 1))
""",
        (('"act": "relu"', '"act": "gelu"'), ('"seed": 3', '"seed": 4'), ('"hidden": [4, 4]', '"hidden": [4, 5]')),
    ),
    Shape(
        "a step of a trainer object",
        """
$imports

class Trainer:
    def __init__(self, model, optimizer, criterion=None, l2=0.0):
        self.model, self.optimizer = model, optimizer
        self.criterion = criterion or nn.MSELoss()
        self.l2 = l2
        self.losses = []

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        loss = self.criterion(self.model(x), y) + self.l2 * sum(p.pow(2).sum() for p in self.model.parameters())
        self.losses.append(loss.item())
        context.backward(loss)
        context.step_optimizer(self.optimizer)
        return {"loss": loss}
# %%
$data
# %%
$model
# %%
$wrap
trainer = Trainer(model, optimizer, l2=1e-3)
context.fit(train_loader=DataLoader(dataset, batch_size=4), train_batch=trainer.train_batch, epochs=1)
""",
        (("l2=1e-3)", "l2=1e-2)"), ("p.pow(2).sum()", "p.abs().sum()"), ("nn.MSELoss()", "nn.SmoothL1Loss()")),
    ),
    Shape(
        "a loop of one's own over context.train()",
        """
$imports
import det_native as det

context = det.experimental.pytorch.init()
# %%
$data
# %%
$model
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(optimizer)
# %%
running = 0.0
for batch in context.train(DataLoader(dataset, batch_size=4), epochs=1):
    loss = F.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    running += loss.item()
""",
        (("torch.ones(16", "torch.zeros(16"), ("manual_seed(1)", "manual_seed(9)")),
    ),
)
