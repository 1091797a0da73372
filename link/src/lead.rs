//! The file that leads a browser to the coordinator's page: what is in a browser's arguments can be read by everybody on
//! this machine, and the page's address is for one.

use std::io;
use std::path::PathBuf;

use crate::home::Home;

/// Its name in the state folder.
const FILE: &str = "open.html";

/// Where it is.
pub fn path(home: &Home) -> PathBuf {
    home.path().join(FILE)
}

/// Makes one that leads to `url`, which holds no character that HTML knows.
pub fn write(home: &Home, url: &str) -> io::Result<PathBuf> {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Baton</title>\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n\
         <a href=\"{url}\">Open Baton</a> (once, within a minute; <code>baton open</code> gives another link)\n"
    );
    home.replace(FILE, page.as_bytes())?;
    Ok(path(home))
}
