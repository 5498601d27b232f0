# A cell that waits for an earlier training by asking for its state, a cell that failed, files that a cell wrote.
# %%
%matplotlib inline
import time
from pathlib import Path
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, TensorDataset
import det_native as det
# %%
rng = np.random.default_rng(1)
folder = Path("houses")
folder.mkdir(exist_ok=True)
area = rng.uniform(30, 200, 240)
pd.DataFrame({"area": area, "price": 3 * area + rng.normal(0, 9, 240)}).to_csv(folder / "small.csv", index=False)
# %% raises
houses = pd.read_csv(folder / "small.csv")
scaled = (houses - houses.mean()) / houses.std()
scaled.plot.scatter("area", "prize")
# %%
scaled.plot.scatter("area", "price")
plt.title(f"{len(scaled)} houses")
plt.savefig("houses.png")
# %%
x, y = (torch.tensor(scaled[[name]].to_numpy(), dtype=torch.float32) for name in ("area", "price"))

def train(width, epochs):
    model = context.wrap_model(torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)))
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), 0.05))
    for inputs, wanted in context.train(DataLoader(TensorDataset(x, y), 40, shuffle=True), epochs=epochs):
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        context.backward(loss)
        context.step_optimizer(optimizer)
        context.report(loss=loss)
# %%
context = det.experimental.pytorch.init()
train(width=2, epochs=1)
first = context.experiment
# %%
started = time.time()
while first.state not in ("Completed", "Failed"):
    time.sleep(0.1)
print(f"{first.state} after {time.time() - started:.1f} s")
# %%
history = dict(first.history)
plt.plot(history["loss"], "o")
plt.show()
# %%
context = det.experimental.pytorch.init()
torch.manual_seed(7)
train(width=8, epochs=5)
