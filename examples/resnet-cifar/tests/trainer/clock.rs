//! A step's time consists of what a training does, and of nothing that the measurement does.

use crate::support::contender;

#[test]
fn what_a_simulated_step_leaves_of_the_rate_is_waiting_and_nothing_else() {
    // So many pictures that to look at each float takes far longer than the step.
    let row = contender(&[
        "--images",
        "8192",
        "--batch-size",
        "4096",
        "--steps",
        "4",
        "--step-ms",
        "20",
        "--workers",
        "2",
    ]);
    let share = |part: &str| row[format!("{part}_share")].as_f64().unwrap();
    let seconds = 4096.0 / row["images_per_second"].as_f64().unwrap();
    let rest = (1.0 - share("wait")) * seconds;
    assert!(rest < 3.0 * 0.020, "{rest} s beside waiting: {row}");
    assert!(seconds >= 0.020, "{seconds} s");
    let sum = share("wait") + share("step") + share("drop");
    assert!((sum - 1.0).abs() < 1e-9, "{row}");
}

/// Nanoseconds that all measured `next()` took together.
fn waited(row: &serde_json::Value) -> f64 {
    let number = |wait: &serde_json::Value, name: &str| wait[name].as_f64().unwrap();
    let waits = row["waits"].as_array().unwrap().iter();
    let each = waits.map(|wait| number(wait, "nanoseconds") * number(wait, "count"));
    each.sum()
}

#[test]
fn the_rate_is_of_all_the_time_bursts_and_long_waits_alike() {
    // Items that wait: a queue gives some batches at once, and then one that all workers wait for.
    let row = contender(&[
        "--workload",
        "waiting",
        "--images",
        "640",
        "--batch-size",
        "16",
        "--workers",
        "8",
        "--steps",
        "60",
        "--step-ms",
        "1",
        "--loader",
        "burn",
    ]);
    let number = |name: &str| row[name].as_f64().unwrap();
    let measured = number("steps") - number("warm_up_steps");
    let seconds = 16.0 * measured / number("images_per_second");
    let by_waits = waited(&row) / 1e9 / number("wait_share");
    assert!(
        (by_waits / seconds - 1.0).abs() < 0.01,
        "{by_waits} s, {seconds} s: {row}"
    );
}

#[test]
fn to_widen_bytes_is_no_part_of_the_step() {
    let row = contender(&[
        "--images",
        "8192",
        "--batch-size",
        "4096",
        "--steps",
        "4",
        "--step-ms",
        "1",
        "--workers",
        "2",
        "--staging",
        "on",
    ]);
    let number = |name: &str| row[name].as_f64().unwrap();
    let seconds = 4096.0 / number("images_per_second");
    // So many pictures take far longer to be widened than the step, whatever else the machine does.
    assert!(number("step_share") < 0.5, "{row}");
    assert!(
        number("wait_share") * seconds > waited(&row) / 1e9 / 4.0,
        "{row}"
    );
}
