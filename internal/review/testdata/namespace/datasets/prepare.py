print("prepares a dataset")
