//! The debug engine against a real debugpy: one scenario per feature, told as a transcript with stable ids.

mod attach;
mod breakpoints;
mod control;
mod faults;
mod fixtures;
mod interpreters;
mod processes;
mod story;
mod verbs;
