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
