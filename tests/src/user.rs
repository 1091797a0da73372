//! Other users of the machine: a thread that acts as one, and the files that one owns.

use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::panic::resume_unwind;
use std::path::Path;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user that nobody has to make: a number is enough for the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User(u32);

/// Whose Baton it is.
pub const OWNER: User = User(61_717);
/// Somebody else with an account on the same machine.
pub const STRANGER: User = User(61_718);

impl User {
    /// The number of the user, and of the only group they are in.
    pub fn id(self) -> u32 {
        require_root();
        self.0
    }

    /// Runs `act` on a thread that is this user's, without any right of ours.
    pub fn act<T: Send>(self, act: impl FnOnce() -> T + Send) -> T {
        require_root();
        let become_and_act = || {
            // The system calls of one thread change that thread alone.
            let (uid, gid) = (Uid::from_raw(self.0), Gid::from_raw(self.0));
            set_thread_groups(&[]).expect("root can leave all groups");
            set_thread_res_gid(gid, gid, gid).expect("root can be anybody");
            set_thread_res_uid(uid, uid, uid).expect("root can be anybody");
            assert!(std::fs::read("/etc/shadow").is_err(), "the rights of root are gone");
            act()
        };
        std::thread::scope(|scope| scope.spawn(become_and_act).join())
            .unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Gives a file, or a folder with all that is in it, to this user.
    pub fn own(self, path: &Path) {
        require_root();
        lchown(path, Some(self.0), Some(self.0)).expect("root can give files away");
        if path.is_dir() && !path.is_symlink() {
            for entry in std::fs::read_dir(path).expect("the folder can be read") {
                self.own(&entry.expect("the folder can be read").path());
            }
        }
    }
}

/// Sets the mode of a file or folder.
pub fn set_mode(path: &Path, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn require_root() {
    assert!(geteuid().is_root(), "tests with a second user need root: run them in a container, or with sudo");
}
