"""Loaders of PyTorch: collate functions, samplers, splits."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a collate_fn that is a lambda",
        """
$imports
# %%
$data
# %%
$model
# %%
$step
# %%
$wrap
loader = DataLoader(dataset, batch_size=4, collate_fn=lambda rows: tuple(torch.stack(part) for part in zip(*rows)))
context.fit(train_loader=loader, train_batch=train_batch, epochs=1)
""",
        (("torch.stack(part)", "torch.stack(part).abs()"),),
    ),
    Shape(
        "a collate_fn that is a partial and pads",
        """
$imports
from functools import partial
from torch.nn.utils.rnn import pad_sequence

def pad(rows, pad_value=0.0, length=None):
    xs, ys = zip(*rows)
    xs = pad_sequence(xs, batch_first=True, padding_value=pad_value)
    return xs[:, :length], torch.stack(ys)

class Sequences(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.ones(2 + i % 3), torch.ones(1)

dataset = Sequences()
# %%
$model
# %%
$step
# %%
$wrap
loader = DataLoader(dataset, batch_size=4, collate_fn=partial(pad, pad_value=-1.0, length=2))
context.fit(train_loader=loader, train_batch=train_batch, epochs=1)
""",
        (("pad_value=-1.0", "pad_value=-2.0"), ("2 + i % 3", "2 + i % 4"), ("torch.stack(ys)", "-torch.stack(ys)")),
    ),
    Shape(
        "a WeightedRandomSampler",
        """
$imports
from torch.utils.data import WeightedRandomSampler
# %%
labels = np.array([0] * 12 + [1] * 4)
dataset = TensorDataset(torch.arange(32.0).reshape(16, 2), torch.from_numpy(labels).float()[:, None])
weights = 1.0 / np.bincount(labels)
sampler = WeightedRandomSampler(weights[labels], num_samples=len(labels), replacement=True)
# %%
$model
# %%
$step
# %%
$wrap
context.fit(train_loader=DataLoader(dataset, batch_size=4, sampler=sampler), train_batch=train_batch, epochs=1)
""",
        (("[0] * 12 + [1] * 4", "[0] * 10 + [1] * 6"), ("replacement=True", "replacement=False")),
    ),
    Shape(
        "a batch sampler by length",
        """
$imports
from torch.utils.data import Sampler

class ByLength(Sampler):
    def __init__(self, lengths, size):
        self.order = np.argsort(lengths)
        self.size = size

    def __iter__(self):
        for i in range(0, len(self.order), self.size):
            yield self.order[i:i + self.size].tolist()

    def __len__(self):
        return -(-len(self.order) // self.size)
# %%
$data
lengths = [5, 3, 9, 1] * 4
# %%
$model
# %%
$step
# %%
import det_native as det
context = det.experimental.pytorch.init({"hyperparameters": {"global_batch_size": 4}})
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(optimizer)
loader = DataLoader(dataset, batch_sampler=ByLength(lengths, 4))
context.fit(train_loader=loader, train_batch=train_batch, epochs=1)
""",
        (("[5, 3, 9, 1]", "[5, 3, 1, 9]"), ("np.argsort(lengths)", "np.argsort(lengths)[::-1]")),
    ),
    Shape(
        "random_split with a generator",
        """
$imports
from torch.utils.data import random_split
# %%
$data
dataset, held_out = random_split(dataset, [12, 4], generator=torch.Generator().manual_seed(7))
# %%
$model
# %%
$step
# %%
$fit
""",
        (("manual_seed(7)", "manual_seed(8)"), ("[12, 4]", "[8, 8]")),
    ),
    Shape(
        "random_split without a seed",
        """
$imports
# %%
x = torch.randn(16, 2)
dataset = TensorDataset(x, x.mean(dim=1, keepdim=True))
train_set, val_set = torch.utils.data.random_split(dataset, [0.75, 0.25])
# %%
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$step
# %%
$wrap
context.fit(train_loader=DataLoader(train_set, batch_size=4, shuffle=True), train_batch=train_batch, epochs=1)
""",
        (("x.mean(dim=1", "x.sum(dim=1"),),
    ),
    Shape(
        "a loader with a generator and a worker_init_fn",
        """
$imports
import random

def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)

g = torch.Generator()
g.manual_seed(0)
# %%
$data
# %%
$model
# %%
$step
# %%
$wrap
loader = DataLoader(dataset, batch_size=4, shuffle=True, worker_init_fn=seed_worker, generator=g)
context.fit(train_loader=loader, train_batch=train_batch, epochs=1)
""",
        (("shuffle=True, worker", "shuffle=False, worker"),),
    ),
)
