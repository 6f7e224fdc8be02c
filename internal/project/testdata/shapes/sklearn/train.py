import pandas as pd
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

table = pd.read_csv("data/wine.csv")
train, test = train_test_split(table, test_size=0.25, random_state=3)
model = SGDClassifier(loss="log_loss", random_state=3)
model.fit(train.drop(columns="quality"), train["quality"])
