//! Errors of invalid profiles.

use uflip_core::ErrorKind;
use uflip_sim::Profile;

use super::profile;

#[test]
fn invalid_profile_is_refused_with_reason() {
    let message = |text: &str, overrides: &str| {
        let error = Profile::parse(text, "my.toml", overrides).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    };
    let good = profile(2, 2, "empty");
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        message(&good.replace(from, to), "{}")
    };
    let unknown = with("spare_factor", "spare_facto");
    let line = 1 + good[..good.find("spare_factor").unwrap()].matches('\n').count();
    assert!(unknown.contains(&format!("line {line}: unknown key")), "{unknown}");
    assert!(unknown.contains("unknown key `spare_facto`"), "{unknown}");
    assert!(
        unknown.contains(
            "allowed: ftl, spare_factor, mapping_unit_bytes, compression_unit_bytes, deduplicates, \
             write_streams, merges_side_by_side, allocator"
        ),
        "{unknown}"
    );
    let missing = with("spare_factor = 0.2,", "");
    assert!(missing.contains(&format!("my.toml, line {line}")), "{missing}");
    assert!(missing.contains("missing key `spare_factor`"), "{missing}");
    assert!(missing.contains("allowed: a number"), "{missing}");
    let missing = with("description = \"for tests\"", "");
    assert!(missing.contains("missing key `description`"), "{missing}");
    assert!(missing.contains("allowed: a text in quotes"), "{missing}");
    assert!(with("\"page_map\"", "\"pagemap\"").contains("allowed: page_map"));
    assert!(with("\"cyclic\"", "\"circular\"").contains("Unknown victim policy"));
    assert!(with("\"round_robin\"", "\"robin\"").contains("Unknown allocator"));
    assert!(with("channels = 2", "channels = 0").contains("'channels' has an invalid value"));
    assert!(with("page_bytes = 4096", "page_bytes = 256").contains("'page_bytes'"));
    assert!(with("sector_bytes = 512", "sector_bytes = 500").contains("'sector_bytes'"));
    assert!(with("spare_factor = 0.2", "spare_factor = 0.001").contains("spare factor"));
    assert!(with("spare_factor = 0.2", "spare_factor = 1.0").contains("spare factor"));
    assert!(with("\"page_map\"", "\"block_map\"").contains("does not use [gc]"));
    assert!(with("gc = { gc", "#").contains("without a table [gc]"));
    assert!(with(", allocator = \"round_robin\"", "").contains("needs an allocator"));
    assert!(with("idle_free_blocks = 3", "idle_free_blocks = 2").contains("never begin"));
    assert!(message(&good, r#"{"spare": "0.3"}"#).contains("Unknown key of a profile"));
    // The error of a renamed key names its present name.
    let former = with("static_wear_threshold = 0", "static_wear_gap = 0");
    let renamed = "unknown key `static_wear_gap`, which was renamed to `static_wear_threshold`";
    assert!(former.contains(renamed), "{former}");
    let former = message(&good, r#"{"static_wear_gap": 4}"#);
    assert!(
        former.contains("write static_wear_threshold: static_wear_gap was renamed"),
        "{former}"
    );
    assert!(message(&good, r#"{"channels": "many"}"#).contains("does not fit"));
    // 2³² − 64 pages take 32 GiB for their two maps alone.
    let huge = r#"{"blocks_per_die": "67108863", "dies_per_channel": "2", "channels": "2"}"#;
    assert!(message(&good, huge).contains("does not fit into memory"));
    assert!(message("a = ", "{}").contains("my.toml, line 1"));
    // The error is attributed to an override only if the file alone is valid.
    let of_override = message(&good, r#"{"channels": 0}"#);
    assert!(of_override.contains("where: ?channels=0 with my.toml"), "{of_override}");
    let of_file = message(&good.replace("channels = 2", "channels = 0"), r#"{"seed": 2}"#);
    assert!(of_file.contains("where: my.toml;"), "{of_file}");
}

#[test]
fn invalid_merging_ftl_is_refused_with_reason() {
    let base = profile(2, 2, "empty")
        .replace(", allocator = \"round_robin\"", "")
        .lines()
        .filter(|line| !line.trim_start().starts_with("gc = "))
        .collect::<Vec<_>>()
        .join("\n");
    let message = |ftl: &str, table: &str, overrides: &str| {
        let text = base.replace("page_map", ftl) + "\n" + table;
        let error = Profile::parse(&text, "my.toml", overrides).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    };
    let log = "log = { log_blocks = 8, superblock_blocks = 2, compat = \"none\" }";
    let streams = "streams = { unit_bytes = 131072, cluster_bytes = 16384, banks = 2, own_channels = false, streams = 2, \
        resumed_streams = 0, reverse_streams = false, fold_clusters = 1, log_clusters = 8, \
        log_units = 2, compact_log = true, log_members = 0, evict_single = false, rewrite_buffer = false, \
        small_cluster_bytes = 0, small_log_clusters = 0, small_log_units = 0, \
        log_map_pages = 0, free_clusters = 0, merges_at_once = 2, \
        reads_per_step = 0, bypass_partial_clusters = false, switch_map_pages = 0, \
        merge_map_pages = 0 }";
    let linear = "linear = { unit_bytes = 131072, cluster_bytes = 16384, banks = 2, open_units = 2, \
        backward_clusters = 0, rewrites = 0, open_map_pages = 0, switch_map_pages = 0, \
        merge_map_pages = 0 }";
    for ftl in ["bast", "fast", "superblock"] {
        assert!(message(ftl, "", "{}").contains("without a table [log]"));
        assert!(message(ftl, log, r#"{"log_blocks": 256}"#).contains("log_blocks = 256 of 256"));
        assert!(message(ftl, log, r#"{"log_blocks": 60}"#).contains("too few blocks"));
        assert!(
            message(ftl, log, r#"{"log_blocks": 0}"#)
                .contains("fewer than the blocks of the device")
        );
    }
    assert!(
        message("bast", log, r#"{"compat": "flashsim2010"}"#)
            .contains("Only FAST supports 'compat'")
    );
    assert!(message("superblock", log, r#"{"superblock_blocks": 0}"#).contains("1 or more"));
    assert!(message("fast", log, r#"{"metadata_pages": 1}"#).contains("no metadata pages"));
    assert!(message("block_map", log, "{}").contains("does not use [log]"));
    let latency = ("relocate_latency_ns", "1");
    for (key, value) in [("collect_ns", "1"), latency] {
        let unused = message("fast", log, &format!("{{\"{key}\": {value}}}"));
        assert!(unused.contains(&format!("This FTL does not use {key}")), "{unused}");
    }
    let rings =
        r#"{"tx_entries": 1, "rx_entries": 1, "completion": "interrupt", "completion_ns": 0}"#;
    assert!(message("block_map", "", rings).contains("does not use [rings]"));
    assert!(message("block_map", "", r#"{"spare_factor": 0.0}"#).contains("too few blocks"));
    assert!(message("stream_hybrid", "", "{}").contains("without a table [streams]"));
    let none = message("stream_hybrid", streams, r#"{"spare_factor": 0.25, "streams": 0}"#);
    assert!(none.contains("'streams' has an invalid"), "{none}");
    let message_of_unit = message("stream_hybrid", streams, r#"{"unit_bytes": 130000}"#);
    assert!(message_of_unit.contains("not whole blocks and clusters"), "{message_of_unit}");
    let undivided = message("stream_hybrid", streams, r#"{"spare_factor": 0.21}"#);
    assert!(undivided.contains("do not divide the capacity"), "{undivided}");
    assert!(message("stripe_map", "", "{}").contains("without a table [stripes]"));
    let stripes =
        "stripes = { stripe_dies = 2, map_memory_bytes = 8192, map_changed_bytes = 4096 }";
    let of_stripes = |overrides: &str| message("stripe_map", stripes, overrides);
    assert!(of_stripes(r#"{"stripe_dies": 3}"#).contains("cannot be divided into stripes"));
    assert!(of_stripes(r#"{"map_memory_bytes": 4095}"#).contains("part of the map in memory"));
    assert!(of_stripes(r#"{"map_changed_bytes": 100}"#).contains("part of the map in memory"));
    assert!(of_stripes(r#"{"spare_factor": 0.0}"#).contains("too few stripes"));
    assert!(message("linear", "", "{}").contains("without a table [linear]"));
    let divided = r#"{"spare_factor": 0.25, "open_units": 9999}"#;
    assert!(message("linear", linear, divided).contains("number of open units"));
}
