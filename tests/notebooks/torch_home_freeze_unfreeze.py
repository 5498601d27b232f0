# Transfer: the backbone frozen, train; unfrozen, train again with a new optimizer; compare the two stages below.
# same: stage_1, stage_2, model.state_dict(), moved, kept
# %%
import copy

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import det_native as det

context = det.experimental.pytorch.init()
torch.manual_seed(0)
# %%
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:1200], y[:1200]), batch_size=50, shuffle=True)
X_val, y_val = X[1200:], y[1200:]

class TransferNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 20), nn.ReLU())
        self.head = nn.Linear(20, 10)

    def forward(self, x):
        return self.head(self.backbone(x))

def accuracy(net):
    net.eval()
    with torch.no_grad():
        return (net(X_val).argmax(1) == y_val).float().mean().item()
# %%
model = context.wrap_model(TransferNet())
for param in model.backbone.parameters():
    param.requires_grad = False
before = copy.deepcopy(model.backbone.state_dict())
optimizer = context.wrap_optimizer(torch.optim.SGD(model.head.parameters(), lr=0.5))
for xb, yb in context.train(train_loader, epochs=2):
    loss = nn.functional.cross_entropy(model(xb), yb)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
# %%
stage_1 = accuracy(model)
kept = all(torch.equal(before[k], v) for k, v in model.backbone.state_dict().items())
print(f"head only: {stage_1:.3f}")
# %%
for param in model.backbone.parameters():
    param.requires_grad = True
torch.manual_seed(1)
model.train()
optimizer_ft = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=2e-3))
for xb, yb in context.train(train_loader, epochs=3):
    loss = nn.functional.cross_entropy(model(xb), yb)
    context.backward(loss)
    context.step_optimizer(optimizer_ft)
    context.report(loss=loss)
# %%
stage_2 = accuracy(model)
moved = {k: not torch.equal(before[k], v) for k, v in model.backbone.state_dict().items()}
print(f"fine-tuned: {stage_2:.3f}")
assert kept and all(moved.values()) and stage_2 > stage_1
