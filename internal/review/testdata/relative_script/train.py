from .model import Net  # want: error import_unresolved .model
