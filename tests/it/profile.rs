//! `baton profile`: what a process does is what its profile says, in the words of the program.

use std::sync::atomic::{AtomicBool, Ordering};

use baton_tests::raw::Request;
use baton_tests::world::World;

/// What a profile that is taken while calls come says, and the bytes for pprof.
fn profile_under_load(world: &World, options: &[&str]) -> (String, Vec<u8>) {
    let (port, token) = (world.port(), world.token());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(Request::call(port, &token, "get_breakpoints").send(port).status, 200);
                }
            });
        }
        let folder = world.scratch().to_str().expect("a plain path");
        let arguments = [&["profile", "--seconds", "2", "--output", folder], options].concat();
        let printed = world.baton(&arguments);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(printed.code, 0, "{printed:?}");
        let paths: Vec<&str> = printed.out.lines().collect();
        let [svg, pb] = paths[..] else { panic!("{printed:?}") };
        (std::fs::read_to_string(svg).expect("it was written"), std::fs::read(pb).expect("it was written"))
    })
}

#[test]
fn a_busy_coordinator_and_a_busy_window_say_what_they_do() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    for (options, own) in [(&[][..], "baton_edge"), (&["--window", "shop"], "baton_agent_mcp")] {
        let (svg, pb) = profile_under_load(&world, options);
        assert!(svg.contains("<svg") && svg.contains(own), "{own} is not in {} bytes", svg.len());
        assert!(pb.windows(own.len()).any(|bytes| bytes == own.as_bytes()), "{} bytes", pb.len());
        assert!(!svg.contains(&world.token()), "a profile holds no token");
    }
    let unknown = world.baton(&["profile", "--window", "nobody", "--seconds", "1"]);
    assert!(unknown.code == 1 && unknown.err.contains("nobody"), "{unknown:?}");
    let too_long = world.baton(&["profile", "--seconds", "301"]);
    assert_eq!(too_long.code, 64, "{too_long:?}");
}
