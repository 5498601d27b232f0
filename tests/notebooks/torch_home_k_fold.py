# Five-fold without five copies of the loop: model, optimizer and loaders are built per fold, each is scored when trained.
# same: scores, mean_score, out_of_fold, [m.state_dict() for m in models]
# %%
import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

import det_native as det

torch.manual_seed(0)
# %%
X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
dataset = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))

def build_model():
    return nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
# %%
kfold = StratifiedKFold(n_splits=3, shuffle=True, random_state=0)
scores, models = [], []
out_of_fold = np.zeros((len(X), 3), "float32")
for fold, (train_ids, val_ids) in enumerate(kfold.split(X, y)):
    context = det.experimental.pytorch.init({"name": f"fold {fold}"})
    torch.manual_seed(fold)
    model = context.wrap_model(build_model())
    optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=0.02))
    train_loader = DataLoader(Subset(dataset, train_ids.tolist()), batch_size=16, shuffle=True)
    for inputs, targets in context.train(train_loader, epochs=3):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        context.backward(loss)
        context.step_optimizer(optimizer)
        context.report(loss=loss)
    model.eval()
    with torch.no_grad():
        logits = model(dataset.tensors[0][val_ids])
    out_of_fold[val_ids] = logits.numpy()
    scores.append((logits.argmax(1) == dataset.tensors[1][val_ids]).float().mean().item())
    models.append(model)
    print(f"fold {fold}: {scores[-1]:.3f}")
# %%
mean_score = float(np.mean(scores))
print(f"{mean_score:.3f} +- {np.std(scores):.3f}; out of fold {(out_of_fold.argmax(1) == y).mean():.3f}")
assert mean_score > 0.8
