//! One hook run: read the model, call the charm, write the result.
