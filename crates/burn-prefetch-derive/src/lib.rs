//! Derives which tensors a batch holds.
