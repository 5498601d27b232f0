# An autoencoder: the encoder is used alone afterwards, reconstructions of the validation set are shown.
# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader

torch.manual_seed(7)
np.random.seed(7)
# %%
X = load_digits().data.astype(np.float32) / 16
X_train, X_val = train_test_split(X, test_size=357, random_state=0)
train_dl = DataLoader(torch.from_numpy(X_train), batch_size=64, shuffle=True)
val_dl = DataLoader(torch.from_numpy(X_val), batch_size=256)
# %%
class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 6))
        self.decoder = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


autoencoder = Autoencoder()
opt = optim.AdamW(autoencoder.parameters(), lr=3e-3)
plateau = optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
mse = nn.MSELoss()
history = {"train": [], "val": []}
# %%
for epoch in range(1, 9):
    autoencoder.train()
    total = 0
    for batch in train_dl:
        loss = mse(autoencoder(batch), batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(batch)
    history["train"].append(total / len(train_dl.dataset))

    autoencoder.eval()
    with torch.no_grad():
        val_loss = sum(mse(autoencoder(batch), batch).item() * len(batch) for batch in val_dl) / len(val_dl.dataset)
    history["val"].append(val_loss)
    plateau.step(val_loss)
    print(f"Epoch {epoch}: train {history['train'][-1]:.5f}, val {val_loss:.5f}")
# %%
with torch.no_grad():
    codes = autoencoder.encoder(torch.from_numpy(X_val))
    reconstructed = autoencoder(torch.from_numpy(X_val[:4]))
plt.plot(history["train"])
plt.plot(history["val"])
plt.show()
fig, axes = plt.subplots(2, 4)
for i in range(4):
    axes[0, i].imshow(X_val[i].reshape(8, 8))
    axes[1, i].imshow(reconstructed[i].reshape(8, 8))
plt.show()
