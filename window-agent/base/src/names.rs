//! CORE: which names are like one that does not exist.

/// Names that an error offers for one that does not exist.
const MAX_NEAREST: usize = 5;

/// The name that `given` most likely meant.
pub fn closest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    // A name this long was not a slip of the pen, and the distance is quadratic.
    const MAX_LEN: usize = 64;
    if given.len() > MAX_LEN {
        return None;
    }
    let given_lower = given.to_lowercase();
    let distance = |name: &str| strsim::levenshtein(&given_lower, &name.to_lowercase());
    let (distance, name) = names.iter().map(|name| (distance(name), *name)).min()?;
    if distance <= 1 + name.len() / 4 {
        return Some(name);
    }
    let is_part = |name: &&&str| given.len() >= 4 && (name.contains(given) || given.contains(**name));
    names.iter().find(is_part).copied()
}

/// From 0 to 1: by the pairs of letters that both have, or by slips of the pen, of which two change every pair of a
/// short name (`mian`).
fn likeness(wanted: &str, name: &str) -> f64 {
    /// Less is chance.
    const SLIP: f64 = 0.7;
    let slips = strsim::normalized_damerau_levenshtein(wanted, name);
    strsim::sorensen_dice(wanted, name).max(if slips >= SLIP { slips } else { 0.0 })
}

/// What is named most like it, the likest first.
pub fn nearest<T>(wanted: &str, named: impl Iterator<Item = (String, T)>, least: f64) -> Vec<T> {
    let wanted = wanted.to_lowercase();
    let scored = named.map(|(name, one)| (likeness(&wanted, &name.to_lowercase()), one));
    let mut near: Vec<(f64, T)> = scored.filter(|(score, _)| *score > least).collect();
    near.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    near.into_iter().take(MAX_NEAREST).map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_a_short_name_is_near() {
        let near = |wanted: &str| {
            nearest(wanted, ["main", "shop", "legacy"].map(|name| (name.to_owned(), name)).into_iter(), 0.5)
        };
        assert_eq!((near("mian"), near("shp"), near("legcy")), (vec!["main"], vec!["shop"], vec!["legacy"]));
        assert_eq!((near("tool"), near("made")), (vec![], vec![]));
    }
}
