"""Raw columns into the columns of a schema, and those into record bytes."""
