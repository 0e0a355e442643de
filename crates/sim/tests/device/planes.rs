//! Multi-plane operations: times computed by hand.

use uflip_core::{Device, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone};

const RULES: [&str; 3] = ["any_page", "same_page", "same_block"];

fn overrides(planes: u64, rule: &str) -> String {
    format!(r#"{{"planes_per_die": {planes}, "multi_plane": "{rule}"}}"#)
}

/// Create one die with `planes` planes.
fn build_device(planes: u64, rule: &str, state: &str) -> SimDevice {
    let profile = Profile::parse(&profile(1, 1, state), "test", &overrides(planes, rule));
    SimDevice::new("test", profile.unwrap()).unwrap()
}

#[test]
fn multi_plane_read_takes_one_command() {
    for planes in [2, 4] {
        for rule in RULES {
            let (read, parts) =
                run_alone(&mut build_device(planes, rule, "sequential"), io(Mode::Read, 0, planes));
            assert_eq!(read, COMMAND + READ + planes * TRANSFER + LINK, "{planes} {rule}");
            assert_eq!(part(&parts, "channel_wait_ns"), (planes - 1) * TRANSFER);
            let (read, _) = run_alone(
                &mut build_device(planes, "none", "sequential"),
                io(Mode::Read, 0, planes),
            );
            assert_eq!(read, COMMAND + planes * (READ + TRANSFER) + LINK, "{planes}");
        }
    }
}

#[test]
fn multi_plane_program_joins_pages_during_transfer() {
    for planes in [2, 4] {
        for rule in RULES {
            let (write, parts) =
                run_alone(&mut build_device(planes, rule, "empty"), io(Mode::Write, 0, planes));
            assert_eq!(write, COMMAND + LINK + planes * TRANSFER + PROGRAM, "{planes} {rule}");
            assert_eq!(part(&parts, "cell_program_ns"), PROGRAM);
            // Two rows: the pages of the second one wait for their planes.
            let (write, _) =
                run_alone(&mut build_device(planes, rule, "empty"), io(Mode::Write, 0, 2 * planes));
            assert_eq!(write, COMMAND + LINK + 2 * (planes * TRANSFER + PROGRAM));
        }
    }
}

#[test]
fn saturated_die_programs_all_planes() {
    let rows = 40;
    for planes in [1, 2, 4] {
        let rule = if planes == 1 { "none" } else { "same_block" };
        let mut device = build_device(planes, rule, "empty");
        let (mut begun, mut ended) = (0, 0);
        while ended < rows * planes {
            while begun < rows * planes && begun < ended + 2 * planes {
                device.submit(&io(Mode::Write, begun, 1)).unwrap();
                begun += 1;
            }
            device.complete().unwrap();
            ended += 1;
        }
        let expected = COMMAND + LINK + rows * (planes * TRANSFER + PROGRAM);
        assert_eq!(device.now().0, expected, "{planes} planes");
    }
}

#[test]
fn multi_plane_refuses_incompatible_keys() {
    for (changes, key) in [
        (r#""planes_per_die": 1"#, "multi_plane"),
        (r#""planes_per_die": 2, "independent_planes": true"#, "independent_planes"),
        (r#""planes_per_die": 2, "cache_program": true"#, "cache_program"),
        (
            r#""planes_per_die": 2, "die_queue": "reads_first", "erase_suspend_ns": 9, "suspensions_max": 1"#,
            "[suspend]",
        ),
    ] {
        let changes = format!(r#"{{"multi_plane": "same_page", {changes}}}"#);
        let text =
            Profile::parse(&profile(1, 1, "empty"), "test", &changes).unwrap_err().to_string();
        assert!(text.contains(key), "{changes}: {text}");
    }
}
