//! The patch formats, as pure functions from a stored object and a patch to the next object.
