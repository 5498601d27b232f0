# Pictures that a Dataset augments: a chain of functions and partials that draw from random, numpy and torch, unseeded.
# %%
import det_native as det
# %%
import random
from functools import partial

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X.reshape(-1, 8, 8) / 16, y, test_size=0.25)

def shift(image, most):
    return np.roll(image, random.randint(-most, most), axis=1)

def noise(image, sigma=0.05):
    return image + np.random.normal(0, sigma, image.shape)

class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image

class Digits(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if self.transform is not None:
            image = self.transform(image)
        image = torch.as_tensor(image, dtype=torch.float32)
        if self.transform is not None and torch.rand(1).item() < 0.2:
            image = torch.zeros_like(image) + image.mean()
        return image[None], int(self.labels[index])

train_set = Digits(X_train, y_train, Compose(partial(shift, most=1), noise, lambda image: image.clip(0, 1)))
test_set = Digits(X_test, y_test)
# %%
class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(8 * 16, 10)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))

context = det.experimental.pytorch.init({"hyperparameters": {"lr": 0.01, "global_batch_size": 64}})
model = context.wrap_model(CNN())
optimizer = context.wrap_optimizer(torch.optim.AdamW(model.parameters(), lr=context.get_hparam("lr")))

def evaluate(batch):
    scores = model(batch[0])
    return {"val_loss": nn.functional.cross_entropy(scores, batch[1]), "accuracy": (scores.argmax(1) == batch[1]).float().mean()}

train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
test_loader = DataLoader(test_set, batch_size=256)
for images, labels in context.train(train_loader, epochs=2, validation_loader=test_loader, evaluate_batch=evaluate):
    loss = nn.functional.cross_entropy(model(images), labels)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss, error=(model(images).argmax(1) != labels).float().mean())
