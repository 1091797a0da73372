//! What is planted in a program: nothing.

use super::Plant;

/// Whether it is planted here: never.
#[inline(always)]
pub const fn has(_plant: Plant) -> bool {
    false
}
