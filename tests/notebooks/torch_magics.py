# Magics, a shell line, plots, cells that merely look, %%time over the training, weights drawn by hand.
# put right
# %%
%matplotlib inline
%load_ext autoreload
%autoreload 2
import warnings
warnings.filterwarnings("ignore")
import matplotlib.pyplot as plt
import numpy as np
import torch
# %%
!ls
%pip --version
# %%
from sklearn.datasets import load_wine
wine = load_wine()
x = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0)
idx = np.random.permutation(len(x))
split = int(0.8 * len(x))
train_idx, val_idx = idx[:split], idx[split:]
plt.figure(figsize=(3, 2))
plt.scatter(x[:, 0], x[:, 1], c=wine.target)
plt.show()
# %%
%timeit -n 1 -r 1 x @ x.T
# %%
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
device
# %%
import det_native as det
from torch.utils.data import DataLoader, Subset, TensorDataset

full = TensorDataset(torch.tensor(x).float(), torch.tensor(wine.target).long())
train_dl = DataLoader(Subset(full, train_idx), batch_size=16, shuffle=True)
val_dl = DataLoader(Subset(full, val_idx), batch_size=64)

def init_weights(m):
    if isinstance(m, torch.nn.Linear):
        torch.nn.init.xavier_uniform_(m.weight)
        m.bias.data.fill_(0.01)
# %%
%%time
context = det.experimental.pytorch.init()
model = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 3))
model.apply(init_weights)
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), 1e-2))

@torch.no_grad()
def val_step(batch):
    xb, yb = batch[0].to(device), batch[1].to(device)
    out = model(xb)
    return dict(val_loss=torch.nn.functional.cross_entropy(out, yb), val_acc=np.mean((out.argmax(1) == yb).cpu().numpy()))

for xb, yb in context.train(train_dl, epochs=3, validation_loader=val_dl, evaluate_batch=val_step):
    loss = torch.nn.functional.cross_entropy(model(xb.to(device)), yb.to(device))
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
# %%
context.experiment.wait()
plt.plot(context.experiment.history["loss"])
