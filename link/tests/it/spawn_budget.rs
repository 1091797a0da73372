//! A coordinator that dies at once is not started in a loop. Alone in its process: the count is the process's.

use std::path::Path;

use baton_link::home::Home;
use baton_link::spawn::{Spawn, SpawnError, spawn};

#[tokio::test]
async fn the_sixth_start_within_thirty_seconds_waits() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(dir.path()).unwrap();
    for _ in 0..5 {
        let error = spawn(Spawn { home: &home, program: Path::new("false"), port: None, inheritance: None })
            .await
            .unwrap_err();
        assert!(matches!(error, SpawnError::NoHandshake { .. }), "{error}");
    }
    let error = spawn(Spawn { home: &home, program: Path::new("false"), port: None, inheritance: None })
        .await
        .unwrap_err();
    assert!(matches!(error, SpawnError::Paused { .. }), "{error}");
    assert!(error.hint().unwrap_or_default().contains("baton logs"));
}
