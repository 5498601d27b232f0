# Early stopping by hand, in a function: patience, a copy of the best weights, break, and the best put back.
# killed: epoch == 6, after 78
# same: val_losses, best_val, restored, model.state_dict()
# history: val_loss is val_losses
# two slots, within 1e-3: val_losses, best_val, model.state_dict()
# %%
import copy

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import det_native as det

torch.manual_seed(11)
# %%
X, y = load_breast_cancer(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, random_state=1)
scaler = StandardScaler().fit(X_train)


def to_dataset(X, y):
    return TensorDataset(torch.tensor(scaler.transform(X), dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


train_loader = DataLoader(to_dataset(X_train, y_train), batch_size=32, shuffle=True)
val_loader = DataLoader(to_dataset(X_val, y_val), batch_size=64)
# %%
def evaluate(model, loader, criterion):
    model.eval()
    losses = []
    with torch.no_grad():
        for xb, yb in loader:
            losses.append(criterion(model(xb).squeeze(1), yb).item())
    return sum(losses) / len(losses)


def train(model, train_loader, val_loader, max_epochs=30, patience=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss()
    context = det.experimental.pytorch.init()
    model, optimizer, train_loader, val_loader = context.wrap(model, optimizer, train_loader, val_loader)
    best_val, best_state, bad_epochs = float("inf"), None, 0
    history = []
    for epoch in context.epochs(max_epochs):
        model.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
        val_loss = evaluate(model, val_loader, criterion)
        history.append(val_loss)
        context.report(val_loss=val_loss)
        print(f"epoch {epoch}: val_loss {val_loss:.4f}")
        if val_loss < best_val:
            best_val, bad_epochs = val_loss, 0
            best_state = copy.deepcopy(model.state_dict())
        else:
            bad_epochs += 1
            if bad_epochs >= patience:
                print(f"early stopping after epoch {epoch}")
                break
    model.load_state_dict(best_state)
    return history, best_val
# %%
model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))
val_losses, best_val = train(model, train_loader, val_loader)
# %%
plt.plot(val_losses)
plt.axvline(val_losses.index(best_val), linestyle="--")
plt.show()
restored = evaluate(model, val_loader, nn.BCEWithLogitsLoss())
