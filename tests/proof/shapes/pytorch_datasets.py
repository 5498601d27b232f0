"""Datasets of PyTorch, what they do with each record, and records that notebooks make."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a Dataset with a list of lambdas as transforms",
        """
$imports

class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x

    def __repr__(self):
        return f"Compose({len(self.transforms)})"

class Images(Dataset):
    def __init__(self, data, transform=None):
        self.data, self.transform = data, transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        x = self.data[i]
        return (self.transform(x) if self.transform else x), torch.ones(1)
# %%
transform = Compose([lambda x: x / 255.0, lambda x: (x - 0.5) / 0.5, torch.from_numpy])
dataset = Images(np.arange(32, dtype="float32").reshape(16, 2), transform)
# %%
$model
# %%
$step
# %%
$fit
""",
        (("x / 255.0", "x / 127.5"), ("(x - 0.5) / 0.5", "(x - 0.5)")),
    ),
    Shape(
        "augmentation with random in __getitem__",
        """
$imports
import random

class Augmented(Dataset):
    def __init__(self, base, p=0.5, train=True):
        self.base, self.p, self.train = base, p, train

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        x, y = self.base[i]
        if self.train and random.random() < self.p:
            x = x.flip(0)
        return x + 0.1 * torch.randn_like(x), y
# %%
$data
dataset = Augmented(dataset)
# %% look
print(dataset[0], dataset[1], random.random())
# %%
$model
# %%
$step
# %%
$fit
""",
        (("p=0.5", "p=0.1"), ("0.1 * torch.randn_like", "0.2 * torch.randn_like")),
    ),
    Shape(
        "an IterableDataset",
        """
$imports
from torch.utils.data import IterableDataset

class Stream(IterableDataset):
    def __init__(self, n, seed=0):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        for _ in range(self.n):
            yield torch.from_numpy(rng.normal(size=2)).float(), torch.ones(1)

dataset = Stream(16)
# %%
$model
# %%
$step
# %%
$wrap
context.fit(train_loader=DataLoader(dataset, batch_size=4), train_batch=train_batch, epochs=1)
""",
        (("seed=0", "seed=1"), ("rng.normal", "rng.uniform")),
    ),
    Shape(
        "ConcatDataset and Subset",
        """
$imports
from torch.utils.data import ConcatDataset, Subset
# %%
torch.manual_seed(0)
parts = [TensorDataset(torch.full((8, 2), float(k)), torch.full((8, 1), float(k))) for k in range(3)]
dataset = Subset(ConcatDataset(parts), [i for i in range(24) if i % 3])
# %%
$model
# %%
$step
# %%
$fit
""",
        (("if i % 3]", "if i % 4]"), ("(8, 1), float(k)", "(8, 1), float(k * k)")),
    ),
    Shape(
        "a folder of classes, its names by os.listdir",
        """
$imports
import os

root = os.path.join(os.getcwd(), "pets")
for name in ("cat", "dog"):
    os.makedirs(os.path.join(root, name), exist_ok=True)
    for i in range(8):
        with open(os.path.join(root, name, f"{i}.npy"), "wb") as f:
            np.save(f, np.full(2, i, "float32"))
classes = sorted(os.listdir(root))
class_to_idx = {name: i for i, name in enumerate(classes)}
samples = []
for c in classes:
    for file in sorted(os.listdir(os.path.join(root, c))):
        samples.append((os.path.join(root, c, file), class_to_idx[c]))

class Folder(Dataset):
    def __init__(self, samples, loader=np.load):
        self.samples, self.loader = samples, loader

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return torch.from_numpy(self.loader(path)), torch.tensor([float(target)])
# %%
dataset = Folder(samples)
# %%
$model
# %%
$step
# %%
$fit
""",
        (('("cat", "dog")', '("dog", "fish")'), ("float(target)", "1.0 - float(target)")),
    ),
)
