//! The toolset `code` on real language servers: what a client sees, and what the servers say themselves.

mod agree;
mod aim;
mod assist;
mod budget;
mod changes;
mod faults;
mod languages;
mod large;
mod moves;
mod oracle;
mod place;
mod python;
mod rename;
mod trees;
