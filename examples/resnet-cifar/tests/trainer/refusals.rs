//! Bad input: one sentence on stderr, an exit code, and nothing half-written.

use std::fs;
use std::path::Path;

use crate::support::{self, PICTURE, contender, count, trainer};

/// Runs a comparison on a folder with these files and returns what it says.
fn refusal(files: &[(&str, Vec<u8>)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    refused(dir.path())
}

fn refused(data: &Path) -> String {
    let out = tempfile::tempdir().unwrap();
    let json = out.path().join("rows.json");
    let output = trainer(&[
        "--data",
        data.to_str().unwrap(),
        "--step-ms",
        "0",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "no table");
    assert_eq!(
        fs::read_dir(out.path()).unwrap().count(),
        0,
        "nothing half-written"
    );
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn record(label: u8) -> Vec<u8> {
    [vec![label], vec![0; PICTURE]].concat()
}

#[test]
fn a_truncated_file() {
    let text = refusal(&[("data_batch_2.bin", record(1)[..100].to_vec())]);
    assert!(
        text.contains("data_batch_2.bin") && text.contains("record 0"),
        "{text}"
    );
}

#[test]
fn a_label_of_10() {
    let text = refusal(&[("data_batch_1.bin", [record(9), record(10)].concat())]);
    assert!(
        text.contains("data_batch_1.bin") && text.contains("record 1 has the label 10"),
        "{text}"
    );
}

#[test]
fn a_folder_without_pictures() {
    for files in [&[][..], &[("notes.txt", b"none".to_vec())]] {
        let text = refusal(files);
        assert!(text.contains("holds no pictures"), "{text}");
        assert!(text.contains("CLASS/*.{png"), "{text}");
    }
}

#[test]
fn a_folder_above_or_beside_the_one_that_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    let cifar = dir.path().join("cifar-10-batches-bin");
    fs::create_dir(&cifar).unwrap();
    fs::write(cifar.join("data_batch_1.bin"), record(1)).unwrap();
    let said = refused(dir.path());
    let hint = format!(
        "{} holds CIFAR's binary files; give that to --data",
        cifar.display()
    );
    assert!(said.contains(&hint), "{said}");
    let data = cifar.to_str().unwrap();
    let said = support::refused(&["--data", data, "--workload", "png"]);
    assert!(
        said.contains("holds no pictures in CLASS/*.png, only CIFAR's"),
        "{said}"
    );
    assert!(said.contains("leave --workload out"), "{said}");
}

#[test]
fn what_means_nothing_together() {
    for (args, words) in [
        (
            &["train", "--loader", "burn", "--prefetch", "2"][..],
            "leave --prefetch",
        ),
        (
            &["train", "--loader", "burn", "--staging", "on"],
            "leave --staging",
        ),
        (
            &[
                "train",
                "--loader",
                "burn",
                "--save-every",
                "2",
                "--out",
                "never",
            ],
            "leave --save-every out",
        ),
        (&["train", "--size", "64"], "leave --size out"),
    ] {
        let said = support::misused(args);
        assert!(said.contains(words), "{said}");
    }
    assert!(!Path::new("never").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_printed() {
    let full = fs::File::create("/dev/full").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_resnet-cifar"))
        .arg("--help")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("error: cannot print: No space left"),
        "{said}"
    );
}

#[test]
fn a_folder_that_is_not_there() {
    let text = refused(Path::new("/no/such/folder"));
    assert!(
        text.contains("/no/such/folder: there is no such folder; --data takes"),
        "{text}"
    );
}

#[test]
fn settings_that_mean_nothing() {
    for args in [
        ["--batch-size", "0"],
        ["--batch-size", "99999999999"],
        ["--workers", "100000"],
        ["--workers", "-1"],
        ["--steps", "1"],
        ["--step-ms", "18446744073709551615"],
        ["--lr", "-1"],
        ["--images", "0"],
        ["--images", "99999999999999"],
        ["--seed", "-1"],
        ["--model", "resnet7"],
        ["--device", "gpu"],
        ["--size", "4"],
        ["--runs", "0"],
        ["--sweep", "threads=1"],
        ["--sweep", "budget=8MB"],
        ["--memory-budget", "0"],
        ["--memory-budget", "many"],
        ["--allocator", "jemalloc"],
        ["--workload", "video"],
    ] {
        let output = trainer(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        let value = format!("'{}' for '{}", args[1], args[0]);
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(text.contains(&value), "{text}");
    }
}

#[test]
fn the_largest_batch_of_few_pictures_needs_their_memory_only() {
    let row = contender(&["--images", "16", "--batch-size", "8192", "--steps", "2"]);
    assert_eq!(count(&row, "batch_size"), 8192);
    let peak = count(&row, "peak_batch_bytes");
    assert!(peak < 10 << 20, "{peak} bytes");
}

#[test]
fn a_prefetch_setting_without_effect_is_named() {
    let few = ["train", "--images", "16", "--epochs", "1"];
    let notes = |more: &[&str]| {
        let output = trainer(&[&few, more].concat());
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = notes(&["--workers", "0", "--prefetch", "3"]);
    assert!(
        text.starts_with("note: --prefetch 3 has no effect: "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    let text = notes(&["--prefetch-factor", "2", "--prefetch", "3"]);
    assert!(
        text.starts_with("note: --prefetch-factor 2 has no effect: "),
        "{text}"
    );
    assert_eq!(notes(&["--prefetch", "3"]), "");
    let dir = tempfile::tempdir().unwrap();
    support::draw_folder(dir.path(), 16, (32, "png"));
    let data = dir.path().to_str().unwrap();
    let text = notes(&["--batch-size", "4", "--data", data]);
    assert!(
        text.starts_with("note: --images 16 has no effect: "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    let few = [
        "--runs",
        "1",
        "--steps",
        "2",
        "--step-ms",
        "0",
        "--images",
        "16",
    ];
    let output = trainer(&[&few[..], &["--batch-size", "4", "--data", data]].concat());
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), text);
}

#[test]
fn a_json_file_in_a_folder_that_is_not_there() {
    let output = trainer(&["--json", "/no/such/folder/rows.json"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let sentence =
        "cannot write /no/such/folder/rows.json: there is no folder /no/such/folder; make it";
    assert!(said.contains(sentence), "{said}");
}

#[test]
fn an_unknown_device_is_told_which_one_works() {
    let output = trainer(&["train", "--device", "cuda:x"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("choose flex, Burn's backend for CPUs"),
        "{text}"
    );
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_cuda_says_how_to_get_one_with_it() {
    let output = trainer(&["train", "--device", "cuda:0"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("build it with --features cuda"), "{text}");
}

#[test]
fn a_size_that_the_pictures_do_not_have() {
    let output = trainer(&["--size", "64", "--step-ms", "0"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("--size 64") && text.contains("leave --size out"),
        "{text}"
    );
}

#[test]
fn a_training_that_diverges_says_what_to_do() {
    let output = trainer(&[
        "train",
        "--images",
        "64",
        "--batch-size",
        "8",
        "--lr",
        "1e30",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("choose a lower --lr"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn training_needs_test_pictures() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("data_batch_1.bin"), record(1)).unwrap();
    let output = trainer(&["train", "--data", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("test_batch.bin is missing; get it from https://"),
        "{text}"
    );
}
