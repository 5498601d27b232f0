"""Networks of PyTorch, and the optimizers that they are given."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "the network of the CIFAR10 tutorial",
        """
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(6 * 4 * 4, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = torch.flatten(x, 1)  # flatten all dimensions except batch
        return self.fc1(x)

net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
# %%
images, labels = torch.rand(8, 3, 12, 12), torch.randint(0, 10, (8,))
trainloader = DataLoader(TensorDataset(images, labels), batch_size=4, shuffle=True)
# %% look
classes = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
dataiter = iter(trainloader)
batch_images, batch_labels = next(dataiter)
print(" ".join(f"{classes[batch_labels[j]]:5s}" for j in range(4)))
# %%
import det_native as det
context = det.experimental.pytorch.init()
net = context.wrap_model(net)
optimizer = context.wrap_optimizer(optimizer)

def train_batch(batch, epoch_idx, batch_idx):
    inputs, labels = batch
    loss = criterion(net(inputs), labels)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

context.fit(train_loader=trainloader, train_batch=train_batch, epochs=2)
""",
        (
            ("momentum=0.9", "momentum=0.8"),
            ("F.relu(self.conv1", "F.elu(self.conv1"),
            ("randint(0, 10", "randint(0, 9"),
        ),
    ),
    Shape(
        "transfer learning with a frozen part",
        """
$imports
# %%
torch.manual_seed(3)
backbone = nn.Sequential(nn.Linear(2, 4), nn.ReLU())
for parameter in backbone.parameters():
    parameter.requires_grad = False
model = nn.Sequential(backbone, nn.Linear(4, 1))
optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)
# %%
$data
# %%
$step
# %%
$fit
""",
        (
            ("requires_grad = False", "requires_grad = True"),
            ("nn.Sequential(nn.Linear(2, 4), nn.ReLU())", "nn.Sequential(nn.Linear(2, 4))"),
        ),
    ),
    Shape(
        "groups of parameters with rates of their own",
        """
$imports
# %%
$data
# %%
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
optimizer = torch.optim.AdamW([
    {"params": model[0].parameters(), "lr": 1e-4},
    {"params": model[1].parameters()},
], lr=1e-2, weight_decay=0.05)
# %%
$step
# %%
$fit
""",
        (('"lr": 1e-4', '"lr": 1e-5'), ("weight_decay=0.05", "weight_decay=0.01")),
    ),
    Shape(
        "dropout and batch normalisation with an initializer applied",
        """
$imports

def init_weights(m):
    if isinstance(m, nn.Linear):
        torch.nn.init.xavier_uniform_(m.weight)
        m.bias.data.fill_(0.01)

class Net(nn.Module):
    def __init__(self, hidden=8, p=0.5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(p))
        self.head = nn.Linear(hidden, 1)
        self.apply(init_weights)

    def forward(self, x):
        return self.head(self.body(x))

torch.manual_seed(42)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$data
# %%
$step
# %%
$fit
""",
        (("fill_(0.01)", "fill_(0.02)"), ("p=0.5", "p=0.25")),
    ),
)
