"""Training steps of PyTorch: schedules, clipping, averages of weights, losses, several models."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a LambdaLR",
        """
$imports
# %%
$data
# %%
$model
sched = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.95 ** epoch)
# %%
def train_batch(batch, epoch_idx, batch_idx):
    inputs, targets = batch
    loss = F.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    sched.step()
    return {"loss": loss}
# %%
$fit
""",
        (("0.95 ** epoch", "0.5 ** epoch"),),
    ),
    Shape(
        "an exponential average of weights",
        """
$imports
import copy

class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for name, value in model.state_dict().items():
            self.shadow[name].mul_(self.decay).add_(value, alpha=1 - self.decay)
# %%
$data
# %%
$model
ema = EMA(model)
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    ema.update(model)
    return {"loss": loss}
# %%
$fit
""",
        (("decay=0.99", "decay=0.9"), ("alpha=1 - self.decay", "alpha=self.decay")),
    ),
    Shape(
        "a teacher that is distilled",
        """
$imports
# %%
$data
# %%
torch.manual_seed(5)
teacher = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1)).eval()
T = 4.0
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    inputs, targets = batch
    with torch.no_grad():
        soft = teacher(inputs) / T
    output = model(inputs)
    loss = 0.5 * F.mse_loss(output, targets) + 0.5 * F.mse_loss(output / T, soft)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("manual_seed(5)", "manual_seed(6)"), ("T = 4.0", "T = 2.0")),
    ),
    Shape(
        "a class of a loss with settings",
        """
$imports

class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=None, reduction="mean"):
        super(FocalLoss, self).__init__()
        self.gamma, self.alpha, self.reduction = gamma, alpha, reduction

    def forward(self, inputs, targets):
        p = torch.sigmoid(inputs)
        bce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        loss = bce * ((1 - p_t) ** self.gamma)
        return loss.mean() if self.reduction == "mean" else loss.sum()
# %%
$data
criterion = FocalLoss(gamma=1.5)
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = criterion(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("gamma=1.5", "gamma=3.0"), ("(1 - p_t) **", "p_t **")),
    ),
    Shape(
        "a validation loader and its function",
        """
$imports
# %%
$data
held_out = TensorDataset(torch.ones(8, 2), torch.zeros(8, 1))
# %%
$model
# %%
$step

@torch.no_grad()
def accuracy(output, target):
    return ((output - target).abs() < 0.5).float().mean()

def evaluate_batch(batch):
    output = model(batch[0])
    return {"val_loss": F.mse_loss(output, batch[1]), "accuracy": accuracy(output, batch[1])}
# %%
$wrap
context.fit(
    train_loader=DataLoader(dataset, batch_size=4),
    validation_loader=DataLoader(held_out, batch_size=8),
    train_batch=train_batch,
    evaluate_batch=evaluate_batch,
    epochs=1,
)
""",
        (
            ("torch.zeros(8, 1)", "torch.ones(8, 1)"),
            ("< 0.5", "< 0.1"),
            ("DataLoader(dataset, batch_size=4)", "DataLoader(dataset, batch_size=4, shuffle=True)"),
        ),
    ),
)
