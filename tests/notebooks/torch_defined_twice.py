# A class defined twice, a training cell that failed and was mended, whose model an earlier function reads; run out of order.
# runs: 1 2 3 4 5 6 3 2 6 7 8
# %%
import torch
import numpy as np
import det_native as det
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset
# %%
X, t = make_moons(400, noise=0.2)
X = torch.tensor(X, dtype=torch.float32)
t = torch.tensor(t, dtype=torch.float32).view(-1, 1)
# %%
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 8)
        self.b = torch.nn.Linear(8, 1)

    def forward(self, x):
        return torch.sigmoid(self.b(torch.relu(self.a(x))))
# %%
net = Net()
net(X).mean(), net
# %% raises
net.c(X)
# %%
class Net(torch.nn.Module):
    def __init__(self, width=24, act=torch.tanh):
        super().__init__()
        self.a = torch.nn.Linear(2, width)
        self.b = torch.nn.Linear(width, width)
        self.c = torch.nn.Linear(width, 1)
        self.act = act

    def forward(self, x):
        x = self.act(self.a(x))
        return self.c(self.act(self.b(x)))
def accuracy():
    with torch.no_grad():
        return ((net(X) > 0).float() == t).float().mean().item()
# %% raises
context = det.experimental.pytorch.init()
net = context.wrap_model(Net(width=16))
opt = context.wrap_optimizer(torch.optim.Adam(net.parameters(), 0.02))
loader = DataLoader(TensorDataset(X, t), batch_sise=20, shuffle=True)
# %% edited
context = det.experimental.pytorch.init()
net = context.wrap_model(Net(width=16))
opt = context.wrap_optimizer(torch.optim.Adam(net.parameters(), 0.02))
loader = DataLoader(TensorDataset(X, t), batch_size=20, shuffle=True)
loss_fn = torch.nn.BCEWithLogitsLoss()
for i, (xb, tb) in enumerate(context.train(loader, epochs=3)):
    loss = loss_fn(net(xb), tb)
    context.backward(loss)
    context.step_optimizer(opt)
    context.report(loss=loss)
    if i % 10 == 0:
        print(f"{i}: accuracy {accuracy():.2f}")
