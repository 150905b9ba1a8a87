//! A training goes on from what was written, and from nothing else.

use std::fs;
use std::path::Path;

use crate::keep::{files, small};
use crate::midway::{killed_in, midway, small as stepwise};
use crate::support::{printed, refused, text, trainer};

/// What becomes of a file.
type Damage = fn(&Path);

const DAMAGES: [(&str, Damage); 4] = [
    ("is damaged", |file| {
        let content = fs::read(file).unwrap();
        fs::write(file, &content[..content.len() / 2]).unwrap();
    }),
    ("is damaged", |file| {
        let mut content = fs::read(file).unwrap();
        let at = content.len() - 1;
        content[at] ^= 1;
        fs::write(file, content).unwrap();
    }),
    ("is damaged", |file| fs::write(file, "").unwrap()),
    ("is missing", |file| fs::remove_file(file).unwrap()),
];

/// Every part of a checkpoint under every damage, and each in the place of another.
fn check_damages(folder: &Path, names: [&str; 3], args: &[&str]) {
    for name in names {
        let file = folder.join(name);
        let whole = fs::read(&file).unwrap();
        for (word, damage) in DAMAGES {
            damage(&file);
            let said = refused(args);
            let begins = format!("error: {} {word}", file.display());
            assert!(said.starts_with(&begins), "{said}");
            assert!(said.contains("to go on from"), "{said}");
            fs::write(&file, &whole).unwrap();
        }
    }
    let [model, optimizer, _] = names.map(|name| folder.join(name));
    let whole = fs::read(&optimizer).unwrap();
    fs::copy(&model, &optimizer).unwrap();
    assert!(refused(args).contains("is damaged"));
    fs::write(&optimizer, whole).unwrap();
}

#[test]
fn a_damaged_checkpoint_of_an_epoch_is_refused_before_the_training_begins() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    printed(&small(&out, &["--epochs", "1"]));
    let args = small(&out, &["--epochs", "2", "--resume"]);
    let names = ["model-1.bpk", "optim-1.bpk", "scheduler-1.bpk"];
    check_damages(&out.join("checkpoint"), names, &args);
    // One of an older version has no manifest, and is checked as far as it goes.
    fs::remove_file(out.join("checkpoint/manifest-1.json")).unwrap();
    for name in names {
        let file = out.join("checkpoint").join(name);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, "no checkpoint").unwrap();
        let said = refused(&args);
        assert!(said.contains(&format!("{name} is damaged")), "{said}");
        fs::write(&file, &whole).unwrap();
    }
    printed(&args);
}

#[test]
fn a_damaged_checkpoint_in_the_middle_of_an_epoch_is_refused_too() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    killed_in(&out, (1, &stepwise(&out, &["--epochs", "1"])));
    let folder = out.join("checkpoint").join(&midway(&out)[0]);
    let names = ["model.bpk", "optim.bpk", "scheduler.bpk"];
    let args = stepwise(&out, &["--epochs", "1", "--resume"]);
    check_damages(&folder, names, &args);
    // Its place, too, is believed only if it is what was written.
    check_damages(&folder, ["loader.json", "optim.bpk", "model.bpk"], &args);
    let other = folder.with_file_name("step-1-99");
    fs::rename(&folder, &other).unwrap();
    let said = refused(&args);
    assert!(said.contains("step-1-99 holds what belongs into"), "{said}");
    fs::rename(&other, &folder).unwrap();
    printed(&args);
}

#[test]
fn a_checkpoint_that_is_gone_or_another_ones_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    printed(&small(&out, &["--epochs", "2"]));
    let args = small(&out, &["--epochs", "3", "--resume"]);
    let at = |name: &str| out.join("checkpoint").join(name);
    let second = ["model-2.bpk", "optim-2.bpk", "scheduler-2.bpk"];
    for name in second {
        fs::remove_file(at(name)).unwrap();
    }
    let said = refused(&args);
    assert!(said.contains("model-2.bpk is missing"), "{said}");
    for name in second.iter().chain(&["manifest-2.json"]) {
        fs::copy(at(&name.replace('2', "1")), at(name)).unwrap();
    }
    let said = refused(&args);
    assert!(
        said.contains("manifest-2.json does not belong to model-2.bpk"),
        "{said}"
    );
    fs::remove_file(at("manifest-2.json")).unwrap();
    for name in second {
        fs::remove_file(at(name)).unwrap();
    }
    assert!(printed(&args).contains("\nepoch 2: "));
}

#[test]
fn the_last_two_and_the_best_stay_however_often_a_training_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    printed(&small(&out, &["--epochs", "1"]));
    for name in ["model-1.bpk.123-0.tmp", "optim-1.bpk.unfinished"] {
        fs::write(out.join("checkpoint").join(name), "half").unwrap();
    }
    for epochs in ["2", "3", "4", "5"] {
        printed(&small(&out, &["--epochs", epochs, "--resume"]));
    }
    let loss = |epoch: usize| -> f64 {
        let log = fs::read_to_string(out.join(format!("valid/epoch-{epoch}/Loss.log"))).unwrap();
        let mean = log.lines().last().unwrap().strip_suffix(",final").unwrap();
        mean.parse().unwrap()
    };
    let best = (1..=5).min_by(|&one, &other| loss(one).total_cmp(&loss(other)));
    let mut epochs = vec![4, 5, best.unwrap()];
    epochs.sort_unstable();
    epochs.dedup();
    let mut expected = Vec::new();
    for epoch in epochs {
        expected.push(format!("manifest-{epoch}.json"));
        expected.extend(["model", "optim", "scheduler"].map(|part| format!("{part}-{epoch}.bpk")));
    }
    expected.sort();
    assert_eq!(files(&out), expected);
}

#[test]
fn a_training_of_other_batches_does_not_go_on_at_the_end_of_an_epoch_either() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    printed(&small(&out, &["--epochs", "1"]));
    let before = files(&out);
    for (changed, words) in [
        (["--seed", "9"], "give --seed 42,"),
        (
            ["--images", "56"],
            "its data was drawn shapes, 64 training records,",
        ),
        (["--batch-size", "8"], "give --batch-size 16,"),
    ] {
        let rest = [["--images", "64"], ["--batch-size", "16"], ["--seed", "42"]];
        let rest = rest.into_iter().filter(|pair| pair[0] != changed[0]);
        let mut args = vec!["train", "--epochs", "2", "--resume", "--out", text(&out)];
        args.extend(rest.flatten().chain(changed));
        let said = refused(&args);
        assert!(
            said.contains("training.json tells of another training"),
            "{said}"
        );
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(files(&out), before);
    // Another learning rate may be wanted.
    let output = trainer(&small(&out, &["--epochs", "2", "--resume", "--lr", "0.01"]));
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "note: --lr 0.01 from here on; until here it was 0.1\n"
    );
}

#[test]
fn other_pictures_of_the_same_number_are_others() {
    let dir = tempfile::tempdir().unwrap();
    let [out, data] = ["run", "data"].map(|name| dir.path().join(name));
    crate::support::draw_folder(&data, 32, (32, "png"));
    let args = [
        "train",
        "--data",
        text(&data),
        "--batch-size",
        "8",
        "--out",
        text(&out),
    ];
    printed(&[&args[..], &["--epochs", "1"]].concat());
    fs::rename(data.join("dark/000.png"), data.join("dark/0.png")).unwrap();
    let said = refused(&[&args[..], &["--epochs", "2", "--resume"]].concat());
    assert!(
        said.contains("but other ones; give the same --data"),
        "{said}"
    );
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (name, content, words) in [
        (
            "training.json",
            "{\"mine\": 1}",
            "holds training.json, which is no training's",
        ),
        (
            "data_batch_1.bin",
            "",
            "holds data_batch_1.bin, which is no training's",
        ),
        ("checkpoint", "", "holds checkpoint, which is no training's"),
    ] {
        let out = dir.path().join(format!("with {name}"));
        fs::create_dir(&out).unwrap();
        fs::write(out.join(name), content).unwrap();
        let said = refused(&small(&out, &[]));
        assert!(said.contains(words), "{said}");
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), content);
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    }
}

#[test]
fn a_folder_with_parts_of_checkpoints_is_not_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    printed(&small(&out, &["--epochs", "1"]));
    for name in ["scheduler-1.bpk", "manifest-1.json"] {
        fs::remove_file(out.join("checkpoint").join(name)).unwrap();
    }
    let before = files(&out);
    let said = refused(&small(&out, &["--epochs", "1"]));
    assert!(
        said.contains("holds checkpoints of an earlier training"),
        "{said}"
    );
    let said = refused(&small(&out, &["--epochs", "2", "--resume"]));
    assert!(said.contains("holds no checkpoint"), "{said}");
    assert_eq!(files(&out), before);
    // Without them it is one that was stopped before its first checkpoint.
    fs::remove_dir_all(out.join("checkpoint")).unwrap();
    printed(&small(&out, &["--epochs", "1"]));
}

#[test]
fn what_burns_loader_cannot_use_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let few = ["train", "--images", "128", "--batch-size", "8"];
    let burn = ["--loader", "burn", "--epochs", "2", "--resume"];
    let args = [&few[..], &burn, &["--out", text(&out)]].concat();
    killed_in(&out, (1, &stepwise(&out, &["--epochs", "2"])));
    let kept = midway(&out);
    let said = refused(&args);
    assert!(said.contains(&format!("holds {} alone", kept[0])), "{said}");
    assert_eq!(midway(&out), kept);
    let more = stepwise(&out, &["--epochs", "2", "--resume"]);
    killed_in(&out, (2, &more));
    let kept = &midway(&out)[0];
    let output = trainer(&args);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let note = format!("note: --loader burn begins with an epoch: what {kept} holds of epoch 2");
    assert!(said.starts_with(&note), "{said}");
}
