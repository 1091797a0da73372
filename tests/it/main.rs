//! Baton as a whole, on real processes: one module for each concern.

mod threats;
mod tidy;
