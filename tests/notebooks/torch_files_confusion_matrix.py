# A confusion matrix at the end of the training: saved by savefig, logged as a picture, shown again below; the predictions in a table.
# same: model.state_dict(), matrix, picture.shape, picture.mean().round(3), table, sorted(os.listdir("figures")), logged
# %%
import os, random
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
import torch
from torch import nn
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix
from sklearn.model_selection import train_test_split
import det_native as det

context = det.experimental.pytorch.init({"hyperparameters": {"lr": 0.02}})
random.seed(1); np.random.seed(1); torch.manual_seed(1)
FIGURES = "figures/"
# %%
X, y = load_digits(return_X_y=True)
X = torch.from_numpy(X / 16).float()
y = torch.from_numpy(y)
train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=0)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X[train], y[train]), batch_size=128, shuffle=True)
# %%
def plot_confusion(model, title):
    model.eval()
    with torch.no_grad():
        predicted = model(X[test]).argmax(1)
    matrix = confusion_matrix(y[test], predicted)
    fig, ax = plt.subplots(figsize=(5, 5))
    ConfusionMatrixDisplay(matrix).plot(ax=ax, colorbar=False)
    ax.set_title(title)
    os.makedirs(FIGURES, exist_ok=True)
    fig.savefig(FIGURES + "confusion_matrix.png", dpi=60)
    det.log_image("confusion matrix", fig, caption=title)
    plt.close(fig)
    frame = pd.DataFrame({"label": y[test].numpy(), "predicted": predicted.numpy()})
    frame.to_csv(FIGURES + "predictions.csv", index=False)
    return matrix
# %%
EPOCHS = 4
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=context.get_hparam("lr"))
model, optimizer, loader = context.wrap(model, optimizer, loader)
for epoch in context.epochs(EPOCHS):
    model.train()
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    context.report(loss=loss)
    context.log(norm=sum(p.norm() for p in model.parameters()))
    if epoch == EPOCHS - 1:
        plot_confusion(model, f"Epoch {epoch + 1}")
# %%
picture = plt.imread("figures/confusion_matrix.png")
plt.imshow(picture); plt.axis("off"); plt.show()
# %%
table = pd.read_csv(FIGURES + "predictions.csv")
matrix = pd.crosstab(table.label, table.predicted).to_numpy()
print((table.label == table.predicted).mean())
# %%
logged = [medium.name for medium in context.experiment.media]
