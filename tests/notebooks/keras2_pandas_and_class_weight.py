# A table with gaps, get_dummies, a scaler, class weights by np, several named inputs, an unseeded split.
# %%
import pandas as pd
import numpy as np

rng = np.random.default_rng(5)
n = 800
df = pd.DataFrame({
    "age": rng.integers(18, 80, n),
    "income": np.round(rng.lognormal(10, 0.5, n), 2),
    "city": rng.choice(["Berlin", "Paris", "Rome", None], n),
    "joined": pd.date_range("2020-01-01", periods=n, freq="D"),
})
df["bought"] = ((df.age < 40) & (df.income > 20_000) | (rng.random(n) < 0.05)).astype(int)
df.describe()
# %%
import tensorflow as tf
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
import det_native as det

df["city"] = df["city"].fillna("unknown")
df["month"] = df["joined"].dt.month
df["log_income"] = df["income"].map(np.log1p)
features = pd.get_dummies(df.drop(columns=["joined", "bought", "income"]), columns=["city", "month"], dtype=float)
train, test, y_train, y_test = train_test_split(features, df["bought"], test_size=0.2)
scaler = StandardScaler().fit(train[["age", "log_income"]])

def inputs_of(frame):
    return {"numbers": scaler.transform(frame[["age", "log_income"]]),
            "kinds": frame.filter(regex="^(city|month)_").to_numpy(dtype="float32")}

counts = np.bincount(y_train)
class_weight = {i: len(y_train) / (2.0 * count) for i, count in enumerate(counts)}
class_weight
# %%
df.groupby("city").bought.mean().sort_values()
# %%
context = det.experimental.keras.init({"hyperparameters": {"units": 16, "global_batch_size": 32}})
numbers = tf.keras.Input((2,), name="numbers")
kinds = tf.keras.Input((inputs_of(test)["kinds"].shape[1],), name="kinds")
hidden = tf.keras.layers.Dense(context.get_hparam("units"), "relu")(tf.keras.layers.Concatenate()([numbers, kinds]))
model = tf.keras.Model([numbers, kinds], tf.keras.layers.Dense(1, "sigmoid")(hidden))
model = context.wrap_model(model)
model.compile("rmsprop", "binary_crossentropy", metrics=["accuracy", tf.keras.metrics.AUC(name="auc")])
model.fit(inputs_of(train), y_train, validation_data=(inputs_of(test), y_test), epochs=3, batch_size=32,
          class_weight=class_weight)
