"""The viewer: a local web page to browse data sets, TFRecord files and runs."""
