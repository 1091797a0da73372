//! Leads the user's browser to the page.

use baton_link::explain::Explanation;
use baton_link::home::Home;
use baton_link::lead;

/// Has the browser open `url`, which no argument of a process names.
pub fn open(home: &Home, url: &str) -> Result<(), Explanation> {
    const BY_HAND: &str = "open the address that `baton open --print` gives, on this machine";
    let file = lead::write(home, url).map_err(|error| {
        Explanation::new(format!("cannot write {}: {error}", lead::path(home).display())).with_hint(BY_HAND)
    })?;
    open::that_detached(file)
        .map_err(|error| Explanation::new(format!("cannot start a browser: {error}")).with_hint(BY_HAND))
}
