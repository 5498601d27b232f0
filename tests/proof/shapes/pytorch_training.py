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
        "a OneCycleLR",
        """
$imports
from torch.optim.lr_scheduler import OneCycleLR
EPOCHS, BATCH = 2, 4
# %%
$data
loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)
# %%
$model
scheduler = OneCycleLR(optimizer, max_lr=0.1, steps_per_epoch=len(loader), epochs=EPOCHS)
# %%
$wrap
def train_batch(batch, epoch_idx, batch_idx):
    inputs, targets = batch
    loss = F.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    scheduler.step()
    return {"loss": loss}

context.fit(train_loader=loader, train_batch=train_batch, epochs=EPOCHS)
""",
        (("max_lr=0.1", "max_lr=0.3"),),
    ),
    Shape(
        "clipped gradients and a cosine by hand",
        """
$imports
import math

def cosine(step, total=100, low=1e-3, high=1e-1):
    return low + 0.5 * (high - low) * (1 + math.cos(math.pi * step / total))
# %%
$data
# %%
$model
# %%
max_norm = 1.0

def train_batch(batch, epoch_idx, batch_idx):
    for group in optimizer.param_groups:
        group["lr"] = cosine(batch_idx)
    loss = F.smooth_l1_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer, clip_grads=lambda p: torch.nn.utils.clip_grad_norm_(p, max_norm))
    return {"loss": loss}
# %%
$fit
""",
        (("max_norm = 1.0", "max_norm = 5.0"), ("total=100", "total=10"), ("clip_grad_norm_(p", "clip_grad_value_(p")),
    ),
    Shape(
        "autocast around the forward pass",
        """
$imports
use_amp = False
device_type = "cuda" if torch.cuda.is_available() else "cpu"
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    inputs, targets = batch
    with torch.autocast(device_type=device_type, dtype=torch.bfloat16, enabled=use_amp):
        loss = F.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("use_amp = False", "use_amp = True"), ("torch.bfloat16", "torch.float16")),
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
        "a loss with weights of classes as a tensor",
        """
$imports
# %%
torch.manual_seed(0)
labels = torch.arange(16) % 3
dataset = TensorDataset(torch.randn(16, 2), labels)
counts = torch.bincount(labels)
class_weights = 1.0 / counts.float()
criterion = nn.CrossEntropyLoss(weight=class_weights)
# %%
model = nn.Linear(2, 3)
optimizer = torch.optim.Adam(model.parameters())
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = criterion(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("1.0 / counts.float()", "2.0 / counts.float() ** 2"),),
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
    Shape(
        "a generator and a discriminator",
        """
$imports

latent = 3

def block(n_in, n_out, normalize=True):
    layers = [nn.Linear(n_in, n_out)]
    if normalize:
        layers.append(nn.BatchNorm1d(n_out, 0.8))
    layers.append(nn.LeakyReLU(0.2))
    return layers

torch.manual_seed(0)
generator = nn.Sequential(*block(latent, 8, normalize=False), *block(8, 8), nn.Linear(8, 2), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
adversarial = torch.nn.BCEWithLogitsLoss()
# %%
import det_native as det
context = det.experimental.pytorch.init()
generator, discriminator = context.wrap_model(generator), context.wrap_model(discriminator)
optimizer_g, optimizer_d = context.wrap_optimizer(optimizer_g), context.wrap_optimizer(optimizer_d)

def train_batch(batch, epoch_idx, batch_idx):
    (real,) = batch
    fake = generator(torch.randn(len(real), latent))
    g_loss = adversarial(discriminator(fake), torch.ones(len(real), 1))
    context.backward(g_loss)
    context.step_optimizer(optimizer_g)
    d_loss = adversarial(discriminator(real), torch.ones(len(real), 1))
    context.backward(d_loss)
    context.step_optimizer(optimizer_d)
    return {"loss": g_loss, "d_loss": d_loss}

context.fit(train_loader=DataLoader(TensorDataset(torch.rand(16, 2)), batch_size=8), train_batch=train_batch, epochs=1)
""",
        (
            ("nn.LeakyReLU(0.2), nn.Linear", "nn.LeakyReLU(0.3), nn.Linear"),
            ("(0.5, 0.999)", "(0.9, 0.999)"),
            ("normalize=False", "normalize=True"),
        ),
    ),
    Shape(
        "an LSTM with an embedding",
        """
$imports

class Tagger(nn.Module):
    def __init__(self, vocab_size, dim=4, hidden=6):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, tokens):
        embedded = self.embedding(tokens)
        _, (h, _) = self.lstm(embedded)
        return self.out(h[-1])
# %%
text = "the cat sat on the mat the dog sat".split()
vocab = {word: i + 1 for i, word in enumerate(dict.fromkeys(text))}
tokens = torch.tensor([[vocab[w] for w in text]] * 8)
dataset = TensorDataset(tokens, torch.arange(8) % 2)
# %%
torch.manual_seed(1)
model = Tagger(len(vocab) + 1)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.cross_entropy(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("on the mat", "on a mat"), ("RMSprop(", "Adagrad("), ("h[-1]", "h[0]")),
    ),
)
