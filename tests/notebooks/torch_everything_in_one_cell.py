# Imports, unseeded data, a class and the loop, all in one cell.
# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
import det_native as det

X = np.random.randn(600, 8).astype("float32")
w = np.random.randn(8)
y = (X @ w > 0).astype("int64")

class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.fc1 = nn.Linear(8, hidden)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(hidden, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return F.log_softmax(self.fc2(self.drop(x)), dim=1)

context = det.experimental.pytorch.init()
model = context.wrap_model(Net())
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=0.01))
loader = DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(y)), batch_size=32, shuffle=True)
for inputs, labels in context.train(loader, epochs=3):
    loss = F.nll_loss(model(inputs), labels)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
