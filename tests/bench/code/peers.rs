//! tmp
use crate::report::Section;
use anyhow::Result;
pub(crate) fn run() -> Result<Section> {
    anyhow::bail!("x")
}
