//! Row work between the model and the sink.
