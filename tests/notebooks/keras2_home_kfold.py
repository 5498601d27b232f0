# Cross-validation: a model for each fold, trained and evaluated in the loop; predictions out of fold, the mean at the end.
# same: acc_per_fold, loss_per_fold, oof, np.mean(acc_per_fold), [h["val_loss"] for h in histories], model.get_weights()
# %%
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
import det_native as det
# %%
data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
y = data.target

context = det.experimental.keras.init()

def create_model():
    model = tf.keras.Sequential([
        layers.Input((X.shape[1],)),
        layers.Dense(16, activation="relu"),
        layers.Dropout(0.3),
        layers.Dense(1, activation="sigmoid"),
    ])
    model = context.wrap_model(model)
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model
# %%
tf.keras.utils.set_random_seed(2023)
kfold = KFold(n_splits=3, shuffle=True, random_state=2023)
acc_per_fold, loss_per_fold, histories = [], [], []
oof = np.zeros(len(y))
for fold, (train, test) in enumerate(kfold.split(X, y), 1):
    print(f"Training for fold {fold} ...")
    model = create_model()
    history = model.fit(X[train], y[train], validation_data=(X[test], y[test]), batch_size=32, epochs=3, verbose=0)
    histories.append(history.history)
    scores = model.evaluate(X[test], y[test], verbose=0)
    print(f"Score for fold {fold}: {model.metrics_names[0]} of {scores[0]}; {model.metrics_names[1]} of {scores[1] * 100}%")
    acc_per_fold.append(scores[1] * 100)
    loss_per_fold.append(scores[0])
    oof[test] = model.predict(X[test], verbose=0).ravel()
# %%
print("Average accuracy:", np.mean(acc_per_fold), "+-", np.std(acc_per_fold))
print("Out of fold:", ((oof > 0.5) == y).mean())
