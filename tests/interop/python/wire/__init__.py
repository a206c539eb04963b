"""One module for each library; `hook` runs it as a charm runs it."""
