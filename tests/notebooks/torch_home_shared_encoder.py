# An autoencoder, of which only the encoder is used below: embeddings, a clustering, neighbours, a linear probe.
# plain: the same losses
# same: codes, errors, kmeans.labels_, neighbours, probe.score(codes, y), autoencoder.state_dict()
# %%
import torch
import torch.nn as nn
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader

import det_native as det

context = det.experimental.pytorch.init()
torch.manual_seed(0)
# %%
X, y = load_digits(return_X_y=True)
data = torch.tensor(X / 16, dtype=torch.float32)

class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return self.net(x)

class Autoencoder(nn.Module):
    def __init__(self, encoder, dim):
        super().__init__()
        self.encoder = encoder
        self.decoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))

encoder = Encoder(6)
autoencoder = context.wrap_model(Autoencoder(encoder, 6))
optimizer = context.wrap_optimizer(torch.optim.AdamW(autoencoder.parameters(), lr=5e-3))
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = nn.functional.mse_loss(autoencoder(batch), batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

context.fit(DataLoader(data, batch_size=64, shuffle=True), train_batch=train_batch, epochs=4)
# %%
with torch.no_grad():
    codes = encoder(data).numpy()
print(codes.shape, codes.std(0))
# %%
kmeans = KMeans(10, n_init=1, random_state=0).fit(codes)
probe = LogisticRegression(max_iter=50).fit(codes, y)
print("a linear probe has", probe.score(codes, y))
# %%
def nearest(i, k=3):
    distances = torch.cdist(torch.tensor(codes[i:i + 1]), torch.tensor(codes))[0]
    return distances.argsort()[1:k + 1].tolist()

neighbours = {i: nearest(i) for i in (0, 1, 2)}
# %%
decode = autoencoder.decoder
errors = (decode(torch.tensor(codes)) - data).pow(2).mean(1).detach()
assert errors.mean() < 0.1
