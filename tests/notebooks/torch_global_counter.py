# A global counter, a history list and a moving mean that the training step changes; a scheduler; time.
# %%
import time, math
import torch
import det_native as det
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

steps = 0
losses = []
best = float("inf")

torch.manual_seed(0)
x = torch.linspace(-math.pi, math.pi, 500).unsqueeze(1)
y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)

class Sine(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.freq = nn.Parameter(torch.randn(12))
        self.phase = nn.Parameter(torch.zeros(12))
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        Sine.calls += 1
        return self.out(torch.sin(x * self.freq + self.phase))
# %%
def log(loss):
    global steps, best
    steps += 1
    losses.append(loss.item())
    best = min(best, loss.item())
    if steps % 10 == 0:
        print(f"[{time.strftime('%H:%M:%S')}] step {steps}: {sum(losses[-10:]) / 10:.4f} (best {best:.4f})")

for _ in range(3):
    log(torch.tensor(1.0))
steps = 0
losses.clear()
# %%
context = det.experimental.pytorch.init({"reproducibility": {"experiment_seed": 3}})
model = context.wrap_model(Sine())
optimizer = context.wrap_optimizer(optim.RMSprop(model.parameters(), lr=0.01))
scheduler = context.wrap_lr_scheduler(
    optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5),
    step_mode=det.pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH,
)
criterion = nn.SmoothL1Loss()

def train_step(batch, epoch_idx, batch_idx):
    inputs, targets = batch
    loss = criterion(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer, clip_grads=lambda p: torch.nn.utils.clip_grad_norm_(p, 0.5))
    log(loss)
    return {"loss": loss, "lr": optimizer.param_groups[0]["lr"]}

experiment = context.fit(DataLoader(TensorDataset(x, y), batch_size=25, shuffle=True), train_batch=train_step, epochs=4)
