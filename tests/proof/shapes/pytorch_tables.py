"""Tables, features and random numbers of notebooks with PyTorch: pandas, scikit-learn, scipy, generators."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a table of pandas in the Dataset",
        """
$imports
import pandas as pd

class Rows(Dataset):
    def __init__(self, df):
        self.df = df.reset_index(drop=True)

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        return torch.tensor([row.a, row.b]).float(), torch.ones(1)
# %%
df = pd.DataFrame({"a": np.arange(16.0), "b": np.ones(16), "c": ["x", "y"] * 8})
df["d"] = pd.date_range("2020-01-01", periods=16)
dataset = Rows(df)
# %% look
df.head()
# %%
$model
# %%
$step
# %%
$fit
""",
        (("np.ones(16)", "np.zeros(16)"), ('"2020-01-01"', '"2021-01-01"'), ("[row.a, row.b]", "[row.b, row.a]")),
    ),
    Shape(
        "a StandardScaler and a split with a seed",
        """
import numpy as np, pandas as pd
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
df = pd.DataFrame(rng.normal(size=(40, 3)), columns=["f1", "f2", "target"])
X_train, X_test, y_train, y_test = train_test_split(df[["f1", "f2"]], df["target"], test_size=0.2, random_state=42)
scaler = StandardScaler()
X_train = scaler.fit_transform(X_train)
X_test = scaler.transform(X_test)
dataset = TensorDataset(torch.FloatTensor(X_train), torch.FloatTensor(y_train.values)[:, None])
# %%
$model
# %%
$step
# %%
$fit
""",
        (
            ("default_rng(0)", "default_rng(1)"),
            ("random_state=42", "random_state=43"),
            ('[["f1", "f2"]]', '[["f2", "f1"]]'),
        ),
    ),
    Shape(
        "a split without a seed",
        """
$imports
from sklearn.model_selection import train_test_split
# %%
X = np.arange(40, dtype="float32").reshape(20, 2)
y = X.sum(axis=1, keepdims=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2)
dataset = TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train))
# %%
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$step
# %%
$fit
""",
        (("X.sum(axis=1", "X.mean(axis=1"), ("test_size=0.2", "test_size=0.3")),
    ),
    Shape(
        "the encoder itself is used in the step",
        """
$imports
from sklearn.preprocessing import MinMaxScaler

raw = np.arange(32, dtype="float32").reshape(16, 2)
scaler = MinMaxScaler((-1, 1)).fit(raw)
dataset = TensorDataset(torch.from_numpy(raw), torch.ones(16, 1))
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    inputs = torch.from_numpy(scaler.transform(batch[0].numpy())).float()
    loss = F.mse_loss(model(inputs), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("MinMaxScaler((-1, 1))", "MinMaxScaler((0, 1))"),),
    ),
    Shape(
        "sparse features of scipy",
        """
$imports
from scipy import sparse

matrix = sparse.csr_matrix(np.eye(16, 2, dtype="float32") * 3)

class SparseRows(Dataset):
    def __init__(self, matrix):
        self.matrix = matrix

    def __len__(self):
        return self.matrix.shape[0]

    def __getitem__(self, i):
        return torch.from_numpy(self.matrix[i].toarray()[0]), torch.ones(1)

dataset = SparseRows(matrix)
# %%
$model
# %%
$step
# %%
$fit
""",
        (("* 3)", "* 4)"), ("np.eye(16, 2", "np.ones((16, 2)")),
    ),
    Shape(
        "a table of pyarrow",
        """
$imports
import pyarrow as pa

table = pa.table({"a": np.arange(16.0), "b": np.arange(16.0)[::-1].copy()})

class Arrow(Dataset):
    def __init__(self, table):
        self.table = table

    def __len__(self):
        return self.table.num_rows

    def __getitem__(self, i):
        return torch.tensor([self.table["a"][i].as_py(), self.table["b"][i].as_py()]).float(), torch.ones(1)

dataset = Arrow(table)
# %%
$model
# %%
$step
# %%
$fit
""",
        (("np.arange(16.0)[::-1].copy()", "np.arange(16.0)"),),
    ),
    Shape(
        "draws of numpy without a seed",
        """
$imports
# %%
x = np.random.rand(16, 2).astype("float32")
y = np.random.randn(16, 1).astype("float32")
dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
# %% look
np.random.rand(3)
# %%
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$step
# %%
$fit
""",
        (("np.random.randn(16, 1)", "np.random.rand(16, 1)"),),
    ),
    Shape(
        "a generator of numpy that is drawn from again and again",
        """
$imports
rng = np.random.default_rng(0)
# %%
x = rng.normal(size=(16, 2)).astype("float32")
# %%
noise = rng.normal(scale=0.1, size=(16, 1)).astype("float32")
dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(x.sum(1, keepdims=True) + noise))
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    jitter = torch.from_numpy(rng.normal(size=batch[0].shape)).float()
    loss = F.mse_loss(model(batch[0] + 0.01 * jitter), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("default_rng(0)", "default_rng(3)"), ("scale=0.1", "scale=0.2"), ("0.01 * jitter", "0.1 * jitter")),
    ),
    Shape(
        "classes by list(set(...))",
        """
$imports
labels = ["cat", "dog", "bird", "fish", "cow"] * 3
classes = list(set(labels))
class_to_idx = {c: i for i, c in enumerate(classes)}
targets = torch.tensor([class_to_idx[l] for l in labels])
# %%
torch.manual_seed(0)
dataset = TensorDataset(torch.randn(15, 2), targets)
# %%
model = nn.Linear(2, len(classes))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.cross_entropy(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("torch.randn(15, 2)", "torch.rand(15, 2)"),),
        put_right=True,
    ),
)
