"""Datasets of PyTorch, what they do with each record, and records that notebooks make."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a Dataset with numpy in the cell of the imports",
        """
$imports

class Rows(Dataset):
    def __init__(self, n):
        self.x = np.arange(2 * n, dtype="float32").reshape(n, 2)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.ones(1)
# %%
dataset = Rows(16)
# %% look
dataset[0]
# %%
$model
# %%
$step
# %%
$fit
""",
        (("torch.ones(1)", "torch.zeros(1)"), ("np.arange(2 * n,", "np.arange(1, 2 * n + 1,")),
    ),
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
        "a Normalize with the mean and deviation of the data",
        """
$imports

class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean)
        self.std = torch.tensor(std)

    def __call__(self, tensor):
        return (tensor - self.mean) / self.std

data = np.random.RandomState(0).rand(16, 2).astype("float32")
normalize = Normalize(data.mean(0).tolist(), data.std(0).tolist())

class Set(Dataset):
    def __len__(self):
        return len(data)

    def __getitem__(self, i):
        return normalize(torch.from_numpy(data[i])), torch.tensor([1.0])

dataset = Set()
# %%
$model
# %%
$step
# %%
$fit
""",
        (("RandomState(0)", "RandomState(1)"), ("data.std(0)", "data.std(0, ddof=1)")),
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
        "files by glob",
        """
$imports
from pathlib import Path

Path("data").mkdir(exist_ok=True)
for i in range(16):
    Path(f"data/{i:02}.txt").write_text(str(i))
files = sorted(Path("data").resolve().glob("*.txt"))

class Files(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return torch.ones(2) * float(self.files[i].read_text()), torch.ones(1)
# %%
dataset = Files(files)
# %%
$model
# %%
$step
# %%
$fit
""",
        (("torch.ones(2) * float", "torch.ones(2) / float"),),
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
    Shape(
        "PIL images made in the notebook",
        """
$imports
from PIL import Image

images = [Image.fromarray(np.full((4, 4), 16 * i, "uint8")) for i in range(16)]

class Pictures(Dataset):
    def __init__(self, images, size=(2, 1)):
        self.images, self.size = images, size

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        small = self.images[i].resize(self.size)
        return torch.from_numpy(np.array(small)).float().flatten() / 255, torch.ones(1)

dataset = Pictures(images)
# %%
$model
# %%
$step
# %%
$fit
""",
        (("16 * i", "15 * i"), ("resize(self.size)", "resize(self.size, Image.NEAREST)")),
    ),
    Shape(
        "words counted by Counter, and a tokenizer",
        """
$imports
from collections import Counter
import re

corpus = ["the cat sat", "a dog sat down", "the bird flew", "a cat and a dog"] * 4

def tokenize(text, lower=True):
    return re.findall(r"[a-z]+", text.lower() if lower else text)

counter = Counter(word for line in corpus for word in tokenize(line))
vocab = {"<pad>": 0, "<unk>": 1}
for word, n in counter.most_common():
    if n > 4:
        vocab[word] = len(vocab)
stoi = {w: i for i, w in enumerate(vocab)}

def encode(line, size=4):
    ids = [vocab.get(w, vocab["<unk>"]) for w in tokenize(line)][:size]
    return ids + [0] * (size - len(ids))

dataset = TensorDataset(torch.tensor([encode(line) for line in corpus]), torch.ones(len(corpus), 1))
# %%
torch.manual_seed(2)
model = nn.Sequential(nn.Embedding(len(vocab), 2), nn.Flatten(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$step
# %%
$fit
""",
        (("the bird flew", "the bird sang and sat"), ("if n > 4:", "if n > 3:"), ("[0] * (size", "[1] * (size")),
    ),
    Shape(
        "a series cut into windows",
        """
$imports
import pandas as pd

series = pd.Series(np.sin(np.linspace(0, 12, 40)), index=pd.date_range("2022-01-01", periods=40, freq="D"))

def windows(values, n_past=2, n_future=1):
    X, y = [], []
    for i in range(n_past, len(values) - n_future + 1):
        X.append(values[i - n_past:i])
        y.append(values[i:i + n_future])
    return np.array(X), np.array(y)

cut = int(len(series) * 0.8)
X, y = windows(series.to_numpy()[:cut])
dataset = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
# %% look
series.resample("W").mean()
# %%
$model
# %%
$step
# %%
$fit
""",
        (
            ("np.linspace(0, 12", "np.linspace(0, 13"),
            ("* 0.8)", "* 0.7)"),
            ("values[i:i + n_future]", "values[i - 1:i - 1 + n_future]"),
        ),
    ),
)
