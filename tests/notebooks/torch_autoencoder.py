# A variational autoencoder: layers and losses by closures, draws in forward(), iterable data, a sampler of one's own.
# %%
from functools import partial
import numpy as np, torch, os, random
from torch import nn
from torch.nn import functional as F
from sklearn.datasets import load_digits
import det_native as det

def seed_everything(seed=1234):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

seed_everything()
BETA = 0.01
images = torch.tensor(load_digits().data[:800] / 16.0).float()

class Encoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.mu, self.logvar = nn.Linear(32, latent), nn.Linear(32, latent)

    def forward(self, x):
        h = F.elu(self.hidden(x))
        return self.mu(h), self.logvar(h)

class VAE(nn.Module):
    def __init__(self, latent=4, activation=partial(F.leaky_relu, negative_slope=0.1)):
        super().__init__()
        self.encoder = Encoder(latent)
        self.decoder = nn.ModuleList([nn.Linear(latent, 32), nn.Linear(32, 64)])
        self.activation = activation

    def forward(self, x):
        mu, logvar = self.encoder(x)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        for i, layer in enumerate(self.decoder):
            z = layer(z) if i else self.activation(layer(z))
        return torch.sigmoid(z), mu, logvar

def elbo(beta):
    def loss(out, x):
        recon, mu, logvar = out
        kl = -0.5 * torch.mean(torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1))
        return F.mse_loss(recon, x, reduction="sum") / len(x) + beta * kl
    return loss
# %%
class Halves(torch.utils.data.Sampler):
    """The bright half of the pictures first."""
    def __init__(self, data):
        self.order = torch.argsort(data.mean(1), descending=True).tolist()

    def __iter__(self):
        return iter(self.order)

    def __len__(self):
        return len(self.order)

loss_fn = elbo(BETA)
loader = torch.utils.data.DataLoader(images, batch_size=40, sampler=Halves(images))
# %%
ctx = context = det.experimental.pytorch.init(dict(hyperparameters=dict(latent=3)))
vae = ctx.wrap_model(VAE(ctx.get_hparam("latent")))
opt = ctx.wrap_optimizer(torch.optim.Adam(vae.parameters(), 5e-3))
for batch in ctx.train(loader, epochs=3):
    loss = loss_fn(vae(batch), batch)
    ctx.backward(loss)
    ctx.step_optimizer(opt)
    ctx.report(loss=loss, psnr=-10 * np.log10(max(loss.item(), 1e-9) / 64))
