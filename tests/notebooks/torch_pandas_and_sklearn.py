# A table of pandas, a pipeline of sklearn, an unseeded split, and a regression.
# put right
# %%
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
# %%
df = load_diabetes(as_frame=True, scaled=False).frame
df["age_group"] = pd.cut(df["age"], [0, 35, 55, 100], labels=["young", "middle", "old"]).astype(str)
df["bmi_log"] = df.bmi.apply(lambda value: np.log(value))
df.loc[df.sample(frac=0.05).index, "s6"] = np.nan
df.head()
# %%
df.isna().sum()
# %%
df["s6"] = df["s6"].fillna(df.groupby("age_group")["s6"].transform("median"))
numeric = [c for c in df.columns if c not in ("target", "age_group", "sex")]
prep = make_pipeline(ColumnTransformer([
    ("numeric", StandardScaler(), numeric),
    ("groups", OneHotEncoder(handle_unknown="ignore"), ["age_group", "sex"]),
], sparse_threshold=0))
train_df, test_df = train_test_split(df, test_size=0.2)
x_train = prep.fit_transform(train_df).astype(np.float32)
x_test = prep.transform(test_df).astype(np.float32)
mean, std = train_df.target.mean(), train_df.target.std()
x_train.shape
# %%
import torch
import det_native as det
from torch.utils.data import DataLoader, TensorDataset

def as_dataset(x, frame):
    target = torch.tensor(((frame["target"] - mean) / std).to_numpy(), dtype=torch.float32)
    return TensorDataset(torch.from_numpy(x), target.unsqueeze(1))

class Regressor(torch.nn.Module):
    def __init__(self, n_in, sizes=(32, 16)):
        super().__init__()
        layers = []
        for n_out in sizes:
            layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
            n_in = n_out
        self.net = torch.nn.Sequential(*layers, torch.nn.Linear(n_in, 1))

    def forward(self, x):
        return self.net(x)
# %%
context = det.experimental.pytorch.init({"name": "diabetes"})
net = context.wrap_model(Regressor(x_train.shape[1]))
opt = context.wrap_optimizer(torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-4))
mse = torch.nn.MSELoss()

def train_batch(batch, epoch_idx, batch_idx):
    x, y = batch
    loss = mse(net(x), y)
    context.backward(loss)
    context.step_optimizer(opt)
    return {"loss": loss, "mae": torch.abs(net(x) - y).mean() * std}

def evaluate_batch(batch):
    x, y = batch
    return {"val_loss": mse(net(x), y), "val_mae": (net(x) - y).abs().mean() * std}

experiment = context.fit(
    DataLoader(as_dataset(x_train, train_df), batch_size=32, shuffle=True, drop_last=True),
    DataLoader(as_dataset(x_test, test_df), batch_size=128),
    train_batch=train_batch, evaluate_batch=evaluate_batch, epochs=4)
