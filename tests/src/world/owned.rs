//! Worlds whose processes belong to another user.

use std::path::Path;

use super::World;
use crate::place;
use crate::user::{User, set_mode};

impl World {
    /// A world of another user, in folders that everybody may walk through. Debugging needs what is installed
    /// below the workspace, which that user may not be able to reach.
    pub fn of(owner: User) -> Self {
        let mut world = Self::new();
        let programs = world.temp.path().join("bin");
        std::fs::create_dir(&programs).expect("a temporary folder");
        for name in ["baton", "baton-agent"] {
            lend(&place::program(name), &programs);
        }
        let temporary = world.temp.path().join("tmp");
        std::fs::create_dir(&temporary).expect("a temporary folder");
        owner.own(&world.temp.path().join("user"));
        set_mode(world.temp.path(), 0o755);
        set_mode(&temporary, 0o1777);
        // As anybody's folders are: what is Baton's must be private all the same.
        std::fs::create_dir(world.projects()).expect("a temporary folder");
        world.owner = Some(owner);
        let temporary = temporary.to_str().expect("a path of text").to_owned();
        world.with_env("TMPDIR", &temporary)
    }

    /// A world of another user, who finds one more program on the search path.
    pub fn with_program(self, program: &Path) -> Self {
        let programs = self.temp.path().join("bin");
        lend(program, &programs);
        let path = std::env::var("PATH").unwrap_or_default();
        self.with_env("PATH", &format!("{}:{path}", programs.display()))
    }
}

/// Puts a program where everybody can run it, whoever may walk to where it is.
fn lend(program: &Path, folder: &Path) {
    let program = program.canonicalize().expect("the program is there");
    let here = folder.join(program.file_name().expect("a program has a name"));
    if std::fs::hard_link(&program, &here).is_err() {
        std::fs::copy(&program, &here).expect("a program can be copied");
    }
}
