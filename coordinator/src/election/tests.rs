//! Simulated windows and time.
