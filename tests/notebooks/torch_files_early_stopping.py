# Early stopping in a class; its best file, by an absolute path, is read behind the loop in the same cell, and the curves in the next one.
# same: stopped_at, best_loss, model.state_dict(), accuracy, curves, sorted(path.name for path in CHECKPOINTS.iterdir())
# %%
from pathlib import Path
import json
CHECKPOINTS = Path.cwd() / "checkpoints"
CHECKPOINTS.mkdir(exist_ok=True)
# %%
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
import det_native as det

context = det.experimental.pytorch.init()
torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0)
train_set = TensorDataset(torch.tensor(X_train).float(), torch.tensor(y_train).float())
X_val, y_val = torch.tensor(X_val).float(), torch.tensor(y_val).float()
# %%
class EarlyStopping:
    import numpy as np

    def __init__(self, patience, path):
        self.patience, self.path = patience, path
        self.best, self.count = self.np.inf, 0

    def __call__(self, loss, model):
        if loss < self.best - 1e-3:
            self.best, self.count = loss, 0
            torch.save(model.state_dict(), self.path)
        else:
            self.count += 1
        return self.count >= self.patience
# %%
model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
loader = DataLoader(train_set, batch_size=64, shuffle=True)
model, optimizer, loader = context.wrap(model, optimizer, loader)
criterion = nn.BCEWithLogitsLoss()
stopping = EarlyStopping(patience=2, path=CHECKPOINTS / "best.pt")
losses = []
for epoch in context.epochs(30):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb)[:, 0], yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(X_val)[:, 0], y_val).item()
    context.report(loss=loss, val_loss=val_loss)
    losses.append(val_loss)
    with open("curves.json", "w") as file:
        json.dump({"val_loss": losses}, file)
    if stopping(val_loss, model):
        print(f"stopped at epoch {epoch}")
        break
stopped_at, best_loss = epoch, stopping.best
model.load_state_dict(torch.load(CHECKPOINTS / "best.pt"))
# %%
model.eval()
with torch.no_grad():
    accuracy = ((model(X_val)[:, 0] > 0) == y_val).float().mean().item()
    again = criterion(model(X_val)[:, 0], y_val).item()
print(accuracy, again, best_loss)
assert again == best_loss
# %%
curves = json.load(open("curves.json"))["val_loss"]
assert len(curves) == stopped_at + 1 and min(curves) >= best_loss - 1e-3
