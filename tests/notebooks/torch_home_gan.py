# A GAN: two models, two optimizers, one loop; samples from fixed noise and scores of the discriminator below.
# plain: the same losses
# same: samples, scores, G.state_dict(), D.state_dict(), more, spread
# %%
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import det_native as det

context = det.experimental.pytorch.init({"searcher": {"metric": "loss"}})
torch.manual_seed(0)
# %%
rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 512)
real_data = torch.tensor(np.stack([np.cos(angle), np.sin(angle)], 1) + rng.normal(0, 0.05, (512, 2)), dtype=torch.float32)
loader = DataLoader(TensorDataset(real_data), batch_size=64, shuffle=True, drop_last=True)
nz = 4
# %%
def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.3)
        nn.init.zeros_(m.bias)

G = nn.Sequential(nn.Linear(nz, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2)).apply(weights_init)
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).apply(weights_init)
G, D = context.wrap_model(G), context.wrap_model(D)
optG = context.wrap_optimizer(torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999)))
optD = context.wrap_optimizer(torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999)))
bce = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(8, nz)
# %%
for (real,) in context.train(loader, epochs=5):
    n = len(real)
    noise = torch.randn(n, nz)
    fake = G(noise)
    d_loss = bce(D(real), torch.ones(n, 1)) + bce(D(fake.detach()), torch.zeros(n, 1))
    context.backward(d_loss)
    context.step_optimizer(optD)
    g_loss = bce(D(fake), torch.ones(n, 1))
    context.backward(g_loss)
    context.step_optimizer(optG)
    context.report(loss=d_loss + g_loss, d_loss=d_loss, g_loss=g_loss)
# %%
with torch.no_grad():
    samples = G(fixed_noise)
    scores = torch.sigmoid(D(samples))
print(samples, scores)
# %%
torch.manual_seed(7)
more = G(torch.randn(100, nz)).detach()
spread = more.std(0).tolist()
print("fooled:", (D(more) > 0).float().mean().item())
