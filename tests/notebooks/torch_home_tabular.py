# Test accuracy with eval(), the state dict saved, loaded into a fresh net and verified, in cells below the loop.
# plain: the same losses
# same: accuracy, restored_accuracy, model.state_dict(), fresh(x_test), probabilities, model.training
# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

import det_native as det

torch.manual_seed(0)
context = det.experimental.pytorch.init()
# %%
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
scaler = StandardScaler().fit(X_train)
x_train = torch.tensor(scaler.transform(X_train), dtype=torch.float32)
x_test = torch.tensor(scaler.transform(X_test), dtype=torch.float32)
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
# %%
class Net(nn.Module):
    def __init__(self, n_in, n_hidden=24):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.bn = nn.BatchNorm1d(n_hidden)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(n_hidden, 2)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.bn(self.fc1(x)))))

model = context.wrap_model(Net(x_train.shape[1]))
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=0.01))
criterion = nn.CrossEntropyLoss()
# %%
model.train()
for xb, yb in context.train(train_loader, epochs=4):
    loss = criterion(model(xb), yb)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
# %%
model.eval()
with torch.no_grad():
    probabilities = F.softmax(model(x_test), dim=1)
    accuracy = (probabilities.argmax(1) == y_test).float().mean().item()
print(f"Test accuracy: {accuracy:.3f}")
assert accuracy > 0.85
# %%
torch.save(model.state_dict(), "model.pt")
fresh = Net(x_train.shape[1])
fresh.load_state_dict(torch.load("model.pt"))
fresh.eval()
with torch.no_grad():
    restored_accuracy = (fresh(x_test).argmax(1) == y_test).float().mean().item()
assert restored_accuracy == accuracy, "the restored model differs"
