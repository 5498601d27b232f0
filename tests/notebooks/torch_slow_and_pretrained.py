# A slow cell that trains an encoder by hand, and one above it that prepares a table; the loop is given what they made.
# %%
import time
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.datasets import load_iris
from torch.utils.data import DataLoader, TensorDataset
import det_native as det
# %%
iris = load_iris(as_frame=True)
EPOCHS = 12

def clean(frame):
    return (frame - frame.mean()) / frame.std()

table = clean(iris.data)
for column in list(table.columns):
    time.sleep(1.5)
    table[column + " squared"] = table[column] ** 2
table.describe()
# %%
torch.manual_seed(3)
features = torch.tensor(table.to_numpy(), dtype=torch.float32)
labels = torch.tensor(iris.target.to_numpy())
# %%
encoder = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 8))
optimizer = torch.optim.Adam(encoder.parameters(), 0.02)
start = time.time()
for epoch in range(EPOCHS):
    for (batch,) in DataLoader(TensorDataset(features), batch_size=50, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(encoder(batch), batch)
        loss.backward()
        optimizer.step()
    time.sleep(0.9)
print(f"reconstructs to {loss.item():.4f}, took {time.time() - start:.0f} s")
# %%
class Classifier(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.relu(self.encoder(x)))
# %%
context = det.experimental.pytorch.init()
torch.manual_seed(5)
model = context.wrap_model(Classifier(encoder))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), 0.1))
for x, y in context.train(DataLoader(TensorDataset(features, labels), 30, shuffle=True), epochs=4):
    loss = nn.functional.cross_entropy(model(x), y)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
