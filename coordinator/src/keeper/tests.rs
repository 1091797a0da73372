//! The task in simulated time.
