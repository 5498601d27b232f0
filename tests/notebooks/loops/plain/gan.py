# A GAN: two models, two optimizers, noise drawn in the loop, a picture of the samples every epoch.
# %%
import matplotlib.pyplot as plt
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
# %%
digits = load_digits()
images = torch.tensor(digits.data[digits.target == 3], dtype=torch.float32) / 8 - 1
dataloader = DataLoader(TensorDataset(images), batch_size=32, shuffle=True, drop_last=True)
latent_dim = 16

generator = nn.Sequential(nn.Linear(latent_dim, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1), nn.Sigmoid())
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
adversarial_loss = nn.BCELoss()
fixed_noise = torch.randn(16, latent_dim)
# %%
G_losses, D_losses, progress = [], [], []
for epoch in range(8):
    for (real,) in dataloader:
        valid, fake = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        # train the discriminator
        optimizer_D.zero_grad()
        z = torch.randn(len(real), latent_dim)
        generated = generator(z)
        d_loss = (
            adversarial_loss(discriminator(real), valid) + adversarial_loss(discriminator(generated.detach()), fake)
        ) / 2
        d_loss.backward()
        optimizer_D.step()

        # train the generator
        optimizer_G.zero_grad()
        g_loss = adversarial_loss(discriminator(generated), valid)
        g_loss.backward()
        optimizer_G.step()

        G_losses.append(g_loss.item())
        D_losses.append(d_loss.item())
    with torch.no_grad():
        progress.append(generator(fixed_noise).view(-1, 8, 8))
    print(f"[{epoch}] D loss {d_loss.item():.4f}, G loss {g_loss.item():.4f}")
# %%
plt.plot(G_losses, label="G")
plt.plot(D_losses, label="D")
plt.legend()
plt.show()
# %%
generator.eval()
with torch.no_grad():
    final = generator(fixed_noise)
fig, axes = plt.subplots(2, 4)
for ax, picture in zip(axes.flat, final):
    ax.imshow(picture.view(8, 8), cmap="gray")
    ax.axis("off")
plt.show()
