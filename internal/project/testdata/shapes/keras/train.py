import tensorflow as tf
from tensorflow import keras

tf.random.set_seed(7)
model = keras.Sequential([keras.layers.Dense(10)])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(None, None, batch_size=32, epochs=5, validation_split=0.1)
