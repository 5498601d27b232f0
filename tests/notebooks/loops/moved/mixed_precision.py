# Mixed precision: autocast and a GradScaler, which is off where there is no GPU; gradients unscaled and clipped.
# killed: epoch == 3, after 45
# same: losses, lrs, test_accuracy, model.state_dict(), scaler.get_scale()
# history: loss is losses, accuracy is test_accuracy
# two slots, within 0.02: lrs, test_accuracy, model.state_dict()
# %%
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import det_native as det

torch.manual_seed(0)
use_cuda = torch.cuda.is_available()
device = "cuda" if use_cuda else "cpu"
amp_dtype = torch.float16 if use_cuda else torch.bfloat16
# %%
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=100, shuffle=True)
test_loader = DataLoader(TensorDataset(X[1500:], y[1500:]), batch_size=100)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.3, epochs=6, steps_per_epoch=len(train_loader))
scaler = torch.amp.GradScaler(device, enabled=use_cuda)
criterion = nn.CrossEntropyLoss()


@torch.inference_mode()
def accuracy(model, loader):
    model.eval()
    hits = torch.cat([model(x.to(device)).argmax(1) == y.to(device) for x, y in loader])
    return hits.float().mean().item()
# %%
context = det.experimental.pytorch.init()
model, optimizer, scheduler, scaler, train_loader = context.wrap(model, optimizer, scheduler, scaler, train_loader)
losses, lrs, test_accuracy = [], [], []
for epoch in context.epochs(6):
    model.train()
    for x, y in train_loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device, dtype=amp_dtype):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
    losses.append(loss.item())
    lrs.append(scheduler.get_last_lr()[0])
    test_accuracy.append(accuracy(model, test_loader))
    context.report(loss=loss, accuracy=test_accuracy[-1])
    print(f"{epoch + 1}: loss {losses[-1]:.4f} lr {lrs[-1]:.4f} acc {test_accuracy[-1]:.4f}")
# %%
print("final", test_accuracy[-1], "scale", scaler.get_scale())
